"""Slack: prompts are Block Kit messages, received through Socket Mode. The channel needs the `slack` extra."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from atlasbridge.core.distribution import install_line
from atlasbridge.core.errors import ConfigError

if TYPE_CHECKING:
    from atlasbridge.channels.slack.channel import SlackChannel

__all__ = ["SlackChannel"]


def __getattr__(name: str) -> Any:
    if name != "SlackChannel":
        raise AttributeError(name)
    try:
        from atlasbridge.channels.slack.channel import SlackChannel
    except ModuleNotFoundError as missing:
        raise ConfigError(f"the Slack channel needs {missing.name}", install_line("slack")) from None
    return SlackChannel
