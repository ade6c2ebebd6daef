"""Starts the hub in the background from inside a session host. Nothing waits for it: the connection is made when it is
ready.

`core.daemon.starter` is the complete implementation, for commands that need the result.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Mapping
from typing import Any

from atlasbridge.core.ancestry import is_inside, look_at, trace_ancestry
from atlasbridge.core.home import Home
from atlasbridge.core.peer import meet, voucher
from atlasbridge.core.process import own_environ, own_python, start_alone
from atlasbridge.core.system import OWN_FILE, try_share

_WAITING = 4096  # a thousand hosts can connect to a new hub at once
_vouchers: list[socket.socket] = []


def start_hub(home: Home) -> None:
    if not home.may_start_hub:
        return
    environ = own_environ(os.environ, ATLASBRIDGE_HOME=str(home.root))
    if not hasattr(os, "posix_spawn"):  # Windows
        start_alone(own_python("atlasbridge.core.daemon"), environ)
        return
    if is_inside(trace_ancestry(os.getppid(), look_at)):
        return  # clients would not trust this hub; the host of the outer session starts one
    starting = hold_starting(home)
    command = [*own_python("atlasbridge.core.daemon"), "--starting-fd", str(starting)]
    try:
        _vouch(_spawn(command, environ))
    except OSError:
        pass  # no process is available: the session continues without a hub and keeps trying to connect
    finally:
        if starting >= 0:
            os.close(starting)


def _spawn(command: list[str], environ: Mapping[str, str]) -> int:
    """Starts a child in a session of its own. It is reaped together with the tool's orphans."""
    nowhere = [(os.POSIX_SPAWN_OPEN, standard, os.devnull, os.O_RDWR, 0) for standard in (0, 1, 2)]
    how: dict[str, Any] = {"file_actions": nowhere, "setsigdef": _DEFAULTS}
    try:
        return os.posix_spawn(command[0], command, environ, setsid=True, **how)
    except NotImplementedError:  # the C library lacks POSIX_SPAWN_SETSID; use a new process group instead
        return os.posix_spawn(command[0], command, environ, setpgroup=0, **how)


def _vouch(pid: int) -> None:
    """Confirms that we started this hub. Its clients check that no tool has started it, and only we know our own
    child."""
    hub = look_at(pid)
    if sys.platform != "linux" or hub is None:
        return
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.bind(voucher(os.getpid(), hub))
    link.listen(_WAITING)
    while _vouchers:
        _vouchers.pop().close()
    _vouchers.append(link)
    threading.Thread(target=_keep_answering, args=(link,), name="hub-voucher", daemon=True).start()


def _keep_answering(link: socket.socket) -> None:
    while True:
        try:
            caller = link.accept()[0]
        except OSError:
            return  # a later hub has taken its place
        with caller:
            meet(caller, listens=True)  # that we listen is the whole confirmation


def hold_starting(home: Home) -> int:
    """A descriptor that shows everybody that a hub is starting. The hub closes it once it has its lock."""
    try:
        fd = os.open(home.starting, os.O_RDWR | os.O_CREAT | OWN_FILE, 0o600)
        if not try_share(fd):
            os.close(fd)
            return -1
        os.set_inheritable(fd, True)
    except OSError:
        return -1  # a full disk: only a command that stops the hub can come too early
    return fd


_DEFAULTS = tuple(range(1, 16))
