"""Mistral Vibe."""
