"""Kilo.  How it asks and which key answers is in `dialect.toml`."""

from __future__ import annotations

from atlasbridge.adapters.pty import PtyAdapter
from atlasbridge.adapters.registry import AdapterRegistry


@AdapterRegistry.register("kilo")
class KiloAdapter(PtyAdapter):
    TOOL_NAME = "kilo"
    DIALECT = "kilo"
