"""Fleets: `member` is a hub's side (joining, leaving, the link); `server` is the server of all members."""
