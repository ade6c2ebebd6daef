"""Prepares the start of a tool, with the tool's own folder or a foreign adapter.

A folder can contain `prepare.py` with `prepare(start) -> start`: it adds arguments, environment variables, or a hook
that reports requests to `attach_socket`. This runs before every session; tools without it cause no import.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from importlib import import_module

from atlasbridge.core.errors import AdapterError
from atlasbridge.core.process import own_python
from atlasbridge.core.values import frozen, replace

TOOLS = os.path.dirname(__file__)
MODULE = "prepare.py"


@frozen
class ToolStart:
    """What an adapter is allowed to change before its tool is started."""

    command: tuple[str, ...]
    environ: Mapping[str, str]
    attach_socket: str  # the socket to which a hook reports requests: one JSON object per line with `"m": "structured"`
    hook_s: float = 0.0  # how long a dialog waits for a hook's report before it is raised without it
    rows_alone: int = 0  # the least height of the session while no terminal is attached
    outside: bool = False  # its adapter runs in a separate process; see `external_adapter`


def prepare_start(start: ToolStart, tool: str, dialect: str, home: str) -> ToolStart:
    """`dialect` is the one on the command line, if any."""
    if not dialect and (adapter := find_outside(tool, home)):
        if not hasattr(os, "fork"):  # Windows
            raise AdapterError(
                f"the adapter of {tool} runs on Unix alone", f"use its rules only: --dialect {tool}, or generic"
            )
        stage = own_python("atlasbridge.adapters.external_adapter", start.attach_socket, adapter)
        return replace(start, command=(*stage, *start.command), outside=True)
    if dialect not in ("", tool):
        return start  # a dialect of another tool: how this tool is started is unknown
    prepare = _find_prepare(tool, home)
    return start if prepare is None else prepare(start)


def find_outside(tool: str, home: str) -> str:
    """The file that contains the tool's adapter, or the name of an installed package's entry point."""
    if place := find_adapter_file(tool, home):
        return place
    from atlasbridge.adapters.entry_points import is_announced

    return tool if is_announced(tool) and not _has_rules(tool, home) else ""


def find_adapter_file(tool: str, home: str) -> str:
    """Return `adapters/TOOL.py` or `adapters/TOOL/adapter.py` in the home folder, or `TOOL.py` in this folder."""
    own = os.path.join(home, "adapters", tool)
    for place in (f"{own}.py", os.path.join(own, "adapter.py")):
        if os.path.isfile(place):
            return place
    packaged = os.path.join(TOOLS, f"{tool}.py")
    return packaged if is_adapter_file(packaged, tool) else ""


def is_adapter_file(path: str, tool: str) -> bool:
    """Whether the file registers an adapter for this tool; this folder's own modules do not."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return (
                re.search(rf"""^@AdapterRegistry\.register\(["']{re.escape(tool)}["']\)""", file.read(), re.M)
                is not None
            )
    except (OSError, ValueError):
        return False


def _has_rules(tool: str, home: str) -> bool:
    from pathlib import Path

    from atlasbridge.adapters.dialect_files import FALLBACK, dialect_for

    return dialect_for(tool, Path(home) / "dialects") != FALLBACK


def _find_prepare(tool: str, home: str) -> Callable[[ToolStart], ToolStart] | None:
    place = os.path.join(home, "adapters", tool, MODULE)
    if os.path.isfile(place):
        from atlasbridge.adapters.registry import load_module

        return _named(load_module(place))
    if os.path.isfile(os.path.join(TOOLS, tool, MODULE)):
        return _named(import_module(f"atlasbridge.adapters.{tool}.prepare"))
    return None


def _named(module: object) -> Callable[[ToolStart], ToolStart]:
    found: Callable[[ToolStart], ToolStart] = module.prepare  # type: ignore[attr-defined]
    return found
