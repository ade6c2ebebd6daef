"""A command's connection to the hub: one request and its answer, or a stream of events. Blocking, standard library
only."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

from atlasbridge.core import wire
from atlasbridge.core.errors import AtlasBridgeError, ConfigError, HubUnavailable
from atlasbridge.core.home import Home
from atlasbridge.core.hub_connection import dial
from atlasbridge.core.peer import FalsePeer

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
