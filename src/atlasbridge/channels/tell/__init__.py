"""tell: notifies any service that Apprise supports. Prompts cannot be answered there."""

from __future__ import annotations

from atlasbridge.core.fast_imports import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from atlasbridge.channels.tell.channel import TellChannel

__all__ = ["TellChannel"]

__getattr__ = lazy_exports(__name__, TellChannel="atlasbridge.channels.tell.channel")
