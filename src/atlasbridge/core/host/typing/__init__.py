"""Types an accepted answer as keys: compared with the screen first, step by step, exactly once."""
