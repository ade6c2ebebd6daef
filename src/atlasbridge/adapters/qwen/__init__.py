"""Qwen Code: how it asks, and its class for the frozen interface."""
