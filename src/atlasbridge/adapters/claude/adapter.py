"""Claude Code.  How it asks and which key answers is in `dialect.toml`; its hook in `hook.py`."""

from __future__ import annotations

from atlasbridge.adapters.pty import PtyAdapter
from atlasbridge.adapters.registry import AdapterRegistry


@AdapterRegistry.register("claude-code")
@AdapterRegistry.register("claude")
class ClaudeCodeAdapter(PtyAdapter):
    TOOL_NAME = "claude"
    DIALECT = "claude"
