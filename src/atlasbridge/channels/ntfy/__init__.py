"""ntfy: prompts are push notifications. Their buttons post to a reply topic that the channel subscribes to."""

from __future__ import annotations

from atlasbridge.core.fast_imports import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from atlasbridge.channels.ntfy.channel import NtfyChannel

__all__ = ["NtfyChannel"]

__getattr__ = lazy_exports(__name__, NtfyChannel="atlasbridge.channels.ntfy.channel")
