"""Slack: prompts as Block Kit messages, through Socket Mode.  Needs the `slack` extra."""

from atlasbridge.core.errors import ConfigError

try:
    from atlasbridge.channels.slack.channel import SlackChannel
except ModuleNotFoundError as missing:
    raise ConfigError(f"the Slack channel needs {missing.name}", "pip install 'atlasbridge[slack]'") from None

__all__ = ["SlackChannel"]
