"""Keeps the tool's latest output until the analysis reads it. The relay never waits for the analysis.

If a flood overflows the ring, the dropped bytes are counted and their terminal mode switches are kept, because modes
stay in effect.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from atlasbridge.core.patterns import lazy

_SWITCHES = lazy(rb"\x1b\[\?[0-9;]{1,32}[hl]|\x1b\[[<>=][0-9;]{0,16}u|\x1b[=>c]")
_MAX_SWITCHES = 256
_TORRENT = 4 << 20  # after this many lost bytes, nothing of the earlier screen is left,
_TORRENT_KEEPS = 64 << 10  # and the current screen is in the last bytes


class Ring:
    def __init__(self, capacity: int) -> None:
        """`capacity`: at least this many bytes are kept, in whole chunks."""
        self._capacity = capacity
        self._lock = threading.Lock()
        self._chunks: deque[tuple[bytes, bool]] = deque()
        self._switches: deque[bytes] = deque(maxlen=_MAX_SWITCHES)
        self._lost = 0
        self.size = 0
        self.on_output: Callable[[], None] | None = None  # set by a sleeping reader that wants to be woken

    def append(self, chunk: bytes, switches: bool = True) -> None:
        """`switches`: the chunk can contain terminal mode switches."""
        with self._lock:
            self._chunks.append((chunk, switches))
            self.size += len(chunk)
            if self.size > self._capacity:
                self._keep(self._capacity)
        if wake := self.on_output:
            wake()

    def _keep(self, size: int) -> None:
        """Drops the oldest chunks as long as the others contain at least `size` bytes."""
        while self.size - len(self._chunks[0][0]) >= size:
            dropped, switched = self._chunks.popleft()
            self.size -= len(dropped)
            self._lost += len(dropped)
            if switched:
                self._switches.extend(_SWITCHES.findall(dropped))

    def take(self) -> tuple[bytes, int]:
        """Returns everything kept, preceded by the mode switches of dropped chunks, and the number of dropped bytes."""
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
