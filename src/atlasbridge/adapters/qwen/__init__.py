"""Qwen Code: its dialect, and its class for the frozen interface."""
