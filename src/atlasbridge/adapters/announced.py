"""Does an installed package announce an adapter for this tool?  Answered before a session starts, so without imports.

Reads the entry points of installed packages as plain text; the registry loads what is found here.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence

GROUP = "atlasbridge.adapters"
_SECTION = re.compile(rf"^\[{re.escape(GROUP)}\]\s*$(.*?)(?=^\[|\Z)", re.MULTILINE | re.DOTALL)


def is_announced(tool: str, places: Sequence[str] | None = None) -> bool:
    for text in _announcements(sys.path if places is None else places):
        for section in _SECTION.findall(text):
            if re.search(rf"^{re.escape(tool)}\s*=", section, re.MULTILINE):
                return True
    return False


def _announcements(places: Sequence[str]) -> Iterator[str]:
    for place in places:
        try:
            names = os.listdir(place or ".")
        except OSError:
            continue  # an archive, or a folder that is not there
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                text = _read(os.path.join(place, name, "entry_points.txt"))
                if GROUP in text:
                    yield text


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return ""  # most packages have none; one that cannot be read announces nothing
