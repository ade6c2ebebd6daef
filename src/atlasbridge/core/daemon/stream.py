"""The event stream: everything that happens, to whoever listens.  A slow listener loses its place, nothing else."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any

from atlasbridge.core.clock import Clock, iso

QUEUE_LIMIT = 10_000
RECENT_LIMIT = 1_000
Hold = Callable[[Callable[[], None]], None]


class EventStream:
    """`hold`: called with what is to be done once the store has on disk what the news is about."""

    def __init__(self, clock: Clock, hold: Hold = lambda notification: notification()) -> None:
        self._clock = clock
        self._hold = hold
        self._listeners: set[asyncio.Queue[dict[str, Any] | None]] = set()
        self._recent: deque[dict[str, Any]] = deque(maxlen=RECENT_LIMIT)

    def publish(self, event: str, **fields: Any) -> None:
        message = {"event": event, "at": iso(self._clock.wall()), **fields}
        self._hold(lambda: self._tell(message))

    def _tell(self, message: dict[str, Any]) -> None:
        self._recent.append(message)
        for queue in tuple(self._listeners):
            if queue.qsize() >= QUEUE_LIMIT:
                self._listeners.discard(queue)
                queue.put_nowait(None)
            else:
                queue.put_nowait(message)

    def recent(self) -> list[dict[str, Any]]:
        return list(self._recent)

    def listen(self) -> Listener:
        """Counts from this call on, not from the first wait: nothing falls between a listing and its continuation."""
        queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._listeners.add(queue)
        return Listener(queue, self._listeners)

    def close(self) -> None:
        for queue in self._listeners:
            queue.put_nowait(None)
        self._listeners.clear()


class Listener(AsyncIterator[dict[str, Any]]):
    """One listener's place in the stream; ends when the hub stops or the listener fell too far behind."""

    def __init__(
        self, queue: asyncio.Queue[dict[str, Any] | None], listeners: set[asyncio.Queue[dict[str, Any] | None]]
    ) -> None:
        self._queue = queue
        self._listeners = listeners

    async def __anext__(self) -> dict[str, Any]:
        message = await self._queue.get()
        if message is None:
            raise StopAsyncIteration
        return message

    def close(self) -> None:
        self._listeners.discard(self._queue)
