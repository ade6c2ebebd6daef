"""Finds the home folder from the environment. Separate from `home`, because importing `pathlib` would slow down a
client."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def find_home_folder(environ: Mapping[str, str]) -> str:
    chosen = environ.get("ATLASBRIDGE_HOME", "")
    base = chosen or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".atlasbridge")
    return os.path.abspath(base)
