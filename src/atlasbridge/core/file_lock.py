"""An advisory lock on a file that the system releases however its holder ends: `flock`, or a locked byte on Windows."""

from __future__ import annotations

import errno
import os
from typing import Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_FAR = 1 << 30  # a locked byte cannot be read there: it is one that no file of ours has
# How a system says that another holds it; not every C library of Windows has a number for that.
_HELD = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK, 0, None)


def try_lock(descriptor: int) -> bool:
    """Without waiting.  False: another process, or another opening of the file, holds it."""
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            _lock_byte(descriptor)
    except OSError as error:
        if error.errno not in _HELD:
            raise
        return False
    return True


def try_share(descriptor: int) -> bool:
    """Beside others who share it; where nothing can be shared, alone."""
    if fcntl is None:
        return try_lock(descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lock_byte(descriptor: int) -> None:
    import msvcrt

    windows: Any = msvcrt
    place = os.lseek(descriptor, 0, os.SEEK_CUR)
    os.lseek(descriptor, _FAR, os.SEEK_SET)
    try:
        windows.locking(descriptor, windows.LK_NBLCK, 1)
    finally:
        os.lseek(descriptor, place, os.SEEK_SET)
