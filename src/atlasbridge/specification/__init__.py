"""The names that the specifications use, one module for each document."""
