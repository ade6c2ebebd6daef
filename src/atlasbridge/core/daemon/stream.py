"""The event stream: delivers every event to all listeners. A listener that is too slow is disconnected."""

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
    """`hold` runs a function once the store has written the related changes to disk."""

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
        """Starts with this call, not with the first wait, so that no event is lost between a listing and the stream."""
        queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._listeners.add(queue)
        return Listener(queue, self._listeners)

    def close(self) -> None:
        for queue in self._listeners:
            queue.put_nowait(None)
        self._listeners.clear()


class Listener(AsyncIterator[dict[str, Any]]):
    """One listener's position in the stream. It ends when the hub stops or the listener falls too far behind."""

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
