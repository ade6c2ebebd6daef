"""Any interactive program, by the rules that hold for programs in general (`dialect.toml`)."""

from __future__ import annotations

from atlasbridge.adapters.pty import PtyAdapter
from atlasbridge.adapters.registry import AdapterRegistry


@AdapterRegistry.register("generic")
class GenericAdapter(PtyAdapter):
    TOOL_NAME = "generic"
    DIALECT = "generic"
