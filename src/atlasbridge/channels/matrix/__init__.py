"""Matrix: prompts are messages in one room; reactions and replies answer them. Plain HTTP, unencrypted rooms only."""

from __future__ import annotations

from atlasbridge.core.lazy_exports import offered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from atlasbridge.channels.matrix.channel import MatrixChannel

__all__ = ["MatrixChannel"]

__getattr__ = offered(__name__, MatrixChannel="atlasbridge.channels.matrix.channel")
