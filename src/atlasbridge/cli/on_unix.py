"""What is there on Unix alone, said in one sentence instead of by a fault."""

from __future__ import annotations

import os

from atlasbridge.core.errors import AtlasBridgeError

MODULES = frozenset({"fcntl", "termios", "tty", "pty", "resource", "pwd", "grp"})  # of Python on Unix


def needs_unix(what: str, instead: str = "") -> None:
    """Raises where this is Windows.  `instead`: what a person can do there."""
    if not hasattr(os, "fork"):
        raise AtlasBridgeError(f"{what} is there on Unix alone", instead)


def lacks_unix(error: Exception) -> bool:
    """Whether a command failed because this is Windows."""
    return isinstance(error, ImportError) and error.name in MODULES and not hasattr(os, "fork")
