"""Telegram: prompts are messages with buttons; updates come from the Bot API's long poll.

The channel is imported on demand, so that code that only checks settings does not import HTTP.
"""

from __future__ import annotations

from atlasbridge.core.fast_imports import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from atlasbridge.channels.telegram.channel import TelegramChannel

__all__ = ["TelegramChannel"]

__getattr__ = lazy_exports(__name__, TelegramChannel="atlasbridge.channels.telegram.channel")
