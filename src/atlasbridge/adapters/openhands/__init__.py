"""OpenHands CLI."""
