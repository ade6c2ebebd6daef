"""goose.  How it asks and which key answers is in `dialect.toml`."""

from __future__ import annotations

from atlasbridge.adapters.pty import PtyAdapter
from atlasbridge.adapters.registry import AdapterRegistry


@AdapterRegistry.register("goose")
class GooseAdapter(PtyAdapter):
    TOOL_NAME = "goose"
    DIALECT = "goose"
