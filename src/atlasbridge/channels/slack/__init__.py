"""Slack: prompts are Block Kit messages, received through Socket Mode. The channel needs the `slack` extra."""
