"""OpenCode: its dialect, its event plugin, and its class for the frozen interface."""
