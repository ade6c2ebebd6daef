"""Checks whether an installed package provides an adapter for this tool. It runs before a session starts, so it imports
nothing.

It reads the entry points of installed packages as plain text; the registry loads what is found here. A folder that has
not changed since it was read is not read again: a hundred packages would cost every session some milliseconds.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

from atlasbridge.core.clock import SystemClock

GROUP = "atlasbridge.adapters"
_SECTION = re.compile(rf"^\[{re.escape(GROUP)}\]\s*$(.*?)(?=^\[|\Z)", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"^([^\s=#;\[]+)\s*=", re.MULTILINE)
# an installation writes to its new folder for a while, but the parent folder's time shows only the start
_RESTED_S = 60.0

_read_before: dict[str, tuple[int, frozenset[str]]] = {}  # place: its last change, and the tools with an adapter there


def is_announced(tool: str, places: Sequence[str] | None = None) -> bool:
    return any(tool in _announced_in(place or ".") for place in (sys.path if places is None else places))


def _announced_in(place: str) -> frozenset[str]:
    try:
        changed_ns = os.stat(place).st_mtime_ns
    except OSError:
        return frozenset()
    known = _read_before.get(place)
    if known is not None and known[0] == changed_ns:
        return known[1]
    tools = _read_folder(place)
    if changed_ns / 1e9 < SystemClock.wall() - _RESTED_S:
        _read_before[place] = (changed_ns, tools)
    return tools


def _read_folder(place: str) -> frozenset[str]:
    try:
        names = os.listdir(place)
    except OSError:
        return frozenset()  # an archive, or an unreadable folder
    texts = [
        _read(os.path.join(place, name, "entry_points.txt"))
        for name in names
        if name.endswith((".dist-info", ".egg-info"))
    ]
    sections = (section for text in texts if GROUP in text for section in _SECTION.findall(text))
    return frozenset(tool for section in sections for tool in _NAME.findall(section))


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return ""  # most packages have none; an unreadable one is ignored
