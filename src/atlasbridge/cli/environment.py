"""How to call `atlasbridge` in another terminal: the plain name only if the shell would find it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys

from atlasbridge.core.errors import AtlasBridgeError


def own_name() -> str:
    if shutil.which("atlasbridge"):
        return "atlasbridge"
    # in a forked host, sys.argv belongs to the fork server
    beside = os.path.join(os.path.dirname(sys.executable), "atlasbridge")
    return _from_anywhere(beside if os.access(beside, os.X_OK) else sys.argv[0])


def _from_anywhere(command: str) -> str:
    """A command that also works in another folder, because a new terminal opens in the home folder."""
    path, own = os.path.abspath(command), os.path.expanduser("~")
    short = f"~{path.removeprefix(own)}" if path.startswith(f"{own}/") else path
    return short if re.fullmatch(r"~?[\w./@%+,-]+", short) else shlex.quote(path)


# Commands that work on Unix only report that in one sentence instead of an exception.

# Python modules that exist on Unix only
MODULES = frozenset({"fcntl", "termios", "tty", "pty", "resource", "pwd", "grp"})


def needs_unix(what: str, instead: str = "") -> None:
    """Raise an error on Windows. `instead` is what a person can do there."""
    if not hasattr(os, "fork"):
        raise AtlasBridgeError(f"{what} works on Unix only", instead)


def lacks_unix(error: Exception) -> bool:
    """Whether a command failed because a Unix module is missing on Windows."""
    return isinstance(error, ImportError) and error.name in MODULES and not hasattr(os, "fork")
