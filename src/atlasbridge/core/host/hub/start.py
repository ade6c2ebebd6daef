"""Starts the hub in the background, from inside a session host.  Nobody waits for it: the link connects when it can.

`core.daemon.starter` is the thorough way, for commands that want to know how it went.
"""

from __future__ import annotations

import os

from atlasbridge.core.home import Home
from atlasbridge.core.process import own_environ, own_python, spawn_shell, start_alone
from atlasbridge.core.system import OWN_FILE, try_share

# The shell ends at once: nobody waits for the hub.  Where the session adopts orphans it is ours then, and reaped by us.
_SHELL = 'cd / && "$@" </dev/null >/dev/null 2>&1 &'


def start_hub(home: Home) -> None:
    if not home.may_start_hub:
        return
    if not hasattr(os, "posix_spawn"):  # Windows
        start_alone(own_python("atlasbridge.core.daemon"), own_environ(os.environ, ATLASBRIDGE_HOME=str(home.root)))
        return
    environ = own_environ(os.environ, ATLASBRIDGE_HOME=str(home.root))
    starting = hold_starting(home)
    command = ["sh", "-c", _SHELL, "atlasbridge-hub", *own_python("atlasbridge.core.daemon")]
    command += ["--starting-fd", str(starting)]
    try:
        os.waitpid(spawn_shell(command, environ, setsigdef=_DEFAULTS), 0)
    except OSError:
        pass  # no shell or no process to be had: the session goes on alone and tries to connect
    finally:
        if starting >= 0:
            os.close(starting)


def hold_starting(home: Home) -> int:
    """A descriptor by which everybody sees that a hub is on its way; the hub closes it once it holds its lock."""
    try:
        fd = os.open(home.starting, os.O_RDWR | os.O_CREAT | OWN_FILE, 0o600)
        if not try_share(fd):
            os.close(fd)
            return -1
        os.set_inheritable(fd, True)
    except OSError:
        return -1  # a full disk: who wants to stop the hub may come too early, nothing else
    return fd


_DEFAULTS = tuple(range(1, 16))
