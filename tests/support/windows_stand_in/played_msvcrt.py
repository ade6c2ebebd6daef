"""Windows' own calls for keys and locks, played on Unix: a key comes from a terminal, a lock is a locked byte."""

from __future__ import annotations

import codecs
import fcntl
import os
import tty

LK_NBLCK = 2
_decoder = codecs.getincrementaldecoder("utf-8")("replace")
_raw: list[bool] = []


def getwch() -> str:
    """Blocks, shows nothing, and leaves Ctrl-C to the reader."""
    if not _raw and os.isatty(0):
        tty.setraw(0)
        _raw.append(True)
    while not (key := _decoder.decode(_next())):
        continue
    return key


def _next() -> bytes:
    while not (data := os.read(0, 1)):
        import time

        time.sleep(3600)  # a console never ends; neither does this wait
    return data


def locking(descriptor: int, mode: int, size: int) -> None:
    """Belongs to this opening of the file, as on Windows, and not to the process."""
    assert mode == LK_NBLCK
    place = os.lseek(descriptor, 0, os.SEEK_CUR)
    if place < 1 << 20:
        raise AssertionError("a locked byte could not be read by others")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise PermissionError(13, "Permission denied") from error
