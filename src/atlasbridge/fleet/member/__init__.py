"""A hub's side of a fleet: joining a server, and the link to it."""
