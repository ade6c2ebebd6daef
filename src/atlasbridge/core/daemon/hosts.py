"""The session hosts that are connected: one `HostLink` each, and who waits for a host's word on an order to type.

Knows how to speak to a host, not when and what to say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from atlasbridge.core import wire
from atlasbridge.core.prompt.model import Answer, PromptRecord, Receipt, Reject

REMOTE_HOST = 0  # in the place of a process number: whoever asks is on the other side of a network connection
WRITE_LIMIT = 8 * 1024 * 1024  # a host that reads nothing for so long is cut off; it connects again


Hold = Callable[[Callable[[], None]], None]


class HostLink:
    """One connected host."""

    def __init__(
        self,
        session_id: str,
        host_pid: int,
        writer: asyncio.StreamWriter | None,
        host_started: int = 0,
        tty: str = "",
        tool_started: int = 0,
        uid: int = -1,
    ) -> None:
        self.session_id = session_id
        self.host_pid = host_pid
        self.host_started = host_started  # tells this host from a later process of the same number; 0: not known
        self.tool_started = tool_started
        self.uid = uid
        self.tty = tty  # the tool's terminal; "": not known
        self.adapter: dict[str, Any] = {}  # what an outside adapter says of itself
        self.stopped = False  # by job control: nothing is asked and nothing is taken until it goes on
        self._writer = writer
        self._looks: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._watchers: set[asyncio.Queue[dict[str, Any] | None]] = set()
        self._number = 0
        self.hold: Hold = lambda sending: sending()

    def send(self, kind: str, **fields: Any) -> None:
        """Once the store has on disk what it is about."""
        self.hold(lambda: self._send({"m": kind, **fields}))

    def _send(self, message: dict[str, Any]) -> None:
        if self._writer is None or self._writer.is_closing():
            return
        self._writer.write(wire.encode(message))
        if self._writer.transport.get_write_buffer_size() > WRITE_LIMIT:
            self._writer.transport.abort()

    async def capture(self, styled: bool, timeout_s: float, past: bool = False) -> dict[str, Any] | None:
        """One look at the screen, and at what scrolled off it; None: the host did not answer in time."""
        self._number += 1
        request = f"look-{self._number}"
        future = asyncio.get_running_loop().create_future()
        self._looks[request] = future
        self.send("capture", request=request, styled=styled, past=past)
        try:
            async with asyncio.timeout(timeout_s):
                return dict(await future)
        except TimeoutError:
            return None
        finally:
            del self._looks[request]

    def watch(self, fps: float) -> asyncio.Queue[dict[str, Any] | None]:
        """Screens as they change; None: the host is gone.  Only the newest unread screen is kept."""
        queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._watchers.add(queue)
        self.send("watch", on=True, fps=fps)
        return queue

    def unwatch(self, queue: asyncio.Queue[dict[str, Any] | None]) -> None:
        self._watchers.discard(queue)
        if not self._watchers:
            self.send("watch", on=False, fps=0)

    def screen_arrived(self, message: dict[str, Any]) -> None:
        """Hand a `screen` message to whoever asked for it, or to all who watch."""
        screen = {name: value for name, value in message.items() if name not in ("m", "request")}
        future = self._looks.get(str(message.get("request") or ""))
        if future is not None:
            if not future.done():
                future.set_result(screen)
            return
        for queue in self._watchers:
            while not queue.empty():
                queue.get_nowait()
            queue.put_nowait(screen)

    def close(self) -> None:
        for future in self._looks.values():
            if not future.done():
                future.set_result({})
        for queue in self._watchers:
            queue.put_nowait(None)
        if self._writer is not None:
            self._writer.close()


class QuestionLink(HostLink):
    """A question that came over HTTP: what it is told waits in a queue; None: nothing more is told here."""

    def __init__(self, session_id: str) -> None:
        super().__init__(session_id, REMOTE_HOST, None)
        self.told: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    def _send(self, message: dict[str, Any]) -> None:
        self.told.put_nowait(message)

    def close(self) -> None:
        super().close()
        self.told.put_nowait(None)


class HostBook:
    """Which session is connected through which link.  A host that connects again replaces its old link."""

    def __init__(self, hold: Hold) -> None:
        self._hold = hold
        self._links: dict[str, HostLink] = {}
        self._arrived = asyncio.Event()
        self._words: WeakValueDictionary[str, asyncio.Future[Receipt | Reject]] = WeakValueDictionary()

    def get(self, session_id: str) -> HostLink | None:
        return self._links.get(session_id)

    def add(self, link: HostLink) -> None:
        old = self._links.get(link.session_id)
        self._links[link.session_id] = link
        link.hold = self._hold
        if old is not None:
            old.close()
        self._arrived.set()

    async def wait(self, session_id: str, patience_s: float, is_known: Callable[[], bool] = lambda: False) -> None:
        """Until the session is connected, at most so long: after a start of the hub its host is on its way.
        `is_known`: it has been connected before, and may have ended."""
        try:
            async with asyncio.timeout(patience_s):
                while session_id not in self._links and not is_known():
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            return

    def order(self, record: PromptRecord, answer: Answer, by: str = "") -> bool:
        """Have the answer typed.  The host compares and types once; its word on it comes back later."""
        link = self.get(record.session_id)
        if link is None:
            return False
        who = by or record.decided_by
        link.send("type", prompt_id=record.prompt_id, answer=answer.to_json(), by=who, nonce=record.nonce)
        return True

    def word(self, prompt_id: str) -> asyncio.Future[Receipt | Reject]:
        """What comes of an order.  There for as long as somebody holds it: ask for it before the order goes out."""
        return self._words.setdefault(prompt_id, asyncio.get_running_loop().create_future())

    def tell_word(self, prompt_id: str, outcome: Receipt | Reject) -> None:
        """What is told is true only once it is on disk."""
        self._hold(lambda: self._tell_word(prompt_id, outcome))

    def _tell_word(self, prompt_id: str, outcome: Receipt | Reject) -> None:
        word = self._words.get(prompt_id)
        if word is not None and not word.done():
            word.set_result(outcome)

    def remove(self, link: HostLink) -> bool:
        """True: this link was the session's current one."""
        if self._links.get(link.session_id) is not link:
            return False
        del self._links[link.session_id]
        return True

    def all(self) -> list[HostLink]:
        return list(self._links.values())

    def close(self) -> None:
        for link in self._links.values():
            link.close()
        self._links.clear()
