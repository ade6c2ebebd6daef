"""Cline."""
