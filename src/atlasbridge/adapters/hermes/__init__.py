"""Hermes Agent."""
