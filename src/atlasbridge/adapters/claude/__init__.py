"""Claude Code: its dialect, its hook, and its class for the frozen interface."""

from __future__ import annotations

from atlasbridge.core.lazy_exports import offered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from atlasbridge.adapters.claude_code import ClaudeCodeAdapter

__all__ = ["ClaudeCodeAdapter"]

__getattr__ = offered(__name__, ClaudeCodeAdapter="atlasbridge.adapters.claude_code")
