"""Grok CLI."""
