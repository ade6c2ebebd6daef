"""Kilo."""
