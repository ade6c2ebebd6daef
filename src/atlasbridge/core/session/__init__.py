"""A session: one tool in one terminal, and the host process that owns it."""
