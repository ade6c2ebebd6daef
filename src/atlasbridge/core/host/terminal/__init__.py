"""Copies bytes between the tool, the person's terminal and other sources of input."""
