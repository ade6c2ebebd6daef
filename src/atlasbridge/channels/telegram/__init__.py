"""Telegram: prompts as messages with buttons, through the Bot API's long poll."""

from atlasbridge.channels.telegram.channel import TelegramChannel

__all__ = ["TelegramChannel"]
