"""One question to the hub. For the hub it is a session host without a terminal, which "types" by returning the answer.

So all guarantees of a terminal's prompt apply: claim, audit, exactly once, restarts of the hub.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from typing import Any

from atlasbridge.core import wire
from atlasbridge.core.clock import SystemClock, iso
from atlasbridge.core.daemon.request import connect, ensure_hub
from atlasbridge.core.errors import HubUnavailable
from atlasbridge.core.home import Home
from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.codec import encode_prompt
from atlasbridge.core.prompt.model import Answer, Prompt
from atlasbridge.core.prompt.question import Handed
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.system import POLLIN, make_poller
from atlasbridge.integrations.caller_label import Origin

RETRY_S = 0.25
FAREWELL_S = 3.0  # how long to wait for the hub's confirmation of the end
_CLOSED = {"expired": "expired", "canceled": "withdrawn", "failed": "withdrawn"}

Message = dict[str, Any]


class OpenQuestion:
    """Asks one question. `ask` blocks; `withdraw` can be called from another thread or a signal handler."""

    def __init__(self, home: Home, origin: Origin) -> None:
        self._home = home
        self._clock = SystemClock()
        self._record = SessionRecord(
            session_id=new_id(),
            tool=origin.tool,
            command=origin.command,
            cwd=origin.folder,
            pid=origin.asker or os.getpid(),
            host_pid=os.getpid(),
            started_at=iso(self._clock.wall()),
            label=origin.label,
        )
        self._left = threading.Event()
        self._wake_out, self._wake_in = socket.socketpair()
        self._wake_in.setblocking(False)
        self._prompt_id = new_id()
        self._prompt: Prompt | None = None
        self._typed: list[list[str]] = []
        self.raised: Callable[[str], None] = lambda prompt_id: None  # called when the hub knows the question

    @property
    def session_id(self) -> str:
        return self._record.session_id

    def withdraw(self) -> None:
        """Withdraw the question, because the caller no longer needs it."""
        self._left.set()
        try:
            self._wake_in.send(b"x")
        except (BlockingIOError, OSError):
            pass  # it is awake already, or has ended

    def ask(self, prompt: Prompt, ttl_s: float | None = None) -> Handed:
        self._prompt = prompt
        ensure_hub(self._home)
        handed: Handed | None = None
        give_up = float("inf")
        try:
            while True:
                try:
                    with connect(self._home, FAREWELL_S) as link:
                        self._say(link, self._hello(ttl_s))
                        handed = handed or self._listen(link)
                        self._leave(link, handed)
                        return handed
                except (OSError, ValueError, HubUnavailable):
                    handed = handed or (Handed("withdrawn") if self._left.is_set() else None)
                if handed is not None:  # it is decided; tell a restarted hub if it comes in time
                    give_up = min(give_up, self._clock.now() + FAREWELL_S)
                    if handed.outcome == "withdrawn" or self._clock.now() >= give_up:
                        return handed
                self._find_hub_again()
        finally:
            self._wake_out.close()
            self._wake_in.close()

    def _find_hub_again(self) -> None:
        """The hub is gone: wait for it or start one, unless the caller has left."""
        _wait([self._wake_out.fileno()], RETRY_S)
        if not self._left.is_set():
            ensure_hub(self._home)

    def _hello(self, ttl_s: float | None) -> Message:
        assert self._prompt is not None
        shown = {"prompt_id": self._prompt_id, "prompt": encode_prompt(self._prompt)}
        return {
            "m": "hello",
            "session": self._record.to_wire() | {"open_prompt": self._prompt_id},
            "open": None if self._typed else shown,
            "typed": self._typed,
            "ttl_s": ttl_s,
            "integration": self._record.tool,
        }

    def _listen(self, link: socket.socket) -> Handed:
        """Wait until the question is decided, or the caller leaves."""
        link.settimeout(None)
        buffer = wire.LineBuffer()
        while True:
            ready = _wait([link.fileno(), self._wake_out.fileno()])
            if self._left.is_set():
                self._say(link, {"m": "withdraw", "prompt_id": self._prompt_id, "reason": "caller_left"})
                return Handed("withdrawn")
            if link.fileno() not in ready:
                continue
            data = link.recv(65536)
            if not data:
                raise ConnectionResetError("the hub went")
            for message in buffer.feed(data):
                handed = self._hear(message)
                if handed is not None:
                    return handed

    def _hear(self, message: Message) -> Handed | None:
        match message.get("m"):
            case "welcome":
                self.raised(self._prompt_id)
            case "type" if message["prompt_id"] == self._prompt_id:
                self._typed = [[self._prompt_id, "taken"]]
                return Handed("answered", Answer.from_json(message["answer"]), str(message.get("by", "")))
            case "closed" if message["prompt_id"] == self._prompt_id:
                return Handed(_CLOSED.get(str(message.get("outcome")), "withdrawn"))
            case "renew" if message["prompt_id"] == self._prompt_id:
                self._prompt_id = new_id()  # the answer to a secret was lost with its hub, so it is asked again
                raise ConnectionResetError("asked again under a new id")
            case "kill":
                self._left.set()
                return Handed("withdrawn")
        return None

    def _leave(self, link: socket.socket, handed: Handed) -> None:
        """Report the outcome, and wait until the hub has confirmed it."""
        if handed.outcome == "answered":
            self._say(link, {"m": "typed", "prompt_id": self._prompt_id, "outcome": "typed", "detail": ""})
            self._say(link, {"m": "effect", "prompt_id": self._prompt_id, "outcome": "taken"})
        self._say(link, {"m": "end", "exit_code": 0, "status": 0, "typed": self._typed})
        link.settimeout(FAREWELL_S)
        buffer = wire.LineBuffer()
        while data := link.recv(65536):
            if any(message.get("m") == "over" for message in buffer.feed(data)):
                return
        raise ConnectionResetError("the hub stopped before it confirmed")

    def _say(self, link: socket.socket, message: Message) -> None:
        link.sendall(wire.encode(message))


def _wait(descriptors: list[int], timeout_s: float | None = None) -> set[int]:
    """The readable descriptors; unlike `select`, it accepts any descriptor number."""
    waiter = make_poller()
    for descriptor in descriptors:
        waiter.register(descriptor, POLLIN)
    return {descriptor for descriptor, _ in waiter.poll(None if timeout_s is None else timeout_s * 1000)}
