"""Where in a TOML text a setting stands, so that an error can name its line.

Reads loosely: whether the text is TOML at all, tomllib has judged before.
"""

from __future__ import annotations

import re
from collections import Counter

Path = tuple[str | int, ...]

_HEADER = re.compile(r"^\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"""^\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")


def locate_settings(text: str) -> dict[Path, int]:
    """Line numbers, from 1, of every table and key that is written out."""
    lines: dict[Path, int] = {}
    seen: Counter[Path] = Counter()
    table: Path = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _split(header[2])
            if header[1] == "[[":
                seen[table] += 1
                table = (*table, seen[table] - 1)
            lines.setdefault(table, number)
        elif key := _KEY.match(line):
            lines.setdefault((*table, *_split(key[1])), number)
    return lines


def line_of(lines: dict[Path, int], path: Path) -> int | None:
    """The line of a setting, or of the nearest thing around it that is written out."""
    while path:
        if path in lines:
            return lines[path]
        path = path[:-1]
    return None


def _split(dotted: str) -> Path:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))
