"""ntfy: prompts are push notifications. Their buttons post to a reply topic that the channel subscribes to."""

from __future__ import annotations

from atlasbridge.core.lazy_exports import offered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from atlasbridge.channels.ntfy.channel import NtfyChannel

__all__ = ["NtfyChannel"]

__getattr__ = offered(__name__, NtfyChannel="atlasbridge.channels.ntfy.channel")
