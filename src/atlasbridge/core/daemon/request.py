"""The hub from a command's view: whether one runs, of which version, a connection for requests and events, and how it
is started and stopped.

Blocking, standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atlasbridge import __version__
from atlasbridge.core import wire
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.errors import AtlasBridgeError, ConfigError, HubUnavailable
from atlasbridge.core.fast_imports import signal
from atlasbridge.core.home import Home
from atlasbridge.core.hub_connection import dial, left_address
from atlasbridge.core.peer import FalsePeer, is_inside, look_at, trace_ancestry
from atlasbridge.core.process import first_line, own_environ, own_python, start_alone
from atlasbridge.core.system import OWN_FILE, try_lock
from atlasbridge.core.wire import PROTOCOL

if TYPE_CHECKING:
    import subprocess


class HubLock:
    """Ensures one hub per home: the kernel releases `hub.lock` however the hub ends. The file also contains the
    holder's pid."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    def acquire(self) -> bool:
        """Does not wait. Returns False if another hub has the lock."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | OWN_FILE, 0o600)
        if not try_lock(fd):
            os.close(fd)
            return False
        os.ftruncate(fd, 0)
        os.write(fd, f"{os.getpid()}\n".encode())
        self._fd = fd
        return True

    def release(self) -> None:
        """Keeps the file: if it were removed, two hubs could lock two files with the same name."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def lock_holder(path: Path) -> int | None:
    """The pid of the running hub; None if no hub has the lock."""
    try:
        fd = os.open(path, os.O_RDWR | OWN_FILE)
    except OSError:
        return None
    try:
        if try_lock(fd):
            return None
        text = os.read(fd, 32).strip()
        return int(text) if text.isdigit() else 0
    finally:
        os.close(fd)


def is_starting(path: Path) -> bool:
    return lock_holder(path) is not None


START_HINT = "start it with: atlasbridge hub start"
FALSE_HINT = "end that process, then run: atlasbridge hub restart"


class FalseHub(HubUnavailable):
    """Another program listens at the hub's address."""


class HubClient:
    """One connection. `request` can be called repeatedly; `stream` uses up the connection."""

    def __init__(self, home: Home, timeout_s: float = 30.0) -> None:
        self._timeout_s = timeout_s
        self._buffer = wire.LineBuffer()
        self._ready: list[dict[str, Any]] = []
        self._socket = connect(home, timeout_s)

    def __enter__(self) -> HubClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def request(self, op: str, **fields: Any) -> dict[str, Any]:
        """Returns the hub's answer, even a refusal (`ok` is false)."""
        self._send({"op": op, **fields})
        return self._next()

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """Returns the hub's answer; raises an exception for a refusal."""
        answer = self.request(op, **fields)
        if not answer.get("ok"):
            raise _refusal(answer)
        return answer

    def stream(self, op: str, **fields: Any) -> Iterator[dict[str, Any]]:
        """Yields every line until the hub closes the connection; nothing if it did so before it was asked."""
        try:
            self._send({"op": op, **fields})
            self._socket.settimeout(None)
            while (line := self._next()).get("ok") is not False:
                yield line
        except HubUnavailable:
            return
        raise _refusal(line)

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._socket.sendall(wire.encode(message))
        except OSError as error:
            raise HubUnavailable(
                f"the connection to the hub was lost: {error.strerror or error}", START_HINT
            ) from error

    def _next(self) -> dict[str, Any]:
        while not self._ready:
            try:
                data = self._socket.recv(65536)
            except TimeoutError as error:
                raise HubUnavailable("the hub does not answer", "read its log with: atlasbridge logs --hub") from error
            except OSError as error:
                raise HubUnavailable(
                    f"the connection to the hub was lost: {error.strerror or error}", START_HINT
                ) from error
            if not data:
                raise HubUnavailable("the hub closed the connection", START_HINT)
            self._ready.extend(self._buffer.feed(data))
        return self._ready.pop(0)


def _refusal(answer: Mapping[str, Any]) -> AtlasBridgeError:
    kind = ConfigError if answer.get("reason") == "bad_configuration" else AtlasBridgeError
    return kind(str(answer.get("message", "the hub refused")), str(answer.get("hint", "")))


def connect(home: Home, timeout_s: float = 30.0) -> socket.socket:
    """Returns a connected socket to this home's hub, over whichever transport it uses."""
    try:
        return dial(home.socket, timeout_s)
    except FalsePeer as error:
        raise FalseHub(f"this is not the hub: {error}", FALSE_HINT) from error
    except (BlockingIOError, TimeoutError) as error:
        raise HubUnavailable("the hub does not answer", "read its log with: atlasbridge logs --hub") from error
    except OSError as error:
        raise HubUnavailable("the hub is not running", START_HINT) from error


# A hub writes its version to a file, so that a command does not have to ask. The file is valid while the process that
# wrote it has the hub's lock.

HINT = "restart it with: atlasbridge hub restart (sessions continue, open prompts are kept)"
_PATIENCE_S = 2.0
_FILE = "hub.version"


def own_version() -> dict[str, Any]:
    return {"version": __version__, "protocol": PROTOCOL}


def write_version_file(home: Home) -> None:
    """Called by a hub that has just taken its lock. If the file cannot be written (a full disk), clients ask the hub
    instead."""
    remove_version_file(home)  # a killed hub could have had our pid
    with contextlib.suppress(OSError):
        (home.root / _FILE).write_text(f"{os.getpid()} {PROTOCOL} {__version__}\n")


def remove_version_file(home: Home) -> None:
    with contextlib.suppress(OSError):
        (home.root / _FILE).unlink(missing_ok=True)


def read_version_file(home: Home) -> dict[str, Any] | None:
    """The version from the file; None if the file does not certainly belong to the running hub."""
    try:
        pid, protocol, version = (home.root / _FILE).read_text().split()
        if home.hub is not None or lock_holder(home.lock) != int(pid):
            return None  # it belongs to a killed hub, or our hub listens elsewhere
        return {"pid": int(pid), "protocol": int(protocol), "version": version}
    except (OSError, ValueError):
        return None


def compare_version(answer: Mapping[str, Any]) -> str:
    """Returns a sentence if the hub that sent this answer has another version; "" otherwise."""
    protocol, version = int(answer.get("protocol", 1)), str(answer.get("version", ""))
    if (protocol, version) == (PROTOCOL, __version__):
        return ""
    place = f"the hub (process {answer.get('pid', '?')})"
    said = f"{version} " if version else ""
    older = (protocol, _numbers(version)) < (PROTOCOL, _numbers(__version__))
    return f"{place} is of {'an older' if older else 'a newer'} version {said}than this command ({__version__})"


def look_at_hub(home: Home) -> str:
    if left_address(home.socket) is None:
        return ""
    if (left := read_version_file(home)) is not None:
        return compare_version(left)
    try:
        with HubClient(home, timeout_s=_PATIENCE_S) as hub:
            return compare_version(hub.request("ping"))
    except HubUnavailable:
        return ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


# Starting and stopping it. Several starters can race: the lock allows only one hub. A starter waits on a pipe of the
# new hub. One line says that the hub listens, or why it cannot.

ALREADY_RUNNING = "already running"
_TAKEN_BACK_S = 5.0  # for a session's host to start a hub, and for a hub to restore its own socket
_ENDING_S = 1.0  # for a hub that ends without reporting


def ensure_hub(home: Home, timeout_s: float = 15.0) -> bool:
    """Ensures that a hub listens. Returns True if this call started it."""
    clock = SystemClock()
    home.prepare()
    deadline = clock.now() + timeout_s
    while True:
        try:
            connect(home, timeout_s=5.0).close()
        except FalseHub:
            if clock.now() > deadline - timeout_s + _TAKEN_BACK_S:
                raise
        except HubUnavailable:
            pass
        else:
            return False
        if clock.now() > deadline:
            raise HubUnavailable("the hub did not start in time", f"read its log: {home.log}")
        if not home.may_start_hub:
            raise HubUnavailable(f"no hub listens at {home.socket}", "the owner of the hub must start it")
        if is_inside(trace_ancestry(os.getpid(), look_at)):
            _wait_for_the_host(clock.now() > deadline - timeout_s + _TAKEN_BACK_S)
        elif _spawn_and_wait(home, max(0.1, deadline - clock.now())):
            return True
        time.sleep(0.05)  # another hub has the lock: it is about to listen or to end


def _wait_for_the_host(long_enough: bool) -> None:
    """A process inside a session does not start a hub; the session's host does."""
    if long_enough:
        raise HubUnavailable("the hub is not running", "start it outside of this session: atlasbridge hub start")
    time.sleep(0.05)


def _spawn_and_wait(home: Home, timeout_s: float) -> bool:
    """Returns True if the new hub listens; False if another hub has the lock, or the new one is still starting after
    the timeout. Raises the error that the new hub reports."""
    process, verdict = _start_and_hear(home, timeout_s)
    if verdict.get("ready") or not (verdict or _has_ended(process)):
        process.returncode = 0  # it keeps running as a daemon, so its exit status is not needed here
        return bool(verdict)
    process.wait()
    error = str(verdict.get("error", ""))
    if error == ALREADY_RUNNING:
        return False
    if not error:
        raise HubUnavailable("the hub ended while it started", f"read its log: {home.log}")
    kind = ConfigError if verdict.get("exit_code") == ConfigError.exit_code else AtlasBridgeError
    raise kind(error, str(verdict.get("hint", "")))


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    from subprocess import TimeoutExpired  # imported late: most commands find a hub that runs

    try:
        process.wait(_ENDING_S)
    except TimeoutExpired:
        return False
    return True


def _start_and_hear(home: Home, timeout_s: float) -> tuple[subprocess.Popen[bytes], dict[str, Any]]:
    environ = own_environ(os.environ, ATLASBRIDGE_HOME=str(home.root))
    if not hasattr(select, "poll"):  # on Windows a pipe can neither be passed on nor polled: the first line of output
        process = start_alone(own_python("atlasbridge.core.daemon", "--ready-fd", "1"), environ, answer=True)
        line = first_line(process, timeout_s)
        return process, dict(json.loads(line)) if line else {}
    reader, writer = os.pipe()
    command = own_python("atlasbridge.core.daemon", "--ready-fd", str(writer))
    try:
        process = start_alone(command, environ, cwd="/", pass_fds=(writer,))
    finally:
        os.close(writer)
    try:
        return process, read_verdict(reader, timeout_s)
    finally:
        os.close(reader)


def read_verdict(fd: int, timeout_s: float) -> dict[str, Any]:
    waiter = select.poll()  # not select(): a caller can have more than 1024 descriptors
    waiter.register(fd, select.POLLIN)
    if not waiter.poll(timeout_s * 1000):
        return {}
    with os.fdopen(os.dup(fd), "rb") as pipe:
        line = pipe.readline()
    return dict(json.loads(line)) if line else {}


def await_session(home: Home, session_id: str, patience_s: float) -> bool:
    """Waits until the hub knows this session, even if the hub is still starting. Returns False if it does not in
    time."""
    clock = SystemClock()
    deadline = clock.now() + patience_s
    while (left_s := deadline - clock.now()) > 0:
        try:
            with HubClient(home, timeout_s=left_s + 1.0) as hub:
                return bool(hub.request("session.wait", session_id=session_id, patience_s=left_s).get("known"))
        except HubUnavailable:
            time.sleep(0.02)
    return False


def stop_hub(home: Home, timeout_s: float = 15.0) -> bool:
    """Stops the hub and waits until it has ended, even if it is still starting. Returns False if none runs."""
    clock = SystemClock()
    deadline = clock.now() + timeout_s
    while not (pid := lock_holder(home.lock)):
        if not is_starting(home.starting):
            return False
        if clock.now() > deadline:
            raise AtlasBridgeError("a hub is still starting", "try again in a moment")
        time.sleep(0.02)
    _ask_to_stop(home, pid)
    while lock_holder(home.lock) == pid:
        if clock.now() > deadline:
            raise AtlasBridgeError(f"the hub (process {pid}) does not end", f"end it with: kill -9 {pid}")
        time.sleep(0.02)
    return True


def _ask_to_stop(home: Home, pid: int) -> None:
    """Asks through the socket, where the hub checks the caller. A hub that does not answer, or an older one, gets a
    signal."""
    try:
        with HubClient(home, timeout_s=5.0) as hub:
            answer = hub.request("stop")
    except HubUnavailable:
        answer = {"ok": False, "reason": "unknown_op"}
    if answer.get("ok"):
        return
    if answer.get("reason") != "unknown_op":
        raise AtlasBridgeError(str(answer.get("message", "the hub refused to stop")))
    os.kill(pid, signal.SIGTERM)
