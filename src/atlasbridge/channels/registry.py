"""Finds channels: the built-in ones, other packages in `channels/`, and entry points of other distributions."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from types import ModuleType

from atlasbridge import channels
from atlasbridge.channels.base import BaseChannel
from atlasbridge.core.errors import ConfigError

BUILT_IN = {
    "web": "atlasbridge.web:WebChannel",
    "telegram": "atlasbridge.channels.telegram:TelegramChannel",
    "slack": "atlasbridge.channels.slack:SlackChannel",
    "discord": "atlasbridge.channels.discord:DiscordChannel",
    "ntfy": "atlasbridge.channels.ntfy:NtfyChannel",
    "matrix": "atlasbridge.channels.matrix:MatrixChannel",
    "tell": "atlasbridge.channels.tell:TellChannel",
    "desktop": "atlasbridge.channels.desktop:DesktopChannel",
    "local": "atlasbridge.channels.local:LocalChannel",
}


class ChannelRegistry:
    @staticmethod
    def names() -> list[str]:
        announced = (point.name for point in entry_points(group="atlasbridge.channels"))
        return sorted({*BUILT_IN, *_packages(), *announced})

    @staticmethod
    def get(name: str) -> type[BaseChannel]:
        """Return the channel's class. Only the requested channel is imported."""
        if name in BUILT_IN:
            module, _, attribute = BUILT_IN[name].partition(":")
            found = getattr(import_module(module), attribute)
        elif name in _packages():
            found = _class_of(import_module(f"{channels.__name__}.{name}"))
        else:
            points = [point for point in entry_points(group="atlasbridge.channels") if point.name == name]
            if not points:
                raise ConfigError(
                    f"there is no channel named {name!r}", f"use one of: {', '.join(ChannelRegistry.names())}"
                )
            found = points[0].load()
        if not (isinstance(found, type) and issubclass(found, BaseChannel)):
            raise ConfigError(f"channel {name!r} has no class that derives from BaseChannel", "fix its package")
        return found


def _packages() -> list[str]:
    """Packages in `channels/` that are not built in; the architecture document adds channels this way."""
    found = (module.name for module in iter_modules(channels.__path__) if module.ispkg)
    return [name for name in found if name not in BUILT_IN]


def _class_of(module: ModuleType) -> type | None:
    """Return the last channel class of a package, from any of its modules."""
    inside = f"{module.__name__}."
    found = [
        item
        for item in vars(module).values()
        if isinstance(item, type) and issubclass(item, BaseChannel) and f"{item.__module__}.".startswith(inside)
    ]
    return found[-1] if found else None


# The class that validates a channel's table in the configuration. It is imported only if the table exists.

CHANNEL_SETTINGS = {
    "web": "atlasbridge.web.settings:WebSettings",
    "telegram": "atlasbridge.channels.telegram.settings:TelegramSettings",
    "slack": "atlasbridge.channels.slack.settings:SlackSettings",
    "discord": "atlasbridge.channels.discord.settings:DiscordSettings",
    "ntfy": "atlasbridge.channels.ntfy.settings:NtfySettings",
    "matrix": "atlasbridge.channels.matrix.settings:MatrixSettings",
    "tell": "atlasbridge.channels.tell.settings:TellSettings",
    "desktop": "atlasbridge.channels.desktop.settings:DesktopSettings",
}


def channel_settings(name: str) -> type | None:
    """Return the class that validates a channel's table. A channel of another package can define it as
    `settings_model`."""
    if name in CHANNEL_SETTINGS:
        module, _, attribute = CHANNEL_SETTINGS[name].partition(":")
        found: type = getattr(import_module(module), attribute)
        return found
    if name == "local":
        return None

    return getattr(ChannelRegistry.get(name), "settings_model", None)
