"""A hub's side of a desk of many machines: joining it, leaving it, and the link that the hub dials."""
