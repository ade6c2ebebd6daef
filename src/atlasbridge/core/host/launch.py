"""Creates the session host: forked from the client (shared memory, fast start), then independent.

The client keeps one end of a socket pair. The host serves the other end like any terminal that attaches.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
from pathlib import Path
from typing import Any, NoReturn

from atlasbridge.core import wire
from atlasbridge.core.clock import Clock, SystemClock
from atlasbridge.core.fast_imports import signal
from atlasbridge.core.host.analysis import Prepared
from atlasbridge.core.host.supervisor import SessionLog
from atlasbridge.core.ids import short_id
from atlasbridge.core.peer import HOST_NAME
from atlasbridge.core.process import adopt_orphans, call_self, fill_standard_streams, hide_memory, inheritable_fds
from atlasbridge.core.session.settings import SETTINGS_SUFFIX, Plan
from atlasbridge.core.tty import SpawnRefused

IGNORED = (
    *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE),
    *(signal.SIGTTIN, signal.SIGTTOU, signal.SIGTSTP),
)
_M_ARENA_MAX = -8  # from glibc's malloc.h
_one_heap = False
_SWITCH_INTERVAL_S = 0.00002  # a relay needs the interpreter several times per chunk and must not wait for the detector


def launch(plan: Plan, prepared: Prepared) -> socket.socket:
    """Starts the host. Its first message ("started" or "failed") arrives through the returned socket."""
    fill_standard_streams()
    hide_memory()  # of the client, and of the host forked from it
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    sys.stdout.flush()
    sys.stderr.flush()
    gc.freeze()  # existing objects are not moved, so their pages stay shared
    middle = os.fork()
    if middle == 0:
        _leave_client(ours)
        _become_host()
        _run_host(plan, prepared, theirs)
    theirs.close()
    os.waitpid(middle, 0)
    return ours


def host_here(plan: Plan, prepared: Prepared, client: socket.socket) -> NoReturn:
    """Does the same in this process, which the fork server has forked for it."""
    _become_host()
    _run_host(plan, prepared, client)


def _leave_client(ours: socket.socket) -> None:
    """Becomes an independent process: without terminal, parent or any descriptor of the client except the socket."""
    ours.close()
    os.setsid()
    if os.fork():
        os._exit(0)


def _become_host() -> None:
    call_self(HOST_NAME)
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    os.close(nowhere)
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    adopt_orphans()  # before the tool starts, so that all its orphans can be traced to this session


def _run_host(plan: Plan, prepared: Prepared, client: socket.socket) -> NoReturn:
    """Never returns, because the forked interpreter belongs to the client's command line."""
    clock, place = SystemClock(), str(prepared.home.sessions / short_id(plan.session_id))
    journal = SessionLog(Path(f"{place}.log"), clock)
    try:
        try:
            _host_session(plan, prepared, client, clock, journal, Path(f"{place}.sock"))
        finally:
            Path(f"{place}{SETTINGS_SUFFIX}").unlink(missing_ok=True)
    except Exception as error:  # the session boundary: report it, log it and exit
        journal.crash("the session host failed", error)
        _say(client, {"m": "failed", "status": 1, "text": f"the session host failed: {error}", "hint": ""})
        os._exit(1)
    os._exit(0)


def _host_session(
    plan: Plan, prepared: Prepared, client: socket.socket, clock: Clock, journal: SessionLog, address: Path
) -> None:
    size = prepared.size
    try:
        pty = prepared.parts.spawn(plan, size, prepared.attributes)
    except SpawnRefused as error:
        _say(client, {"m": "failed", "status": error.status, "text": str(error), "hint": error.hint})
        return
    from atlasbridge.core.host.host import SessionHost  # imported after the fork, because the client never needs it

    _leave_tool()
    keep_one_heap()
    journal.note("session started", tool=plan.tool, pid=pty.pid)
    host = SessionHost(plan, pty, size, prepared.parts, prepared.settings, clock, journal)
    host.listen(address)
    if plan.detach:
        _say(client, {"m": "started", "session_id": plan.session_id, "pid": pty.pid})
        client.close()
    host.finish(host.serve(None if plan.detach else client))
    pty.close()


def _leave_tool() -> None:
    """The tool keeps the person's folder, umask and open files; the host keeps none of them."""
    os.chdir("/")
    os.umask(0o077)
    for fd in inheritable_fds():
        os.close(fd)


def keep_one_heap() -> None:
    """Limits the C library to one heap. It would give every thread a heap of its own, and a flood of output would leave
    each of them large. Once is enough, also for forked processes."""
    global _one_heap
    if _one_heap:
        return
    _one_heap = True
    try:
        import ctypes

        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)
    except (ImportError, OSError, AttributeError):
        pass  # another C library


def _say(client: socket.socket, message: dict[str, Any]) -> None:
    try:
        client.sendall(wire.encode(message))
    except OSError:
        pass  # the client is gone
