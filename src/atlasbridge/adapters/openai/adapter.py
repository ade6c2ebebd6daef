"""The `openai` command line.  It has no dialect of its own: the generic rules serve it; `codex` is OpenAI's agent."""

from __future__ import annotations

from atlasbridge.adapters.generic.adapter import GenericAdapter
from atlasbridge.adapters.registry import AdapterRegistry


@AdapterRegistry.register("openai")
class OpenAIAdapter(GenericAdapter):
    TOOL_NAME = "openai"
