"""The client of a session without Unix sockets (Windows): shows the session's output on this console, and sends the
keys that are typed here.

`console` handles the console's keys and its size. On Unix, the terminal is handed over instead.
"""

from __future__ import annotations

import socket
import threading
from typing import Any

from atlasbridge.core import wire
from atlasbridge.core.ids import short_id
from atlasbridge.core.system import POLLIN, make_poller
from atlasbridge.core.tty import LEFT, Console, Ending, Size, parting_words

_LOOK_S = 0.2  # a console does not report a new size
_READ_BYTES = 65536


class PortClient:
    def __init__(self, link: socket.socket, console: Console) -> None:
        self._link = link
        self._console = console
        self._buffer = wire.LineBuffer()
        self._speaking = threading.Lock()
        self._session_id = ""
        self._size = console.size()
        self._waiter = make_poller()
        self._waiter.register(link, POLLIN)

    def run(self) -> Ending:
        """Run until the session ends or this console leaves it."""
        try:
            while True:
                ending = self._turn()
                if ending is not None:
                    return ending
        finally:
            self._link.close()

    def type(self, keys: bytes) -> None:
        self._say({"m": "keys", "data": keys.decode("latin-1")})

    def _turn(self) -> Ending | None:
        """Handle the next message, or check the console's size if there is none."""
        if not self._waiter.poll(_LOOK_S * 1000):
            self._follow_size()
            return None
        try:
            data = self._link.recv(_READ_BYTES)
        except OSError:
            data = b""
        if not data:
            return self._host_died()
        for message in self._buffer.feed(data):
            ending = self._on_message(message)
            if ending is not None:
                return ending
        return None

    def _on_message(self, message: dict[str, Any]) -> Ending | None:
        match message.get("m"):
            case "started":
                self._session_id = str(message["session_id"])
                self._say({"m": "attach", "past": True, **_size_fields(self._size)})
            case "attached":
                threading.Thread(target=self._relay_keys, name="keys", daemon=True).start()
            case "out":
                self._console.write(str(message["data"]).encode("latin-1"))
            case "detached":
                return Ending(LEFT, parting_words(str(message["why"]), short_id(self._session_id)))
            case "ended":
                return Ending(int(message["status"]), str(message.get("text", "")))
            case "failed":
                return Ending(int(message["status"]), str(message["text"]), str(message.get("hint", "")))
        return None

    def _relay_keys(self) -> None:
        while keys := self._console.read_keys():
            self.type(keys)
        self._say({"m": "leave"})  # this console is gone; the session continues without it

    def _follow_size(self) -> None:
        size = self._console.size()
        if size != self._size:
            self._size = size
            self._say({"m": "size", **_size_fields(size)})

    def _host_died(self) -> Ending:
        if self._console.is_terminal:
            from atlasbridge.core.screen.redraw import SAFE_RESET

            self._console.write(SAFE_RESET)
        name = short_id(self._session_id)
        return Ending(1, "the session host died, and the tool with it", f"its log: sessions/{name}.log")

    def _say(self, message: dict[str, Any]) -> None:
        try:
            with self._speaking:
                self._link.sendall(wire.encode(message))
        except OSError:
            pass  # the host is gone; the next read reports it


def _size_fields(size: Size) -> dict[str, int]:
    return {"rows": size.rows, "cols": size.cols}
