"""Which adapters exist: a folder here for each tool, packages that announce theirs, and files in the home folder."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import ClassVar, TypeVar

from atlasbridge.adapters.base import BaseAdapter
from atlasbridge.adapters.dialect_files import FALLBACK, TOOLS, available, dialect_for
from atlasbridge.adapters.from_file import load_module
from atlasbridge.core.errors import AdapterError

log = logging.getLogger(__name__)
Adapter = TypeVar("Adapter", bound=type[BaseAdapter])
GROUP = "atlasbridge.adapters"


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
            return cls.get(FALLBACK)
        return found

    @classmethod
    def find(cls, name: str) -> type[BaseAdapter]:
        """The same, where the name may be that of a file with an adapter in it."""
        return cls.of_file(name) if os.sep in name else cls.get(name)

    @classmethod
    def list_supported(cls) -> list[str]:
        return sorted({*available(), *cls._registered, *(point.name for point in entry_points(group=GROUP))})

    @classmethod
    def of_file(cls, path: str) -> type[BaseAdapter]:
        """The adapter that is defined in this file; the last one, where there are several."""
        module = load_module(path)
        found = [
            item
            for item in vars(module).values()
            if isinstance(item, type) and issubclass(item, BaseAdapter) and item.__module__ == module.__name__
        ]
        if not found:
            raise AdapterError(f"{path} defines no class that derives from BaseAdapter", "see `docs/howto`")
        return found[-1]

    @classmethod
    def origins(cls, home: Path | None = None) -> dict[str, str]:
        """Every adapter by its tool's name, and where it comes from; what a person keeps in the home folder wins."""
        found = dict.fromkeys(available(), "built-in")
        for point in entry_points(group=GROUP):
            found[point.name] = f"package {point.dist.name}" if point.dist is not None else "a package"
        own = home / "adapters" if home is not None else None
        if own is not None and own.is_dir():
            found |= {path.stem: str(path) for path in sorted(own.glob("*.py"))}
            found |= {path.name: str(path) for path in sorted(own.iterdir()) if _is_tool(path)}
        return found

    @classmethod
    def _load(cls, tool_name: str) -> type[BaseAdapter] | None:
        for point in entry_points(group=GROUP):
            if point.name == tool_name:
                found = point.load()
                if not (isinstance(found, type) and issubclass(found, BaseAdapter)):
                    raise AdapterError(
                        f"adapter {tool_name!r} is not a BaseAdapter", "fix the package that provides it"
                    )
                return found
        folder = dialect_for(tool_name)
        if folder == FALLBACK != tool_name:
            return None
        return cls._of_folder(folder)

    @classmethod
    def _of_folder(cls, folder: str) -> type[BaseAdapter]:
        """The class in a tool's folder; a folder without one is a tool that its dialect says everything about."""
        if (TOOLS / folder / "adapter.py").is_file():
            import_module(f"atlasbridge.adapters.{folder}.adapter")
        if folder not in cls._registered:
            from atlasbridge.adapters.pty import PtyAdapter

            words = {"TOOL_NAME": folder, "DIALECT": folder}
            cls._registered[folder] = type(f"{folder.capitalize()}Adapter", (PtyAdapter,), words)
        return cls._registered[folder]


def _is_tool(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("dialect.toml", "prepare.py", "adapter.py"))
