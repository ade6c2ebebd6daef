"""Slack: prompts are Block Kit messages, received through Socket Mode. The channel needs the `slack` extra."""

from __future__ import annotations

from atlasbridge.core.fast_imports import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from atlasbridge.channels.slack.channel import SlackChannel

__all__ = ["SlackChannel"]

__getattr__ = lazy_exports(__name__, SlackChannel="atlasbridge.channels.slack.channel")
