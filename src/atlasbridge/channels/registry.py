"""Which channels exist: the built-in ones by name, and those that installed packages announce by entry point."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points

from atlasbridge.channels.base import BaseChannel
from atlasbridge.core.errors import ConfigError

BUILT_IN = {
    "web": "atlasbridge.channels.web:WebChannel",
    "telegram": "atlasbridge.channels.telegram:TelegramChannel",
    "slack": "atlasbridge.channels.slack:SlackChannel",
    "ntfy": "atlasbridge.channels.ntfy:NtfyChannel",
    "matrix": "atlasbridge.channels.matrix:MatrixChannel",
    "tell": "atlasbridge.channels.tell:TellChannel",
    "desktop": "atlasbridge.channels.desktop:DesktopChannel",
    "local": "atlasbridge.channels.local:LocalChannel",
    "memory": "atlasbridge.channels.memory:MemoryChannel",
}


class ChannelRegistry:
    @staticmethod
    def names() -> list[str]:
        return sorted({*BUILT_IN, *(point.name for point in entry_points(group="atlasbridge.channels"))})

    @staticmethod
    def get(name: str) -> type[BaseChannel]:
        """The channel's class; only the one asked for is imported."""
        if name in BUILT_IN:
            module, _, attribute = BUILT_IN[name].partition(":")
            found = getattr(import_module(module), attribute)
        else:
            points = [point for point in entry_points(group="atlasbridge.channels") if point.name == name]
            if not points:
                raise ConfigError(
                    f"there is no channel named {name!r}", f"use one of: {', '.join(ChannelRegistry.names())}"
                )
            found = points[0].load()
        if not (isinstance(found, type) and issubclass(found, BaseChannel)):
            raise ConfigError(f"channel {name!r} is not a BaseChannel", "fix the package that provides it")
        return found
