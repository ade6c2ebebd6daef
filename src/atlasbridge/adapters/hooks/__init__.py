"""Scripts that AI CLIs call by themselves.  Each runs alone, without this package, and never disturbs its caller."""
