"""OpenHands CLI.  How it asks and which key answers is in `dialect.toml`."""

from __future__ import annotations

from atlasbridge.adapters.pty import PtyAdapter
from atlasbridge.adapters.registry import AdapterRegistry


@AdapterRegistry.register("openhands")
class OpenHandsAdapter(PtyAdapter):
    TOOL_NAME = "openhands"
    DIALECT = "openhands"
