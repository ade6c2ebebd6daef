"""Discord: prompts are direct messages with buttons; the gateway tells what people press and write.

The channel needs the `discord` extra.
"""

from __future__ import annotations

from atlasbridge.core.fast_imports import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from atlasbridge.channels.discord.channel import DiscordChannel

__all__ = ["DiscordChannel"]

__getattr__ = lazy_exports(__name__, DiscordChannel="atlasbridge.channels.discord.channel")
