"""A queue of deadlines on the monotonic clock. Pure; the service acts on what is due."""

from __future__ import annotations

import heapq


class Deadlines:
    """One deadline per key; setting it again replaces it. Replaced entries are dropped when they reach the front."""

    def __init__(self) -> None:
        self._at: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._at)

    def __contains__(self, key: str) -> bool:
        return key in self._at

    def set(self, key: str, at: float) -> None:
        if self._at.get(key) == at:
            return
        self._at[key] = at
        heapq.heappush(self._heap, (at, key))
        if len(self._heap) > 2 * len(self._at) + 64:
            self._compact()

    def drop(self, key: str) -> None:
        self._at.pop(key, None)

    def next_at(self) -> float | None:
        """The earliest deadline; None if there is none."""
        while self._heap and not self._valid(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> list[str]:
        """Removes and returns every key that is due, the earliest first."""
        taken = []
        while (at := self.next_at()) is not None and at <= now:
            _, key = heapq.heappop(self._heap)
            del self._at[key]
            taken.append(key)
        return taken

    def _valid(self, item: tuple[float, str]) -> bool:
        at, key = item
        return self._at.get(key) == at

    def _compact(self) -> None:
        """Keeps memory proportional to the number of keys, not to how often they were set."""
        self._heap = [(at, key) for key, at in self._at.items()]
        heapq.heapify(self._heap)
