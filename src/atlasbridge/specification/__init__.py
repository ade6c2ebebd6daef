"""What the documents name, one module for each: thin aliases, so that a reader finds what was read about."""
