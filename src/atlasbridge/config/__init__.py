"""Reads, checks and converts the configuration."""
