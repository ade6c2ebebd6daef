"""audit.head: how far the log has come, written down a second time, outside the database and outside the log.

It only ever lags behind them, so a store or a log that knows less than it was shortened.  A few bytes in place, without
waiting for the disk: that it lags is no harm.
"""

from __future__ import annotations

import os
from pathlib import Path

from atlasbridge.core.audit.chain import Head

NAME = "audit.head"
_SIZE = 128  # bytes, padded: one write in place, whatever the numbers


class Anchor:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    def write(self, head: Head) -> None:
        if self._descriptor is None:
            self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.fchmod(self._descriptor, 0o600)
        os.pwrite(self._descriptor, f"{head.entries} {head.hash}".ljust(_SIZE - 1).encode("ascii") + b"\n", 0)

    def close(self) -> None:
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)


def read_anchor(path: Path) -> Head | None:
    """None: it is not there, or says nothing that could be understood."""
    try:
        words = path.read_text("ascii", "replace").split()
    except OSError:
        return None
    return Head(int(words[0]), words[1]) if len(words) == 2 and words[0].isdecimal() else None
