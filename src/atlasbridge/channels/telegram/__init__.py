"""Telegram: prompts as messages with buttons, through the Bot API's long poll.

The channel is imported when it is asked for: whoever only checks settings does not pay for HTTP.
"""

from __future__ import annotations

from atlasbridge.core.lazy_exports import offered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from atlasbridge.channels.telegram.channel import TelegramChannel

__all__ = ["TelegramChannel"]

__getattr__ = offered(__name__, TelegramChannel="atlasbridge.channels.telegram.channel")
