"""Finds adapters: a folder for each tool, installed packages with entry points, files here and in the home folder.

A tool needs no class: the registry makes one from its `dialect.toml`.
"""

from __future__ import annotations

import logging
import os
import stat
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, TypeVar

from atlasbridge.adapters.base import BaseAdapter
from atlasbridge.adapters.dialect_files import FALLBACK, TOOLS, available, dialect_for
from atlasbridge.adapters.tool_start import find_adapter_file, is_adapter_file
from atlasbridge.core.errors import AdapterError
from atlasbridge.core.system_setup import find_home_folder

if TYPE_CHECKING:
    from atlasbridge.adapters.pty import PtyAdapter


# Loads an adapter from a file in the home folder, without an installed package. The file is run only if no other user
# can change it.


def load_module(path: str) -> ModuleType:
    """Return the module in this file. Raises AdapterError with the reason."""
    check_owner(path)
    name = f"atlasbridge_own_{os.path.basename(os.path.dirname(path))}_{os.path.basename(path).removesuffix('.py')}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise AdapterError(f"{path} is no Python file", "give it a name that ends in .py")
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses in the file look up their module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the boundary to a foreign file: it can fail in any way
        del sys.modules[name]
        raise AdapterError(
            f"{path} cannot be loaded: {type(error).__name__}: {error}", "fix it, or remove it"
        ) from error
    return module


def check_owner(path: str) -> None:
    """Refuse a file that another user could have written."""
    for place in (path, os.path.dirname(path)):
        try:
            found = os.stat(place)
        except OSError as error:
            raise AdapterError(f"{place} cannot be read: {error.strerror}", "check the file, or remove it") from None
        if found.st_uid not in (os.getuid(), 0) or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise AdapterError(
                f"{place} can be changed by others: it is not run", f"chown it to you; chmod go-w {place}"
            )


log = logging.getLogger(__name__)
Adapter = TypeVar("Adapter", bound=type[BaseAdapter])
GROUP = "atlasbridge.adapters"


class AdapterRegistry:
    _registered: ClassVar[dict[str, type[BaseAdapter]]] = {}

    @classmethod
    def register(cls, name: str) -> Callable[[Adapter], Adapter]:
        """A class decorator that registers the adapter for the tool with that name."""

        def keep(adapter: Adapter) -> Adapter:
            cls._registered[name] = adapter
            return adapter

        return keep

    @classmethod
    def get(cls, tool_name: str) -> type[BaseAdapter]:
        """Return the tool's adapter; for an unknown tool the generic one, with a warning."""
        file = find_adapter_file(tool_name, find_home_folder(os.environ))
        found = cls.of_file(file) if file else cls._registered.get(tool_name) or cls._load(tool_name)
        if found is None:
            log.warning("no adapter for %r: using the generic one", tool_name)
            return cls.get(FALLBACK)
        return found

    @classmethod
    def find(cls, name: str) -> type[BaseAdapter]:
        """The same, but the name can also be a file that contains an adapter."""
        return cls.of_file(name) if os.sep in name else cls.get(name)

    @classmethod
    def list_supported(cls) -> list[str]:
        return sorted({*cls.origins(Path(find_home_folder(os.environ))), *cls._registered})

    @classmethod
    def of_file(cls, path: str) -> type[BaseAdapter]:
        """Return the adapter that this file defines; the last one if there are several."""
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
        """Every adapter by its tool's name, and its origin. A person's own in the home folder takes precedence."""
        found = dict.fromkeys(available(), "built-in")
        found |= {path.stem: str(path) for path in sorted(TOOLS.glob("*.py")) if is_adapter_file(str(path), path.stem)}
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
        cls._registered[tool_name] = cls.of_dialect(folder)  # also under another name of its command
        return cls._registered[tool_name]

    @classmethod
    def of_dialect(cls, name: str) -> type[PtyAdapter]:
        """The class of a tool that is completely described by its dialect."""
        from atlasbridge.adapters.pty import PtyAdapter

        if name == FALLBACK:
            return PtyAdapter
        known = cls._registered.get(name)
        if known is not None and issubclass(known, PtyAdapter):
            return known
        made = type(f"{name.capitalize()}Adapter", (PtyAdapter,), {"TOOL_NAME": name, "DIALECT": name})
        cls._registered[name] = made
        return made


def _is_tool(folder: Path) -> bool:
    return any((folder / name).is_file() for name in ("dialect.toml", "prepare.py", "adapter.py"))
