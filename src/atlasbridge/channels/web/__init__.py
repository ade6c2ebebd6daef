"""The operator's page and the HTTP API, served by the hub itself.  On by default, on loopback, without any account."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atlasbridge.channels.web.channel import WebChannel

__all__ = ["WebChannel"]


def __getattr__(name: str) -> Any:
    """The channel is imported when it is used; its settings can be checked without it."""
    if name == "WebChannel":
        from atlasbridge.channels.web.channel import WebChannel

        return WebChannel
    raise AttributeError(name)
