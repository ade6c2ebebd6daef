"""Gemini CLI: its dialect, and how it is started."""
