"""How we start Python again: never with the folder that we happen to be in on its path.

That folder is a project's, and a project's `socket.py` or `atlasbridge/` must not run in a process of ours.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

_PATH = "PYTHONPATH"


def own_python(module: str, *words: str) -> tuple[str, ...]:
    """The command that runs a module of ours; `-P` keeps the current folder off its path."""
    return (sys.executable, "-P", "-m", module, *words)


def own_environ(environ: Mapping[str, str], **more: str) -> dict[str, str]:
    """The environment for it.  Of the person's own search path only what names a folder for certain: an empty entry, as
    a stray colon leaves it, and a relative one mean the current folder again."""
    out = {**environ, **more}
    if _PATH in out:
        out[_PATH] = os.pathsep.join(place for place in out[_PATH].split(os.pathsep) if os.path.isabs(place))
        if not out[_PATH]:
            del out[_PATH]
    return out
