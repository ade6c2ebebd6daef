"""A start in two steps: the leader of a new session waits on its terminal before its program is known.

It is for a start that will follow and must be fast. Open files, working directory and umask are passed at the start;
user, limits and priority stay as they were when the leader was made.
"""

from __future__ import annotations

import array
import errno
import fcntl
import marshal
import os
import signal
import socket
import struct
import termios
from collections.abc import Mapping, Sequence
from typing import NoReturn

from ptypool.errors import SpawnFailed
from ptypool.process import (
    REPORT,
    RESETTABLE,
    Program,
    SpawnedProcess,
    TermiosAttributes,
    close_all_but,
    exec_first,
    explain,
    fork_quietly,
    lead_session,
    name_program,
    open_terminal,
    read_report,
    reset_signals,
    set_window_size,
)

_LENGTH = struct.Struct("=I")
_HEARD = b"!"
_PATIENCE_S = 2.0  # for a stopped leader, or an overloaded machine
_MOST_FDS = 250  # the kernel accepts 253 at once
_CHUNK = 65536
_CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class LeaderGone(Exception):
    """The leader was killed or stopped before it received its program. Nothing was started."""


class Leader:
    """Not thread-safe. Call `start` or `close`, once."""

    def __init__(self, lifeline: int | None = None) -> None:
        """`lifeline` as in `spawn_process`. Raises SpawnFailed."""
        self._master, self._slave = open_terminal((24, 80), None)
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            self._close_terminal()
            raise SpawnFailed(f"no line to the child: {error.strerror}", error.errno, "terminal") from error
        old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, RESETTABLE)
        try:
            self._pid = fork_quietly()
            if self._pid == 0:
                _lead(self._slave, theirs.detach(), lifeline)
        except OSError as error:
            self._close_terminal()
            ours.close()
            raise SpawnFailed(f"no new process: {error.strerror}", error.errno, "fork") from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)
            theirs.close()
        self._line = ours

    @property
    def pid(self) -> int:
        return self._pid

    def start(
        self,
        argv: Sequence[str | bytes],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        size: tuple[int, int] | tuple[int, int, int, int] = (24, 80),
        termios_attrs: TermiosAttributes | None = None,
        stderr: int = -1,
        limits: tuple[tuple[int, int], ...] = (),
    ) -> SpawnedProcess:
        """As `spawn_process` with `close_fds=False`. After LeaderGone, start the program in another way."""
        try:
            program = name_program(argv, env, cwd, stderr, limits)
            set_window_size(self._slave, *size)
            if termios_attrs is not None:
                termios.tcsetattr(self._slave, termios.TCSANOW, termios_attrs)
            report = self._tell(program)
        except BaseException:
            self.close()
            raise
        if report:
            self.close()
            raise explain(program, *(read_report(report) or ("program", errno.EIO)))
        os.close(self._slave)
        self._line.close()
        return SpawnedProcess(self._pid, self._master)

    def move_above(self, number: int) -> None:
        """Move our descriptors to `number` or higher, because lower ones will be needed."""
        self._master, self._slave = (_move(fd, number) for fd in (self._master, self._slave))
        self._line = socket.socket(fileno=_move(self._line.detach(), number))

    def close(self) -> None:
        """End the leader; it will start nothing."""
        self._line.close()
        os.kill(self._pid, signal.SIGKILL)  # our child is not reaped yet, so its pid is not reused
        os.waitpid(self._pid, 0)
        self._close_terminal()

    def _close_terminal(self) -> None:
        os.close(self._master)
        os.close(self._slave)

    def _tell(self, program: Program) -> bytes:
        """Return its report, empty if it has become the program."""
        numbers = _inheritable()
        umask = os.umask(0o077)
        os.umask(umask)
        order = marshal.dumps((tuple(program), umask, numbers))
        folder = os.open(".", getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._line.settimeout(_PATIENCE_S)
            given = array.array("i", (folder, *numbers))
            head = _LENGTH.pack(len(order))
            self._line.sendmsg([head], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, given)])
            self._line.sendall(order)
            if self._line.recv(1) != _HEARD:
                raise LeaderGone("it was killed")
        except OSError as error:
            raise LeaderGone(f"it does not answer: {error}") from error
        finally:
            os.close(folder)
        self._line.settimeout(None)  # a program on a slow disk takes time
        return self._line.recv(REPORT.size)


def _inheritable() -> list[int]:
    """The descriptors that a forked child would inherit now, besides its terminal."""
    found = []
    for name in os.listdir("/dev/fd"):
        fd = int(name)
        try:
            if fd > 2 and os.get_inheritable(fd):
                found.append(fd)
        except OSError:
            continue  # the descriptor of this listing
    if len(found) > _MOST_FDS:
        raise LeaderGone("too many files are open")
    return sorted(found)


def _move(fd: int, above: int) -> int:
    if fd >= above:
        return fd
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, above)
    os.close(fd)
    return moved


def _lead(slave: int, line: int, lifeline: int | None) -> NoReturn:
    """In the child: do everything that is possible before the program is known, then wait for it and execute it."""
    stage, number = 0, errno.EIO
    told: socket.socket | None = None
    try:
        between = lead_session(slave, lifeline)
        told = socket.socket(fileno=close_all_but(line))
        reset_signals(between)
        program, umask, numbers, fds = _hear(told)
        told.sendall(_HEARD)
        told = socket.socket(fileno=_inherit(told.detach(), numbers, fds))
        os.umask(umask)
        stage = 1
        if program.cwd is not None:
            os.chdir(program.cwd)
        stage = 2
        number = exec_first(program)
    except OSError as error:
        number = error.errno or errno.EIO
    finally:
        try:
            if told is not None:
                told.sendall(REPORT.pack(stage, number))
        finally:
            os._exit(127)


def _hear(line: socket.socket) -> tuple[Program, int, list[int], list[int]]:
    """Return the program and the descriptors that came with it; exit if the parent is gone."""
    fds = array.array("i")
    head, ancillary, _, _ = line.recvmsg(_LENGTH.size, socket.CMSG_SPACE((_MOST_FDS + 1) * fds.itemsize), _CLOEXEC)
    for _, _, payload in ancillary:
        fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
    if len(head) < _LENGTH.size:
        os._exit(0)
    (length,) = _LENGTH.unpack(head)
    data = b""
    while len(data) < length:
        chunk = line.recv(min(_CHUNK, length - len(data)))
        if not chunk:
            os._exit(0)
        data += chunk
    program, umask, numbers = marshal.loads(data)
    return Program(*program), umask, numbers, fds.tolist()


def _inherit(line: int, numbers: Sequence[int], fds: Sequence[int]) -> int:
    """Restore the working directory and every descriptor at its number; return the new number of the socket, which was
    moved away."""
    above = max((2, *numbers)) + 1
    line = _move(line, above)
    for fd in fds if not _CLOEXEC else ():
        os.set_inheritable(fd, False)  # macOS does not set it on received descriptors
    folder, *moved = [_move(fd, above) for fd in fds]
    os.fchdir(folder)
    for fd, number in zip(moved, numbers, strict=True):
        os.dup2(fd, number, inheritable=True)
    return line
