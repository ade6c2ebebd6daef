"""One hub per home: an advisory lock that the kernel releases however the hub ends."""

from __future__ import annotations

import os
from pathlib import Path

from atlasbridge.core.system import OWN_FILE, try_lock


class HubLock:
    """Holds `hub.lock`; the file keeps the holder's process id for people who look."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    def acquire(self) -> bool:
        """Without waiting; False: another hub holds it."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | OWN_FILE, 0o600)
        if not try_lock(fd):
            os.close(fd)
            return False
        os.ftruncate(fd, 0)
        os.write(fd, f"{os.getpid()}\n".encode())
        self._fd = fd
        return True

    def release(self) -> None:
        """The file stays: removing it would let two hubs lock two files of the same name."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def lock_holder(path: Path) -> int | None:
    """The process id of the running hub, or None when nobody holds the lock."""
    try:
        fd = os.open(path, os.O_RDWR | OWN_FILE)
    except OSError:
        return None
    try:
        if try_lock(fd):
            return None
        text = os.read(fd, 32).strip()
        return int(text) if text.isdigit() else 0
    finally:
        os.close(fd)


def is_starting(path: Path) -> bool:
    """Whether somebody has just started a hub that does not hold its lock yet."""
    try:
        fd = os.open(path, os.O_RDWR | OWN_FILE)
    except OSError:
        return False
    try:
        return not try_lock(fd)
    finally:
        os.close(fd)
