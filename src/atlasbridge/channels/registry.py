"""Which channels exist: the built-in ones by name, and those that installed packages announce by entry point."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points

from atlasbridge.channels.base import BaseChannel
from atlasbridge.core.errors import ConfigError

BUILT_IN = {
    "web": "atlasbridge.web:WebChannel",
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


# Which class checks a channel's table of the configuration; it is imported when a table is there.

CHANNEL_SETTINGS = {
    "web": "atlasbridge.web.settings:WebSettings",
    "telegram": "atlasbridge.channels.telegram.settings:TelegramSettings",
    "slack": "atlasbridge.channels.slack.settings:SlackSettings",
    "ntfy": "atlasbridge.channels.ntfy.settings:NtfySettings",
    "matrix": "atlasbridge.channels.matrix.settings:MatrixSettings",
    "tell": "atlasbridge.channels.tell.settings:TellSettings",
    "desktop": "atlasbridge.channels.desktop.settings:DesktopSettings",
}


def channel_settings(name: str) -> type | None:
    """The class that checks a channel's table; a channel of another package may have one as `settings_model`."""
    if name in CHANNEL_SETTINGS:
        module, _, attribute = CHANNEL_SETTINGS[name].partition(":")
        found: type = getattr(import_module(module), attribute)
        return found
    if name in ("local", "memory"):
        return None

    return getattr(ChannelRegistry.get(name), "settings_model", None)
