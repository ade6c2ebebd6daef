"""Which class checks a channel's table of the configuration; it is imported when a table is there."""

from __future__ import annotations

from importlib import import_module

CHANNEL_SETTINGS = {
    "web": "atlasbridge.channels.web.settings:WebSettings",
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
    from atlasbridge.channels.registry import ChannelRegistry

    return getattr(ChannelRegistry.get(name), "settings_model", None)
