"""In the forked child: read the letter, decide whether it may be obeyed, and become what its writer would have forked.

What cannot be handed over must be the same already: see `surroundings`.
"""

from __future__ import annotations

import fcntl
import os
import socket as public
import time
from collections.abc import Sequence

from atlasbridge.core.host.terminal.lending import unpack_fds
from atlasbridge.core.host.zygote.letter import CWD, GO, HERE, MOST_FDS, Letter, read_letter, whole_length
from atlasbridge.core.kin import is_inside, look_at, trace_line
from atlasbridge.core.lean import signal, socket
from atlasbridge.core.peer import read_peer

_PATIENCE_S = 2.0
_CHUNK = 65536
_HIGHEST = 64  # a zygote has half a dozen files open, and their numbers are the lowest that were free


class NotForUs(Exception):
    """Whoever wrote takes the plain way."""


def take_letter(connection: socket.socket) -> tuple[Letter, list[int]]:
    """The whole letter and the descriptors that came with it."""
    connection.settimeout(_PATIENCE_S)
    data, fds = b"", list[int]()
    try:
        while not (length := whole_length(data)) or len(data) < length:
            space = socket.CMSG_SPACE((MOST_FDS + 1) * 4)
            chunk, ancillary, _, _ = connection.recvmsg(_CHUNK, space, socket.MSG_CMSG_CLOEXEC)
            for level, kind, payload in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    fds += unpack_fds(payload)
            if not chunk:
                raise NotForUs("the letter is cut")
            data += chunk
        letter = read_letter(data)
    except (OSError, ValueError) as error:
        raise NotForUs(f"no letter: {error}") from error
    if len(fds) != len(letter.fds):
        raise NotForUs("descriptors are missing")
    return letter, fds


def refuse_strangers(connection: socket.socket) -> None:
    """Another user; and whatever a session's tool has started: what it starts must stay below its host."""
    peer = read_peer(connection)
    if peer.uid != os.getuid():
        raise NotForUs("another user")
    line = trace_line(peer.pid, look_at) if peer.pid > 0 else ()
    if not line:
        raise NotForUs("a process that cannot be traced")
    if is_inside(line):
        raise NotForUs("from inside a session")


def become(letter: Letter, fds: Sequence[int], connection: int, above: int) -> public.socket:
    """Its descriptors, folder, umask and environment.  Returns the connection, which has moved out of their way."""
    numbers = [-1 if name == CWD else int(name) for name in letter.fds]
    moved = [_move(fd, above) for fd in fds]
    line = public.socket(fileno=_move(connection, above))
    for fd, number in zip(moved, numbers, strict=True):
        if number < 0:
            os.fchdir(fd)
        else:
            os.dup2(fd, number, inheritable=True)
        os.close(fd)
    os.umask(letter.umask)
    for name in list(os.environb):
        del os.environb[name]
    for name, value in letter.environ.items():
        os.environb[name] = value
    time.tzset()
    return line


def above_all(letter: Letter) -> int:
    """The lowest number that nothing of the caller's has."""
    return max((3, *(1 + int(name) for name in letter.fds if name != CWD)))


def _move(fd: int, above: int) -> int:
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, above)
    os.close(fd)
    return moved


def say_here(connection: socket.socket) -> None:
    """The letter is good, and its writer is going to have a host."""
    connection.settimeout(_PATIENCE_S)
    try:
        connection.sendall(HERE)
    except OSError as error:
        raise NotForUs("the client has left") from error


def await_go(connection: socket.socket) -> None:
    """Nothing starts before the client says so: one that gave up waiting has taken the plain way."""
    try:
        if connection.recv(len(GO)) != GO:
            raise NotForUs("the client has left")
    except OSError as error:
        raise NotForUs("the client has left") from error
    connection.settimeout(None)


def leave_zygote(listener: socket.socket, keep: int) -> None:
    """Nothing of the zygote's stays open here, above all not its lock; children are ours to wait for again."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    listener.detach()
    os.closerange(3, keep)
    os.closerange(keep + 1, keep + _HIGHEST)
