"""Starts a zygote in the background, by a client that had to take the plain way.  Nobody waits for it.

It inherits what it must have in common with its callers.  Of the environment it gets what an interpreter needs, and
no secret of whoever came first.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from atlasbridge.core.detached import spawn_shell
from atlasbridge.core.home import Home
from atlasbridge.core.host.zygote.surroundings import FOLDER, interpreter_environ, wants_zygote
from atlasbridge.core.kin import is_inside, look_at, trace_line
from atlasbridge.core.own_python import own_environ, own_python

MOST = 8  # kinds of callers at once; whoever comes later takes the plain way
_SHELL = 'cd / && "$@" </dev/null >/dev/null 2>&1 &'
_DEFAULTS = tuple(range(1, 16))


def start_zygote(home: Home, environ: Mapping[str, str]) -> None:
    """Only from outside of every session: one that was started inside would be trusted by nobody."""
    if not wants_zygote(environ) or is_inside(trace_line(os.getpid(), look_at)) or _are_enough(home):
        return
    command = ["sh", "-c", _SHELL, "atlasbridge-zygote", *own_python("atlasbridge.cli.zygote")]
    needed = own_environ(interpreter_environ(environ), ATLASBRIDGE_HOME=str(home.root), PATH=os.defpath)
    nothing_of_ours = [(os.POSIX_SPAWN_CLOSE, fd) for fd in _inherited()]
    try:
        os.waitpid(spawn_shell(command, needed, setsigdef=_DEFAULTS, setsigmask=(), file_actions=nothing_of_ours), 0)
    except OSError:
        pass  # no shell or no process to be had: every session takes the plain way


def _inherited() -> list[int]:
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            if int(name) > 2 and os.get_inheritable(int(name)):
                found.append(int(name))
        except OSError:
            continue  # the listing's own descriptor
    return found


def _are_enough(home: Home) -> bool:
    try:
        return sum(name.endswith(".sock") for name in os.listdir(home.root / FOLDER)) >= MOST
    except OSError:
        return False
