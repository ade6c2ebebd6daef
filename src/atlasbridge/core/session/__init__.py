"""A session as everybody names it: its record, its plan, its settings."""
