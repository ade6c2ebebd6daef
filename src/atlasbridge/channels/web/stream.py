"""Live streams to pages: server-sent events, one bounded queue per listener.

A listener that cannot keep up is cut off: it comes back by itself and begins again with a full picture.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, TypeVar

from starlette.responses import StreamingResponse

MAX_LISTENERS = 64
QUEUE_SIZE = 256
HEARTBEAT_S = 15.0
Item = TypeVar("Item")


def encode_event(event: dict[str, Any]) -> bytes:
    """One event.  JSON has no raw line breaks, so one data line is enough."""
    return b"data: " + json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n\n"


class Broadcast:
    def __init__(self) -> None:
        self._queues: set[asyncio.Queue[bytes | None]] = set()
        self._closed = False
        self.cut = asyncio.Event()  # set when every stream of this moment must end

    @property
    def listeners(self) -> int:
        return len(self._queues)

    @property
    def full(self) -> bool:
        return self._closed or len(self._queues) >= MAX_LISTENERS

    def publish(self, event: dict[str, Any]) -> None:
        data = encode_event(event) if self._queues else b""
        for queue in list(self._queues):
            if queue.full():
                self._cut(queue)
            else:
                queue.put_nowait(data)

    def _cut(self, queue: asyncio.Queue[bytes | None]) -> None:
        self._queues.discard(queue)
        while not queue.empty():
            queue.get_nowait()
        queue.put_nowait(None)

    def cut_all(self) -> None:
        """End every stream.  Who may still listen comes back; after a revocation, nobody else does."""
        self.cut.set()
        self.cut = asyncio.Event()
        for queue in list(self._queues):
            self._cut(queue)

    def close(self) -> None:
        self._closed = True
        self.cut_all()

    def join(self) -> asyncio.Queue[bytes | None]:
        """Joined at once, so that nothing happens between the first picture and the first event."""
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(QUEUE_SIZE)
        self._queues.add(queue)
        return queue

    async def follow(self, queue: asyncio.Queue[bytes | None], first: dict[str, Any]) -> AsyncIterator[bytes]:
        try:
            yield encode_event(first)
            while (data := await _next(queue)) is not None:
                yield data
        finally:
            self._queues.discard(queue)


async def until_cut(source: AsyncGenerator[Item, None], cut: asyncio.Event) -> AsyncGenerator[Item, None]:
    """The items of `source` until it ends or is cut; it is closed in any case."""
    stop = asyncio.ensure_future(cut.wait())
    try:
        while True:
            step = asyncio.ensure_future(anext(source))
            try:
                await asyncio.wait({step, stop}, return_when=asyncio.FIRST_COMPLETED)
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
        return await asyncio.wait_for(queue.get(), HEARTBEAT_S)
    except TimeoutError:
        return b": still here\n\n"


def event_stream(content: AsyncIterator[bytes]) -> StreamingResponse:
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(content, media_type="text/event-stream", headers=headers)
