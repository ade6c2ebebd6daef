"""The session's side of the hub."""
