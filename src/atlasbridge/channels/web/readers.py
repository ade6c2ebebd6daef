"""How many bodies are read at the same time, and for how long: slow ones keep nobody waiting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Readers:
    """Bodies that are being read.  When there are many, the one that has taken longest is given up: an honest body
    comes at once with its head."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._open: dict[asyncio.Timeout, None] = {}

    @asynccontextmanager
    async def reading(self, patience_s: float) -> AsyncIterator[None]:
        """Raises TimeoutError inside when it takes too long, or when others need the room."""
        if len(self._open) >= self._total:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.reschedule(asyncio.get_running_loop().time())
        async with asyncio.timeout(patience_s) as limit:
            self._open[limit] = None
            try:
                yield
            finally:
                self._open.pop(limit, None)
