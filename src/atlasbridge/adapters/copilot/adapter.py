"""GitHub Copilot CLI.  How it asks and which key answers is in `dialect.toml`."""

from __future__ import annotations

from atlasbridge.adapters.pty import PtyAdapter
from atlasbridge.adapters.registry import AdapterRegistry


@AdapterRegistry.register("copilot")
class CopilotAdapter(PtyAdapter):
    TOOL_NAME = "copilot"
    DIALECT = "copilot"
