"""The session's connection to the hub."""
