"""The Windows console: a session, its clients and its port."""
