"""goose."""
