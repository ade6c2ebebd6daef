"""Whose turn it is in one chat: one message at a time, a question before an edit, an edit before a notice."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

QUESTION, EDIT, NOTICE = 0, 1, 2


class Turns:
    def __init__(self) -> None:
        self._busy = False
        self._order = itertools.count()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def take(self, urgency: int) -> AsyncIterator[None]:
        await self._wait(urgency)
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, urgency: int) -> None:
        if not self._busy:
            self._busy = True
            return
        turn = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (urgency, next(self._order), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was ours already
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        while self._waiting:
            _, _, turn = heapq.heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
                return
        self._busy = False
