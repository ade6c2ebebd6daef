"""Claude Code: how it asks, its hook, and its class for the frozen interface."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from atlasbridge.adapters.claude_code import ClaudeCodeAdapter

__all__ = ["ClaudeCodeAdapter"]


def __getattr__(name: str) -> object:
    """Where the interface's document has the class; imported by those who ask for it alone."""
    if name != "ClaudeCodeAdapter":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from atlasbridge.adapters.claude_code import ClaudeCodeAdapter

    return ClaudeCodeAdapter
