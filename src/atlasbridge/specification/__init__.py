"""What the documents name, one module for each, so that a reader finds what was read about."""
