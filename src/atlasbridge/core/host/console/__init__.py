"""A session on a Windows console: one process, whose console is the person's terminal."""
