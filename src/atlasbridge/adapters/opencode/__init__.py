"""OpenCode: how it asks, what it tells by events, and its class for the frozen interface."""
