"""What to type for us in another terminal: the name alone only where the shell would find it."""

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
    beside = os.path.join(os.path.dirname(sys.executable), "atlasbridge")  # a host has the zygote's words
    return _from_anywhere(beside if os.access(beside, os.X_OK) else sys.argv[0])


def _from_anywhere(command: str) -> str:
    """A command that also works in another folder: another terminal opens in the home folder."""
    path, own = os.path.abspath(command), os.path.expanduser("~")
    short = f"~{path.removeprefix(own)}" if path.startswith(f"{own}/") else path
    return short if re.fullmatch(r"~?[\w./@%+,-]+", short) else shlex.quote(path)


# What works on Unix only, said in one sentence instead of by a fault.

MODULES = frozenset({"fcntl", "termios", "tty", "pty", "resource", "pwd", "grp"})  # of Python on Unix


def needs_unix(what: str, instead: str = "") -> None:
    """Raises where this is Windows.  `instead`: what a person can do there."""
    if not hasattr(os, "fork"):
        raise AtlasBridgeError(f"{what} works on Unix only", instead)


def lacks_unix(error: Exception) -> bool:
    """Whether a command failed because this is Windows."""
    return isinstance(error, ImportError) and error.name in MODULES and not hasattr(os, "fork")
