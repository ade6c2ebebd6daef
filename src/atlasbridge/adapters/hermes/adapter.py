"""Hermes Agent.  How it asks and which key answers is in `dialect.toml`."""

from __future__ import annotations

from atlasbridge.adapters.pty import PtyAdapter
from atlasbridge.adapters.registry import AdapterRegistry


@AdapterRegistry.register("hermes")
class HermesAdapter(PtyAdapter):
    TOOL_NAME = "hermes"
    DIALECT = "hermes"
