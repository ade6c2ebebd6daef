"""Ensures one hub per home, with an advisory lock that the kernel releases however the hub ends."""

from __future__ import annotations

import os
from pathlib import Path

from atlasbridge.core.system import OWN_FILE, try_lock


class HubLock:
    """Locks `hub.lock`. The file also contains the holder's pid, for people."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1

    def acquire(self) -> bool:
        """Does not wait. Returns False if another hub has the lock."""
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | OWN_FILE, 0o600)
        if not try_lock(fd):
            os.close(fd)
            return False
        os.ftruncate(fd, 0)
        os.write(fd, f"{os.getpid()}\n".encode())
        self._fd = fd
        return True

    def release(self) -> None:
        """Keeps the file: if it were removed, two hubs could lock two files with the same name."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def lock_holder(path: Path) -> int | None:
    """The pid of the running hub; None if no hub has the lock."""
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
    """Whether a hub was just started and does not have its lock yet."""
    try:
        fd = os.open(path, os.O_RDWR | OWN_FILE)
    except OSError:
        return False
    try:
        return not try_lock(fd)
    finally:
        os.close(fd)
