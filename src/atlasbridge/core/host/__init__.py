"""The session host: one process that owns one tool's terminal, from its start to its end."""
