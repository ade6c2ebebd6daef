"""Bytes between the tool, the person's terminal and whoever else types."""
