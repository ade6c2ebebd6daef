"""The `openai` command line.  The generic rules serve it; `codex` is OpenAI's agent."""

from __future__ import annotations

from atlasbridge.adapters.pty import PtyAdapter
from atlasbridge.adapters.registry import AdapterRegistry


@AdapterRegistry.register("openai")
class OpenAIAdapter(PtyAdapter):
    TOOL_NAME = "openai"
    DIALECT = "openai"
