"""ntfy: prompts as push notifications with buttons that post to a reply topic to which we listen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atlasbridge.channels.ntfy.channel import NtfyChannel

__all__ = ["NtfyChannel"]


def __getattr__(name: str) -> Any:
    """The channel is imported when it is used; its settings can be checked without it."""
    if name == "NtfyChannel":
        from atlasbridge.channels.ntfy.channel import NtfyChannel

        return NtfyChannel
    raise AttributeError(name)
