"""The tool's latest output, kept until somebody has time to look at it.  Relaying never waits for the looker.

What falls out in a flood is counted, and the terminal modes it switched are kept: they are true for ever after.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from atlasbridge.core.patterns import lazy

_SWITCHES = lazy(rb"\x1b\[\?[0-9;]{1,32}[hl]|\x1b\[[<>=][0-9;]{0,16}u|\x1b[=>c]")
_MAX_SWITCHES = 256
_TORRENT = 4 << 20  # after so much was lost nothing is left of what stood there before,
_TORRENT_KEEPS = 64 << 10  # and what is there now is in the last of it


class Ring:
    def __init__(self, capacity: int) -> None:
        """`capacity`: so many bytes are kept at least, whole chunks."""
        self._capacity = capacity
        self._lock = threading.Lock()
        self._chunks: deque[tuple[bytes, bool]] = deque()
        self._switches: deque[bytes] = deque(maxlen=_MAX_SWITCHES)
        self._lost = 0
        self.size = 0
        self.on_output: Callable[[], None] | None = None  # set by a looker who sleeps, and wants to know

    def append(self, chunk: bytes, switches: bool = True) -> None:
        """`switches`: the chunk may switch terminal modes."""
        with self._lock:
            self._chunks.append((chunk, switches))
            self.size += len(chunk)
            if self.size > self._capacity:
                self._keep(self._capacity)
        if wake := self.on_output:
            wake()

    def _keep(self, size: int) -> None:
        """Drop the oldest chunks as long as the others hold so many bytes."""
        while self.size - len(self._chunks[0][0]) >= size:
            dropped, switched = self._chunks.popleft()
            self.size -= len(dropped)
            self._lost += len(dropped)
            if switched:
                self._switches.extend(_SWITCHES.findall(dropped))

    def take(self) -> tuple[bytes, int]:
        """All that is kept, mode switches of what was dropped first, and how many bytes were dropped before it."""
        with self._lock:
            if self._lost > _TORRENT:
                self._keep(_TORRENT_KEEPS)
            data = b"".join((*self._switches, *(chunk for chunk, _ in self._chunks)))
            lost = self._lost
            self._chunks.clear()
            self._switches.clear()
            self.size = self._lost = 0
            return data, lost

    @property
    def flooded(self) -> bool:
        return self._lost > 0
