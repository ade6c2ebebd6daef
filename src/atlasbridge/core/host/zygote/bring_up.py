"""Starts a zygote in the background, by a client that had to take the plain way.  Nobody waits for it.

It inherits what it must have in common with its callers.  Of the environment it gets what an interpreter needs, and
no secret of whoever came first.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NoReturn

from atlasbridge.core.home import Home
from atlasbridge.core.host.zygote.surroundings import FOLDER, interpreter_environ, wants_zygote
from atlasbridge.core.kin import is_inside, look_at, trace_line
from atlasbridge.core.own_python import own_environ, own_python

_FD_CEILING = 1 << 20
MOST = 8  # kinds of callers at once; whoever comes later takes the plain way


def start_zygote(home: Home, environ: Mapping[str, str]) -> None:
    """Only from outside of every session: one that was started inside would be trusted by nobody."""
    if not wants_zygote(environ) or is_inside(trace_line(os.getpid(), look_at)) or _are_enough(home):
        return
    needed = own_environ(interpreter_environ(environ), ATLASBRIDGE_HOME=str(home.root), PATH=os.defpath)
    try:
        middle = os.fork()  # no `posix_spawn`: the C library has it ignore two signals, and every tool would
        if middle == 0:
            _become_zygote(own_python("atlasbridge.cli.zygote"), needed)
        os.waitpid(middle, 0)
    except OSError:
        pass  # no process to be had: every session takes the plain way


def _become_zygote(command: tuple[str, ...], environ: Mapping[str, str]) -> NoReturn:
    """In a session of its own, nobody's child, with nothing open that is the caller's."""
    try:
        os.setsid()
        if os.fork() == 0:
            os.chdir("/")
            nowhere = os.open(os.devnull, os.O_RDWR)
            for standard in (0, 1, 2):
                os.dup2(nowhere, standard)
            os.closerange(3, min(os.sysconf("SC_OPEN_MAX"), _FD_CEILING))
            os.execve(command[0], command, environ)
    finally:
        os._exit(0)


def _are_enough(home: Home) -> bool:
    try:
        return sum(name.endswith(".sock") for name in os.listdir(home.root / FOLDER)) >= MOST
    except OSError:
        return False
