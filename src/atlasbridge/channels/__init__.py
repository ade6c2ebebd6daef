"""Channels ask people: each one sends prompts out and brings replies back. A channel decides nothing."""
