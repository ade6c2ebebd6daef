"""Discord: prompts are direct messages with buttons; the gateway tells what people press and write.

The channel needs the `discord` extra.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from atlasbridge.core.distribution import install_line
from atlasbridge.core.errors import ConfigError

if TYPE_CHECKING:
    from atlasbridge.channels.discord.channel import DiscordChannel

__all__ = ["DiscordChannel"]


def __getattr__(name: str) -> Any:
    if name != "DiscordChannel":
        raise AttributeError(name)
    try:
        from atlasbridge.channels.discord.channel import DiscordChannel
    except ModuleNotFoundError as missing:
        raise ConfigError(f"the Discord channel needs {missing.name}", install_line("discord")) from None
    return DiscordChannel
