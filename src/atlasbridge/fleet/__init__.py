"""A hub's side of a fleet server: joining it, leaving it, and the link that the hub dials."""
