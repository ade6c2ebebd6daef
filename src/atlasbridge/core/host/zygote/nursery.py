"""The zygote itself: waits at its socket, forks a host for whoever knocks, and ends when nobody needs it.

It reads nothing of what callers write: that is the child's business (`takeover`), and so nobody can keep it waiting.
It does as little as can be: whatever it touches between two forks is no longer shared with the host before.
"""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Callable
from typing import Any, NoReturn

from atlasbridge.core.clock import Clock
from atlasbridge.core.host.logbook import Logbook
from atlasbridge.core.host.zygote.takeover import NotForUs, become, begin, leave_zygote, refuse_strangers, take_letter
from atlasbridge.core.lean import socket

IDLE_S = 600.0  # without a session of its own, while a hub runs
LOOK_S = 15.0  # how often it looks whether it is needed
_FRESH_S = 1.0  # how long a look at the program's files is good for
_IGNORED = (
    *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGTTIN, signal.SIGTTOU, signal.SIGTSTP),
    signal.SIGCHLD,  # the kernel buries the hosts
)

HostSession = Callable[[list[str], Any], NoReturn]


class Nursery:
    def __init__(
        self,
        path: str,
        surroundings: bytes,
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
        self._host_session = host_session
        self._is_fresh = is_fresh
        self._hub_runs = hub_runs
        self._clock = clock
        self._journal = journal
        self._idle_s = idle_s
        self._look_s = look_s
        self._inode = 0
        self._used_at = clock.now()
        self._looked_at = self._used_at

    def run(self) -> None:
        """Until nobody needs it; at once where another zygote has this address."""
        lock = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
        listener = self._listen()
        self._journal.note("zygote started", pid=os.getpid(), address=os.path.basename(self._path))
        why = self._serve(listener)
        self._journal.note("zygote ends", pid=os.getpid(), why=why)
        if self._is_ours():
            os.unlink(self._path)
        os.close(lock)

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
        listener.settimeout(self._look_s)
        return listener

    def _is_ours(self) -> bool:
        try:
            return os.stat(self._path).st_ino == self._inode
        except OSError:
            return False

    def _serve(self, listener: Any) -> str:
        """Returns why it ends."""
        while True:
            try:
                fd, _ = listener._accept()  # what `accept` makes of it would be thrown away
            except TimeoutError:
                if why := self._why_end():
                    return why
                continue
            except OSError:
                continue  # gone again, or no descriptor to be had
            now = self._clock.now()
            if now > self._looked_at + _FRESH_S:
                self._looked_at = now
                if not self._is_fresh():
                    return "the program has changed"
            self._used_at = now
            try:
                if os.fork() == 0:
                    self._host(listener, fd)
            except OSError:
                pass  # its caller takes the plain way, and hears there what is wrong
            os.close(fd)

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
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return False
        return True

    def _host(self, listener: socket.socket, fd: int) -> NoReturn:
        """In the child.  Never returns: its stack is the zygote's."""
        try:
            leave_zygote(listener, fd)
            connection = socket.socket(fileno=fd)
            refuse_strangers(connection)
            letter, fds = take_letter(connection)
            if letter.surroundings != self._surroundings:
                raise NotForUs("other surroundings")
            line = become(letter, fds, connection)
            begin(line)
            self._host_session([os.fsdecode(word) for word in letter.words], line)
        except NotForUs:
            pass  # the caller sees the connection close, and takes the plain way
        finally:
            os._exit(1)
