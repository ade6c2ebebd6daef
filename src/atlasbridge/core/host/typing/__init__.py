"""An accepted answer becomes keys: compared before, step by step, exactly once."""
