"""The adapter of Claude Code, at the place that the specification names. Its dialect and its hook are in `claude/`."""

from __future__ import annotations

from atlasbridge.adapters.registry import AdapterRegistry

ClaudeCodeAdapter = ClaudeAdapter = AdapterRegistry.of_dialect("claude")

__all__ = ["ClaudeAdapter", "ClaudeCodeAdapter"]
