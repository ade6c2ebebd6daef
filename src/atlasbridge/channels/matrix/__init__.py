"""Matrix: prompts are messages in one room; reactions and replies answer them. Plain HTTP, unencrypted rooms only."""

from __future__ import annotations

from atlasbridge.core.fast_imports import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from atlasbridge.channels.matrix.channel import MatrixChannel

__all__ = ["MatrixChannel"]

__getattr__ = lazy_exports(__name__, MatrixChannel="atlasbridge.channels.matrix.channel")
