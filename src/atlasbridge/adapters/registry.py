"""Which adapters exist: the built-in ones by tool name, and those that installed packages announce by entry point."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from typing import ClassVar, TypeVar

from atlasbridge.adapters.base import BaseAdapter
from atlasbridge.core.errors import AdapterError

log = logging.getLogger(__name__)
Adapter = TypeVar("Adapter", bound=type[BaseAdapter])

BUILT_IN = {
    "claude": "atlasbridge.adapters.claude.adapter",
    "claude-code": "atlasbridge.adapters.claude.adapter",
    "codex": "atlasbridge.adapters.codex.adapter",
    "gemini": "atlasbridge.adapters.gemini.adapter",
    "opencode": "atlasbridge.adapters.opencode.adapter",
    "aider": "atlasbridge.adapters.aider.adapter",
    "openai": "atlasbridge.adapters.openai.adapter",
    "generic": "atlasbridge.adapters.generic.adapter",
}


class AdapterRegistry:
    _registered: ClassVar[dict[str, type[BaseAdapter]]] = {}

    @classmethod
    def register(cls, name: str) -> Callable[[Adapter], Adapter]:
        """A class decorator: this adapter serves the tool of that name."""

        def keep(adapter: Adapter) -> Adapter:
            cls._registered[name] = adapter
            return adapter

        return keep

    @classmethod
    def get(cls, tool_name: str) -> type[BaseAdapter]:
        """The tool's adapter; for a tool nobody knows the generic one, with a warning."""
        found = cls._registered.get(tool_name) or cls._load(tool_name)
        if found is None:
            log.warning("no adapter for %r: using the generic one", tool_name)
            return cls.get("generic")
        return found

    @classmethod
    def list_supported(cls) -> list[str]:
        return sorted(
            {*BUILT_IN, *cls._registered, *(point.name for point in entry_points(group="atlasbridge.adapters"))}
        )

    @classmethod
    def _load(cls, tool_name: str) -> type[BaseAdapter] | None:
        for point in entry_points(group="atlasbridge.adapters"):
            if point.name == tool_name:
                found = point.load()
                if not (isinstance(found, type) and issubclass(found, BaseAdapter)):
                    raise AdapterError(
                        f"adapter {tool_name!r} is not a BaseAdapter", "fix the package that provides it"
                    )
                return found
        if tool_name in BUILT_IN:
            import_module(BUILT_IN[tool_name])
            return cls._registered[tool_name]
        return None
