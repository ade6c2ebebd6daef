"""Matrix: prompts as messages in one room; reactions and replies answer.  Plain HTTP, unencrypted rooms only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atlasbridge.channels.matrix.channel import MatrixChannel

__all__ = ["MatrixChannel"]


def __getattr__(name: str) -> Any:
    """The channel is imported when it is used; its settings can be checked without it."""
    if name == "MatrixChannel":
        from atlasbridge.channels.matrix.channel import MatrixChannel

        return MatrixChannel
    raise AttributeError(name)
