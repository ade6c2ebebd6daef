"""The hub from a command's view: whether one runs, of which version, and a connection for requests and events.

Blocking, standard library only.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from atlasbridge import __version__
from atlasbridge.core import wire
from atlasbridge.core.errors import AtlasBridgeError, ConfigError, HubUnavailable
from atlasbridge.core.home import Home
from atlasbridge.core.hub_connection import dial, left_address
from atlasbridge.core.peer import FalsePeer
from atlasbridge.core.system import OWN_FILE, try_lock
from atlasbridge.core.wire import PROTOCOL


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
FALSE_HINT = "nothing was said to it; end that process, then: atlasbridge hub restart"


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
            kind = ConfigError if answer.get("reason") == "bad_configuration" else AtlasBridgeError
            raise kind(str(answer.get("message", "the hub refused")), str(answer.get("hint", "")))
        return answer

    def stream(self, op: str, **fields: Any) -> Iterator[dict[str, Any]]:
        """Yields every line until the hub closes the connection."""
        self._send({"op": op, **fields})
        self._socket.settimeout(None)
        while True:
            try:
                yield self._next()
            except HubUnavailable:
                return

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._socket.sendall(wire.encode(message))
        except OSError as error:
            raise HubUnavailable(f"the hub went away: {error.strerror or error}", START_HINT) from error

    def _next(self) -> dict[str, Any]:
        while not self._ready:
            try:
                data = self._socket.recv(65536)
            except TimeoutError as error:
                raise HubUnavailable("the hub does not answer", "look at it with: atlasbridge logs") from error
            except OSError as error:
                raise HubUnavailable(f"the hub went away: {error.strerror or error}", START_HINT) from error
            if not data:
                raise HubUnavailable("the hub closed the connection", START_HINT)
            self._ready.extend(self._buffer.feed(data))
        return self._ready.pop(0)


def connect(home: Home, timeout_s: float = 30.0) -> socket.socket:
    """Returns a connected socket to this home's hub, over whichever transport it uses."""
    try:
        return dial(home.socket, timeout_s)
    except FalsePeer as error:
        raise FalseHub(f"this is not the hub: {error}", FALSE_HINT) from error
    except (BlockingIOError, TimeoutError) as error:
        raise HubUnavailable("the hub does not answer", "look at it with: atlasbridge logs") from error
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
    if (protocol, _numbers(version)) < (PROTOCOL, _numbers(__version__)):
        return f"{place} is of an older version {said}than this command ({__version__})".replace("  ", " ")
    return f"{place} is of a newer version {said}than this command ({__version__})".replace("  ", " ")


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
