"""The fork server: listens on its socket, forks a host for each client, and ends when no session needs it.

One host is forked ahead, the spare: it accepts the next client itself. The server forks the next spare a little later.
It never reads what clients send, so no client can block it. A client that gets no host forks one itself, with the same
result.
"""

from __future__ import annotations

import fcntl
import os
import select
import socket as public
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

from atlasbridge.core.clock import Clock
from atlasbridge.core.fast_imports import signal, socket
from atlasbridge.core.home import Home
from atlasbridge.core.host.launch import IGNORED
from atlasbridge.core.host.spawn_request import (
    CWD,
    FOLDER,
    GO,
    HERE,
    MOST_FDS,
    SpawnRequest,
    interpreter_environ,
    parse_request,
    request_length,
    wants_zygote,
)
from atlasbridge.core.host.supervisor import SessionLog
from atlasbridge.core.peer import ancestry_of, is_inside, look_at, meet, trace_ancestry
from atlasbridge.core.process import own_environ, own_python, unpack_fds

MOST = 8  # fork servers per home; further kinds of clients do without
_REST_S = 0.025  # delay after a client connected: its tool needs the processor more than the next spare does
_AGAIN_S = 1.0  # delay after a spare died unused: something kills them
_TAKEN, _CHANGED = b"t", b"c"  # messages of a spare: a client has connected; the program's files have changed
_TIMEOUT_S = 2.0
_CHUNK = 65536
_HIGHEST = 64  # the server's few open files have the lowest free numbers
_FD_CEILING = 1 << 20


class Refused(Exception):
    """The client gets no host from here."""


def start_fork_server(home: Home, environ: Mapping[str, str]) -> None:
    """Starts the server in the background, from a client that had to fork its own host. Never from inside a session,
    because no client would trust that server. It gets the variables that an interpreter needs, and no secret of this
    client.
    """
    if not wants_zygote(environ) or is_inside(trace_ancestry(os.getpid(), look_at)):
        return
    if len(list((home.root / FOLDER).glob("*.sock"))) >= MOST:
        return
    needed = own_environ(interpreter_environ(environ), ATLASBRIDGE_HOME=str(home.root), PATH=os.defpath)
    try:
        middle = os.fork()  # not `posix_spawn`: with it the C library ignores two signals, and so would every tool
        if middle == 0:
            _execute_server(own_python("atlasbridge.cli.zygote"), needed)
        os.waitpid(middle, 0)
    except OSError:
        pass  # the system has no process left: every client forks its own host


def _execute_server(command: tuple[str, ...], environ: Mapping[str, str]) -> NoReturn:
    """Runs the server in its own session, as an orphan, without any of the client's open files."""
    try:
        os.setsid()
        if os.fork() == 0:
            os.chdir("/")
            nowhere = os.open(os.devnull, os.O_RDWR)
            for standard in (0, 1, 2):
                os.dup2(nowhere, standard)
            os.closerange(3, min(os.sysconf("SC_OPEN_MAX"), _FD_CEILING))
            os.execve(command[0], command, environ)
    finally:
        os._exit(0)


def claim(path: str) -> int | None:
    """Takes the lock of an address. Returns None if another server has it, or is about to take it."""
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


class Serving(NamedTuple):
    """`host_session` runs in the host that has its client."""

    path: str
    fingerprint: bytes
    host_session: Callable[[list[str], Any], NoReturn]
    is_fresh: Callable[[], bool]
    hub_runs: Callable[[], bool]
    clock: Clock
    journal: SessionLog
    idle_s: float = 600.0  # without a session, while the hub runs
    look_s: float = 15.0  # how often the server checks whether it is still needed


class ForkServer:
    def __init__(self, how: Serving) -> None:
        self._how = how
        self._listener = public.socket(public.AF_UNIX, public.SOCK_STREAM)
        self._hosts: list[int] = []
        self._used_at = how.clock.now()
        self._look_at = self._used_at + how.look_s

    def run(self, lock: int) -> None:
        """Runs until no session needs it. `lock`: see `claim`."""
        for number in (*IGNORED, signal.SIGCHLD):  # the kernel reaps the hosts
            signal.signal(number, signal.SIG_IGN)
        path, journal = self._how.path, self._how.journal
        if os.path.exists(path):
            os.unlink(path)  # left by a server that had the lock before
        old = os.umask(0o177)
        self._listener.bind(path)
        os.umask(old)
        self._listener.listen(128)
        journal.note("zygote started", pid=os.getpid(), address=os.path.basename(path))
        journal.note("zygote ends", pid=os.getpid(), why=self._serve())
        if os.path.exists(path):
            os.unlink(path)
        os.close(lock)

    def _serve(self) -> str:
        """Forks one spare after the other. Returns why it ends."""
        died = False
        while True:
            said, why = self._wait_for_spare()
            if why or said == _CHANGED:
                return why or "the program has changed"
            time.sleep(_REST_S if said == _TAKEN else _AGAIN_S * died)
            died = said != _TAKEN

    def _wait_for_spare(self) -> tuple[bytes, str]:
        """What the spare reports when a client comes (empty: it died), and the reason if the server ends."""
        link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            pid = os.fork()
        except OSError:
            pid = -1  # the system has no process left; the client finds out why
        if pid == 0:
            link.close()
            self._be_spare(theirs)
        theirs.close()
        while not _is_readable(link, max(0.0, self._look_at - self._how.clock.now())):
            if why := self._why_end():
                link.close()  # this ends the spare
                return b"", why
        said = link.recv(1)
        link.close()
        if said != _TAKEN:
            return said, self._why_end()
        self._hosts.append(pid)
        self._used_at = self._how.clock.now()
        self._look_at = self._used_at + self._how.look_s
        return said, ""

    def _why_end(self) -> str:
        now = self._how.clock.now()
        if now < self._look_at:
            return ""
        self._look_at = now + self._how.look_s
        if not os.path.exists(self._how.path):
            return "its socket is gone"
        self._hosts = [pid for pid in self._hosts if _is_child(pid)]
        if self._hosts:
            self._used_at = now
            return ""
        if now - self._used_at > self._how.idle_s:
            return "nobody came"
        return "" if self._how.hub_runs() else "the hub is gone"

    def _be_spare(self, server: socket.socket) -> NoReturn:
        """Runs in the child and never returns, because its stack is the server's. Closes the server's files, above all
        its lock."""
        try:
            os.setsid()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # it reaps its own children
            for fd in {*range(3, _HIGHEST)} - {self._listener.fileno(), server.fileno()}:
                with suppress(OSError):
                    os.close(fd)
            if _is_readable(self._listener, None, server):  # unless the server has ended
                fresh = self._how.is_fresh()
                connection = socket.socket(fileno=self._listener.accept()[0].detach())
                server.send(_TAKEN if fresh else _CHANGED)
                server.close()
                self._listener.close()
                if fresh:
                    self._be_host(connection)
        except Refused:
            pass  # the client sees the connection close, and forks its own host
        finally:
            os._exit(1)

    def _be_host(self, connection: socket.socket) -> NoReturn:
        check_client(connection)
        request, fds = _receive(connection)
        if request.fingerprint != self._how.fingerprint:
            raise Refused("another fingerprint")
        # above all descriptor numbers of the client
        above = max((3, *(1 + int(name) for name in request.fds if name != CWD)))
        client = _take_over(request, fds, connection.detach(), above)
        client.settimeout(_TIMEOUT_S)
        try:
            client.sendall(HERE)
            said = client.recv(len(GO))
        except OSError:
            said = b""
        if said != GO:
            raise Refused("the client has stopped waiting")  # and has forked its own host
        client.settimeout(None)
        self._how.host_session([os.fsdecode(word) for word in request.words], client)


def _is_child(pid: int) -> bool:
    """Whether the host is alive: the kernel reaps it, and a later process with that pid is not our child."""
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _is_readable(link: socket.socket, timeout_s: float | None, other: socket.socket | None = None) -> bool:
    """Whether `link` is readable; `other` also ends the wait."""
    waiter = select.poll()
    for one in (link, other) if other else (link,):
        waiter.register(one.fileno(), select.POLLIN)
    ready = [fd for fd, _ in waiter.poll(None if timeout_s is None else timeout_s * 1000)]
    return link.fileno() in ready and (other is None or other.fileno() not in ready)


def check_client(connection: socket.socket) -> None:
    """Refuses other users, and all processes inside a session: their children must stay below their host."""
    peer = meet(connection, listens=True)
    if peer.uid != os.getuid():
        raise Refused("another user")
    ancestry = ancestry_of(peer)
    if not ancestry:
        raise Refused("a process that cannot be traced")
    if is_inside(ancestry):
        raise Refused("from inside a session")


def _receive(connection: socket.socket) -> tuple[SpawnRequest, list[int]]:
    connection.settimeout(_TIMEOUT_S)
    data, fds = b"", list[int]()
    try:
        while not (length := request_length(data)) or len(data) < length:
            space = socket.CMSG_SPACE((MOST_FDS + 1) * 4)
            chunk, ancillary, _, _ = connection.recvmsg(_CHUNK, space, socket.MSG_CMSG_CLOEXEC)
            for level, kind, payload in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    fds += unpack_fds(payload)
            if not chunk:
                raise Refused("the request is cut")
            data += chunk
        request = parse_request(data)
    except (OSError, ValueError) as error:
        raise Refused(f"no request: {error}") from error
    if len(fds) != len(request.fds):
        raise Refused("descriptors are missing")
    return request, fds


def _take_over(request: SpawnRequest, fds: Sequence[int], connection: int, above: int) -> public.socket:
    """Takes over the client's descriptors, folder, umask and environment. Returns the connection, moved above them."""
    numbers = [-1 if name == CWD else int(name) for name in request.fds]
    moved = [_move(fd, above) for fd in fds]
    client = public.socket(fileno=_move(connection, above))
    for fd, number in zip(moved, numbers, strict=True):
        if number < 0:
            os.fchdir(fd)
        else:
            os.dup2(fd, number, inheritable=True)
        os.close(fd)
    os.umask(request.umask)
    for name in list(os.environb):
        del os.environb[name]
    for name, value in request.environ.items():
        os.environb[name] = value
    time.tzset()
    return client


def _move(fd: int, above: int) -> int:
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, above)
    os.close(fd)
    return moved
