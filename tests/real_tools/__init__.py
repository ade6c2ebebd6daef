"""The real AI CLIs, offline against a mock model: every dialog is brought about, answered, and looked at."""
