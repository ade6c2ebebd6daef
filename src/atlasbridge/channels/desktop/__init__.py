"""The desktop of this machine: a notification for who is at it.  Nobody can answer there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atlasbridge.channels.desktop.channel import DesktopChannel

__all__ = ["DesktopChannel"]


def __getattr__(name: str) -> Any:
    """The channel is imported when it is used; its settings can be checked without it."""
    if name == "DesktopChannel":
        from atlasbridge.channels.desktop.channel import DesktopChannel

        return DesktopChannel
    raise AttributeError(name)
