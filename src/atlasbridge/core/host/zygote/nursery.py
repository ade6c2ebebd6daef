"""The zygote itself: waits at its socket, gives a host to whoever knocks, and ends when nobody needs it.

One host is forked ahead (`spare`); who knocks before there is the next one gets a host forked at once.  It reads
nothing of what callers write: that is the child's business (`takeover`), and so nobody can keep it waiting.  It does as
little as can be: whatever it touches between two forks is no longer shared with the host before.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
from collections.abc import Callable
from typing import Any, NoReturn

from atlasbridge.core.clock import Clock
from atlasbridge.core.host.logbook import Logbook
from atlasbridge.core.host.zygote.spare import Spare, await_caller, fork_spare
from atlasbridge.core.host.zygote.takeover import (
    NotForUs,
    above_all,
    become,
    leave_zygote,
    refuse_strangers,
    say_here,
    take_letter,
)
from atlasbridge.core.lean import socket

IDLE_S = 600.0  # without a session of its own, while a hub runs
LOOK_S = 15.0  # how often it looks whether it is needed
_FRESH_S = 1.0  # how long a look at the program's files is good for
_REST_S = 0.025  # after somebody has come: whoever just starts needs the machine more than whoever may come next
_AGAIN_S = 1.0  # after a spare that nobody used has died: something here kills them
_IGNORED = (
    *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGTTIN, signal.SIGTTOU, signal.SIGTSTP),
    signal.SIGCHLD,  # the kernel buries the hosts
)

HostSession = Callable[[list[str], Any, Any], NoReturn]


def claim(path: str) -> int | None:
    """The lock of an address; None: another zygote has it, or is about to."""
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


class Nursery:
    def __init__(
        self,
        path: str,
        surroundings: bytes,
        make_ready: Callable[[], Any],
        host_session: HostSession,
        is_fresh: Callable[[], bool],
        hub_runs: Callable[[], bool],
        clock: Clock,
        journal: Logbook,
        idle_s: float = IDLE_S,
        look_s: float = LOOK_S,
    ) -> None:
        self._path = path
        self._surroundings = surroundings
        self._make_ready = make_ready
        self._host_session = host_session
        self._is_fresh = is_fresh
        self._hub_runs = hub_runs
        self._clock = clock
        self._journal = journal
        self._idle_s = idle_s
        self._look_s = look_s
        self._inode = 0
        self._spare: Spare | None = None
        self._spare_at = 0.0
        self._hosts: list[int] = []
        self._used_at = clock.now()
        self._looked_at = self._used_at
        self._look_at = self._used_at + look_s

    def run(self, lock: int) -> None:
        """Until nobody needs it.  `lock`: of its address, see `claim`."""
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
        listener = self._listen()
        self._journal.note("zygote started", pid=os.getpid(), address=os.path.basename(self._path))
        why = self._serve(listener)
        self._journal.note("zygote ends", pid=os.getpid(), why=why)
        if self._is_ours():
            os.unlink(self._path)
        os.close(lock)

    def live(self, other: socket.socket, connection: int) -> NoReturn:
        """As a host, in a process that was forked for it."""
        self._live(other, connection, lambda: connection, self._make_ready)

    def _listen(self) -> socket.socket:
        try:
            os.unlink(self._path)  # whoever made it held the lock that we hold now
        except FileNotFoundError:
            pass
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        old = os.umask(0o177)
        listener.bind(self._path)
        os.umask(old)
        self._inode = os.stat(self._path).st_ino
        listener.listen(128)
        listener.setblocking(False)
        return listener

    def _is_ours(self) -> bool:
        try:
            return os.stat(self._path).st_ino == self._inode
        except OSError:
            return False

    def _serve(self, listener: Any) -> str:
        """Returns why it ends."""
        waiter = select.poll()
        waiter.register(listener, select.POLLIN)
        while True:
            ready = [fd for fd, _ in waiter.poll(self._patience_s() * 1000)]
            if listener.fileno() in ready:
                if not self._answer(listener, waiter):
                    return "the program has changed"
                self._spare_at, self._look_at = self._clock.now() + _REST_S, self._clock.now() + self._look_s
            elif ready:
                self._drop_spare(waiter)
                self._spare_at = self._clock.now() + _AGAIN_S
            elif self._clock.now() >= self._look_at:  # whatever becomes of the spares
                self._look_at = self._clock.now() + self._look_s
                if why := self._why_end():
                    return why
            elif self._spare is None and self._clock.now() >= self._spare_at:
                self._spare_at = self._clock.now() + _AGAIN_S  # should there be none
                self._raise_spare(listener, waiter)

    def _patience_s(self) -> float:
        next_at = self._look_at if self._spare is not None else min(self._look_at, self._spare_at)
        return max(0.0, next_at - self._clock.now())

    def _answer(self, listener: Any, waiter: select.poll) -> bool:
        """One who has knocked.  False: our files are no longer those of the program, and nobody gets a host."""
        try:
            fd, _ = listener._accept()  # what `accept` makes of it would be thrown away
        except OSError:
            return True  # gone again, or no descriptor to be had
        now = self._clock.now()
        if now > self._looked_at + _FRESH_S:
            self._looked_at = now
            if not self._is_fresh():
                return False
        self._used_at = now
        spare = self._spare
        if spare is not None and spare.hand_over(fd):
            self._hosts.append(spare.pid)
        else:
            self._fork_host(listener, fd)
        os.close(fd)
        self._drop_spare(waiter)
        return True

    def _fork_host(self, listener: Any, fd: int) -> None:
        try:
            pid = os.fork()
        except OSError:
            return  # its caller takes the plain way, and hears there what is wrong
        if pid == 0:
            self._live(listener, fd, lambda: fd)
        self._hosts.append(pid)

    def _raise_spare(self, listener: Any, waiter: select.poll) -> None:
        try:
            spare, line = fork_spare()
        except OSError:
            return  # no process to be had; whoever comes first tries again
        if spare is None:
            self._live(listener, line, lambda: await_caller(line), self._make_ready)
        self._spare = spare
        waiter.register(spare, select.POLLIN)

    def _drop_spare(self, waiter: select.poll) -> None:
        if self._spare is not None:
            waiter.unregister(self._spare)
            self._spare.close()
            self._spare = None

    def _why_end(self) -> str:
        if not self._is_ours():
            return "its socket is gone"
        if self._has_hosts():
            self._used_at = self._clock.now()
            return ""
        if self._clock.now() - self._used_at > self._idle_s:
            return "nobody came"
        return "" if self._hub_runs() else "the hub is gone"

    def _has_hosts(self) -> bool:
        self._hosts = [pid for pid in self._hosts if _is_child(pid)]
        return bool(self._hosts)

    def _live(
        self, listener: socket.socket, keep: int, caller: Callable[[], int], make_ready: Callable[[], Any] | None = None
    ) -> NoReturn:
        """In the child.  Never returns: its stack is the zygote's."""
        try:
            leave_zygote(listener, keep)
            ready = None if make_ready is None else make_ready()
            fd = caller()
            if fd >= 0:
                self._host(fd, ready)
        except NotForUs:
            pass  # the caller sees the connection close, and takes the plain way
        finally:
            os._exit(1)

    def _host(self, fd: int, ready: Any) -> NoReturn:
        connection = socket.socket(fileno=fd)
        refuse_strangers(connection)
        letter, fds = take_letter(connection)
        if letter.surroundings != self._surroundings:
            raise NotForUs("other surroundings")
        above = above_all(letter)
        ready = ready and ready.above(above)
        line = become(letter, fds, connection.detach(), above)
        say_here(line)
        self._host_session([os.fsdecode(word) for word in letter.words], line, ready)


def _is_child(pid: int) -> bool:
    """Whether it lives: the kernel buries it, and a later process of that number is not our child."""
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
