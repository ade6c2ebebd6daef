"""Calls that come close together are answered together: one statement and one commit for all of them.

Who calls alone waits for nobody; where many call, a moment passes between two answers.  Each is answered by work that
began after it called, so it sees all that was committed before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

Call = TypeVar("Call")
Answer = TypeVar("Answer")

MOST = 200  # in a longer row the first would wait for the last
PACE_S = 0.01


class Together(Generic[Call, Answer]):
    """`work` answers each of several calls; one that spoils it for the others (`spoils`) is found, and fails alone."""

    def __init__(self, work: Callable[[list[Call]], Awaitable[Sequence[Answer]]], spoils: type[Exception]) -> None:
        self._work = work
        self._spoils = spoils
        self._turn = asyncio.Lock()
        self._next_at = 0.0
        self._calls: list[Call] = []
        self._answering: asyncio.Task[Sequence[Any]] | None = None

    async def __call__(self, call: Call) -> Answer:
        if self._answering is None or len(self._calls) == MOST:
            self._calls = []
            self._answering = asyncio.create_task(self._answer(self._calls), name="together")
        self._calls.append(call)
        answering, at = self._answering, len(self._calls) - 1
        found = (await asyncio.shield(answering))[at]  # who goes away takes nobody along
        if isinstance(found, self._spoils):
            raise found
        return found  # type: ignore[no-any-return]

    async def _answer(self, calls: list[Call]) -> Sequence[Any]:
        clock = asyncio.get_running_loop().time
        async with self._turn:
            if (early_s := self._next_at - clock()) > 0:
                await asyncio.sleep(early_s)
            self._next_at = clock() + PACE_S
            if calls is self._calls:
                self._answering = None  # who comes from now on is too late for these
            try:
                return await self._work(calls)
            except self._spoils:
                return [await self._alone(call) for call in calls]

    async def _alone(self, call: Call) -> Answer | Exception:
        try:
            return (await self._work([call]))[0]
        except self._spoils as fault:
            return fault
