"""The member side of a fleet: joining a server, and the link to it."""
