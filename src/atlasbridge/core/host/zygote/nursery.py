"""The zygote itself: waits at its socket, forks a host for whoever knocks, and ends when nobody needs it.

It reads nothing of what callers write: that is the child's business (`takeover`), and so nobody can keep it waiting.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import socket
from collections.abc import Callable
from typing import NoReturn

from atlasbridge.core.clock import Clock
from atlasbridge.core.host.logbook import Logbook
from atlasbridge.core.host.terminal.wakeup import Wakeup
from atlasbridge.core.host.zygote.takeover import NotForUs, become, begin, leave_zygote, refuse_strangers, take_letter

IDLE_S = 600.0  # without a session of its own, while a hub runs
_LOOK_S = 15.0
_STALE = 3  # the exit status of a child that found other code on the disk than it was made of
_IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGTTIN, signal.SIGTTOU, signal.SIGTSTP)

HostSession = Callable[[list[str], socket.socket], NoReturn]


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
    ) -> None:
        self._path = path
        self._surroundings = surroundings
        self._host_session = host_session
        self._is_fresh = is_fresh
        self._hub_runs = hub_runs
        self._clock = clock
        self._journal = journal
        self._signals = Wakeup()
        self._hosts: set[int] = set()
        self._used_at = clock.now()
        self._over = ""  # why it ends

    def run(self) -> None:
        """Until nobody needs it; at once where another zygote has this address."""
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        lock = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        self._take_signals()
        listener = self._listen()
        self._journal.note("zygote started", pid=os.getpid(), address=os.path.basename(self._path))
        self._serve(listener)
        self._journal.note("zygote ends", pid=os.getpid(), why=self._over)
        if self._is_ours(listener):
            os.unlink(self._path)
        os.close(lock)

    def _take_signals(self) -> None:
        for number in _IGNORED:
            signal.signal(number, signal.SIG_IGN)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(self._signals.write_fd, warn_on_full_buffer=False)

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

    def _is_ours(self, listener: socket.socket) -> bool:
        try:
            return os.stat(self._path).st_ino == self._inode
        except OSError:
            return False

    def _serve(self, listener: socket.socket) -> None:
        waiter = select.poll()
        waiter.register(listener, select.POLLIN)
        waiter.register(self._signals.fileno(), select.POLLIN)
        while not self._over:
            ready = {fd for fd, _ in waiter.poll(_LOOK_S * 1000)}
            if signal.SIGTERM in self._signals.take():
                self._over = "it was told to"
            self._reap()
            if listener.fileno() in ready and not self._over:
                self._accept(listener)
            self._over = self._over or self._why_end(listener)

    def _why_end(self, listener: socket.socket) -> str:
        if not self._is_ours(listener):
            return "its socket is gone"
        idle_s = self._clock.now() - self._used_at
        if self._hosts or idle_s < _LOOK_S:
            return ""
        return "nobody came" if idle_s > IDLE_S else "" if self._hub_runs() else "the hub is gone"

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._hosts.discard(pid)
            self._used_at = self._clock.now()
            if os.waitstatus_to_exitcode(status) == _STALE:
                self._over = "the program has changed"

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except OSError:
            return  # gone again, or no descriptor to be had
        try:
            pid = os.fork()
        except OSError:
            pid = -1  # its caller takes the plain way, and hears there what is wrong
        if pid == 0:
            self._host(listener, connection)
        connection.close()
        if pid > 0:
            self._hosts.add(pid)
        self._used_at = self._clock.now()

    def _host(self, listener: socket.socket, connection: socket.socket) -> NoReturn:
        """In the child.  Never returns: its stack is the zygote's."""
        status = 1
        try:
            leave_zygote(listener, connection)
            refuse_strangers(connection)
            letter, fds = take_letter(connection)
            if letter.surroundings != self._surroundings:
                raise NotForUs("other surroundings")
            if not self._is_fresh():
                status = _STALE
                raise NotForUs("the program has changed")
            line = become(letter, fds, connection)
            begin(line)
            self._host_session([os.fsdecode(word) for word in letter.words], line)
        except NotForUs:
            pass  # the caller sees the connection close, and takes the plain way
        finally:
            os._exit(status)
