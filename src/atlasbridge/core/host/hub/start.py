"""Starts the hub in the background, from inside a session host.  Nobody waits for it: the link connects when it can.

`core.daemon.starter` is the thorough way, for commands that want to know how it went.
"""

from __future__ import annotations

import os

from atlasbridge.core.home import Home
from atlasbridge.core.own_python import own_environ, own_python

# The shell ends at once, so that the hub becomes nobody's child and is never a zombie of the session's.
_SHELL = 'cd / && "$@" </dev/null >/dev/null 2>&1 &'


def start_hub(home: Home) -> None:
    environ = own_environ(os.environ, ATLASBRIDGE_HOME=str(home.root))
    command = ["sh", "-c", _SHELL, "atlasbridge-hub", *own_python("atlasbridge.core.daemon")]
    try:
        try:
            shell = os.posix_spawn("/bin/sh", command, environ, setsid=True, setsigdef=_DEFAULTS)
        except NotImplementedError:  # a C library without POSIX_SPAWN_SETSID
            shell = os.posix_spawn("/bin/sh", command, environ, setpgroup=0, setsigdef=_DEFAULTS)
        os.waitpid(shell, 0)
    except OSError:
        pass  # no shell or no process to be had: the session goes on alone and tries to connect


_DEFAULTS = tuple(range(1, 16))
