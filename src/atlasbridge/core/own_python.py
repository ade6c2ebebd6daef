"""How we start Python again: never with the folder that we happen to be in on its path, or among its programs.

That folder is a project's, and a project's `socket.py`, `atlasbridge/` or `notify-send` must not run in a process of
ours, or as one that we started: nobody is above those, so they would count as a person's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

_PATHS = ("PYTHONPATH", "PATH")


def own_python(module: str, *words: str) -> tuple[str, ...]:
    """The command that runs a module of ours; `-P` keeps the current folder off its path."""
    return (sys.executable, "-P", "-m", module, *words)


def own_environ(environ: Mapping[str, str], **more: str) -> dict[str, str]:
    """The environment for it.  Of the person's own search paths only what names a folder for certain: an empty entry,
    as a stray colon leaves it, and a relative one mean the current folder again."""
    out = {**environ, **more}
    for name in _PATHS:
        if name in out:
            out[name] = os.pathsep.join(place for place in out[name].split(os.pathsep) if os.path.isabs(place))
            if not out[name]:
                del out[name]
    return out
