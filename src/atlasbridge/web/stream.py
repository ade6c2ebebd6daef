"""Live streams to pages: server-sent events, one bounded queue per listener.

A listener that is too slow is disconnected. It reconnects by itself and starts with a full snapshot.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, TypeVar

from starlette.responses import StreamingResponse

from atlasbridge.channels.language import hub_says

MAX_LISTENERS = 64
QUEUE_SIZE = 256
HEARTBEAT_S = 15.0
KEPT_EVENTS = 512  # for a listener that reconnects after a short gap and tells its last event
KEPT_BYTES = 1024 * 1024
Item = TypeVar("Item")


def encode_event(event: dict[str, Any], event_id: str = "") -> bytes:
    """Encode one event. JSON has no raw line breaks, so one data line is enough."""
    head = f"id: {event_id}\n".encode() if event_id else b""
    text = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return head + b"data: " + text + b"\n\n"


class Broadcast:
    def __init__(self) -> None:
        self._name = secrets.token_hex(4)  # event numbers of another start are invalid
        self._number = 0
        self._kept: deque[tuple[int, bytes]] = deque()
        self._kept_bytes = 0
        self._queues: set[asyncio.Queue[bytes | None]] = set()
        self._closed = False
        self.cut = asyncio.Event()  # set when all current streams must end

    @property
    def listeners(self) -> int:
        return len(self._queues)

    @property
    def full(self) -> bool:
        return self._closed or len(self._queues) >= MAX_LISTENERS

    def publish(self, event: dict[str, Any]) -> None:
        self._number += 1
        data = encode_event(event, f"{self._name}-{self._number}")
        self._keep(data)
        for queue in list(self._queues):
            if queue.full():
                self._cut(queue)
            else:
                queue.put_nowait(data)

    def _keep(self, data: bytes) -> None:
        self._kept.append((self._number, data))
        self._kept_bytes += len(data)
        while len(self._kept) > KEPT_EVENTS or self._kept_bytes > KEPT_BYTES:
            self._kept_bytes -= len(self._kept.popleft()[1])

    def missed(self, last_id: str) -> list[bytes] | None:
        """All events after this one; None if they are unknown, then the listener needs a full snapshot."""
        name, _, number = last_id.rpartition("-")
        if name != self._name or not (number.isascii() and number.isdigit() and len(number) < 16):
            return None
        first = self._kept[0][0] if self._kept else self._number + 1
        if not first - 1 <= int(number) <= self._number:
            return None
        return [data for at, data in self._kept if at > int(number)]

    @property
    def last_id(self) -> str:
        return f"{self._name}-{self._number}"

    def _cut(self, queue: asyncio.Queue[bytes | None]) -> None:
        self._queues.discard(queue)
        while not queue.empty():
            queue.get_nowait()
        queue.put_nowait(None)

    def cut_all(self) -> None:
        """End every stream. Listeners that are still allowed reconnect; revoked ones cannot."""
        self.cut.set()
        self.cut = asyncio.Event()
        for queue in list(self._queues):
            self._cut(queue)

    def close(self) -> None:
        self._closed = True
        self.cut_all()

    def join(self) -> asyncio.Queue[bytes | None]:
        """Joins immediately, so that no event is lost between the snapshot and the first event."""
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(QUEUE_SIZE)
        self._queues.add(queue)
        return queue

    async def follow(self, queue: asyncio.Queue[bytes | None], first: list[bytes]) -> AsyncIterator[bytes]:
        try:
            for data in first:
                yield data
            while (following := await _next(queue)) is not None:
                yield following
        finally:
            self._queues.discard(queue)


async def until_cut(
    source: AsyncGenerator[Item, None], cut: asyncio.Event, idle: Item | None = None
) -> AsyncGenerator[Item, None]:
    """The items of `source` until it ends or is cut; it is closed in any case. `idle` comes where no item does for a
    while, which detects a reader that has disconnected."""
    stop = asyncio.ensure_future(cut.wait())
    beat_s = None if idle is None else HEARTBEAT_S
    try:
        while True:
            step = asyncio.ensure_future(anext(source))
            try:
                while not (await asyncio.wait({step, stop}, timeout=beat_s, return_when="FIRST_COMPLETED"))[0]:
                    if idle is not None:
                        yield idle
                if not step.done():
                    return
                item = step.result()
            except StopAsyncIteration:
                return
            finally:
                step.cancel()
                await asyncio.gather(step, return_exceptions=True)
            yield item
    finally:
        stop.cancel()
        await source.aclose()


async def _next(queue: asyncio.Queue[bytes | None]) -> bytes | None:
    try:
        async with asyncio.timeout(HEARTBEAT_S):  # `wait_for` of Python 3.11 can lose a cancellation
            return await queue.get()
    except TimeoutError:
        return b": still here\n\n"


async def in_language(source: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The events with their sentences in the language of the request that reads them."""
    async for data in source:
        head, _, text = data.partition(b"data: ")
        if b'"sentence":"' in text:
            event = json.loads(text)
            yield head + encode_event({**event, "sentence": hub_says(event.get("sentence", ""))})
        else:
            yield data


def event_stream(content: AsyncIterator[bytes]) -> StreamingResponse:
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(content, media_type="text/event-stream", headers=headers)
