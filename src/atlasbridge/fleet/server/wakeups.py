"""What one server process tells the others: LISTEN and NOTIFY.  A word may be lost (a server that starts again); then
everybody who waits looks once more, and besides, everybody looks from time to time."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator

from atlasbridge.core.errors import StoreError
from atlasbridge.core.prompt.model import digest_text
from atlasbridge.fleet.server.database import Database, Unkeepable

log = logging.getLogger(__name__)

CHANNEL = "atlasbridge_server"
BOARD = "board"  # something that the page shows has changed
RETRY_S = 0.5
GATHER_S = 0.02  # the first of many things is told at once, the others together
LONGEST_KEY = 200  # PostgreSQL takes 8000 bytes, and machines choose parts of a key


class Wakeups:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._to_tell: set[str] = set()
        self._notification = asyncio.Event()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen(), name="listen")
            group.create_task(self._tell(), name="notify")

    @contextlib.contextmanager
    def waiting(self, *keys: str) -> Iterator[asyncio.Event]:
        """An event that is set by every word about one of these."""
        event = asyncio.Event()
        keys = tuple(map(_bounded, keys))
        for key in keys:
            self._waiting.setdefault(key, set()).add(event)
        try:
            yield event
        finally:
            for key in keys:
                self._waiting[key].discard(event)
                if not self._waiting[key]:
                    del self._waiting[key]

    def tell(self, *keys: str) -> None:
        """After the commit: whoever waits for this looks again, here at once, in other processes a moment later."""
        for key in map(_bounded, keys):
            self._hear(key)
            self._to_tell.add(key)
        self._notification.set()

    def _hear(self, key: str) -> None:
        for event in self._waiting.get(key, ()):
            event.set()

    def _wake_all(self) -> None:
        for events in self._waiting.values():
            for event in events:
                event.set()

    async def _listen(self) -> None:
        while True:
            try:
                await self._database.listen(CHANNEL, self._hear, self._wake_all)
            except StoreError as error:
                log.warning("other servers are not heard: %s", error)
            await asyncio.sleep(RETRY_S)

    async def _tell(self) -> None:
        while True:
            await self._notification.wait()
            self._notification.clear()
            keys, self._to_tell = sorted(self._to_tell), set()
            try:
                await self._database.tell(CHANNEL, keys)
            except (StoreError, Unkeepable) as error:
                log.warning("other servers were not told: %s", error)
            await asyncio.sleep(GATHER_S)


def _bounded(key: str) -> str:
    """The same for everybody, and short enough to be told, whatever a machine put into it."""
    return key if len(key) <= LONGEST_KEY and key.isprintable() else f"digest:{digest_text(ascii(key))}"
