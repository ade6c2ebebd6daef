"""tell: any of the services that Apprise knows hears that something waits; answers come by another way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atlasbridge.channels.tell.channel import TellChannel

__all__ = ["TellChannel"]


def __getattr__(name: str) -> Any:
    """The channel is imported when it is used; its settings can be checked without it."""
    if name == "TellChannel":
        from atlasbridge.channels.tell.channel import TellChannel

        return TellChannel
    raise AttributeError(name)
