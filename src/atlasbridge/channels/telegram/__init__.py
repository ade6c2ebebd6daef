"""Telegram: prompts as messages with buttons, through the Bot API's long poll.

The channel is imported when it is asked for: whoever only checks settings does not pay for HTTP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atlasbridge.channels.telegram.channel import TelegramChannel

__all__ = ["TelegramChannel"]


def __getattr__(name: str) -> Any:
    """The channel is imported when it is used; its settings can be checked without it."""
    if name == "TelegramChannel":
        from atlasbridge.channels.telegram.channel import TelegramChannel

        return TelegramChannel
    raise AttributeError(name)
