"""What became of answers, by the key that their sender chose: asking again, or sending again, does nothing twice."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from atlasbridge.core.prompt.model import Reject
from atlasbridge.core.prompt.reply import Receipt

MAX_KEPT = 1024
Verdict = Receipt | Reject | None
Key = tuple[str, str, str]  # caller, prompt, request key


class Outcomes:
    def __init__(self) -> None:
        self._tasks: dict[Key, asyncio.Task[Verdict]] = {}

    def knows(self, key: Key) -> bool:
        return key in self._tasks

    async def once(self, key: Key, work: Coroutine[Any, Any, Verdict]) -> Verdict:
        """Do the work, unless it was done or is being done under this key; then hear its outcome."""
        if key in self._tasks:
            work.close()
            return await asyncio.shield(self._tasks[key])
        task = asyncio.create_task(work, name="web-reply")
        if key[2]:
            while len(self._tasks) >= MAX_KEPT:
                del self._tasks[next(iter(self._tasks))]
            self._tasks[key] = task
        return await asyncio.shield(task)

    async def of(self, key: Key) -> Verdict:
        return await asyncio.shield(self._tasks[key])
