"""Telegram: prompts are messages with buttons; updates come from the Bot API's long poll."""
