"""Claude Code: how it asks, its hook, and its class for the frozen interface."""
