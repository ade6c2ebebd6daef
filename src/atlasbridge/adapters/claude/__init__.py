"""Claude Code: its dialect, its hook, and its class for the frozen interface."""

from __future__ import annotations

from atlasbridge.core.fast_imports import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from atlasbridge.adapters.claude_code import ClaudeCodeAdapter

__all__ = ["ClaudeCodeAdapter"]

__getattr__ = lazy_exports(__name__, ClaudeCodeAdapter="atlasbridge.adapters.claude_code")
