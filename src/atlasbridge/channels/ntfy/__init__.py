"""ntfy: prompts as push notifications with buttons that post to a reply topic to which we listen."""

from __future__ import annotations

from atlasbridge.core.lazy_exports import offered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from atlasbridge.channels.ntfy.channel import NtfyChannel

__all__ = ["NtfyChannel"]

__getattr__ = offered(__name__, NtfyChannel="atlasbridge.channels.ntfy.channel")
