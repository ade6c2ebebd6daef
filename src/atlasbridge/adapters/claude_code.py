"""The adapter of Claude Code, where the architecture document names it; it lives in the tool's own folder."""

from __future__ import annotations

from atlasbridge.adapters.claude.adapter import ClaudeCodeAdapter

ClaudeAdapter = ClaudeCodeAdapter

__all__ = ["ClaudeAdapter", "ClaudeCodeAdapter"]
