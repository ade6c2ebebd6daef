"""Code for each operating system."""
