"""What not every system has, under one name: how a file of ours is opened and written, and whether a process lives.

Whoever needs one of these asks here instead of asking which system it is.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any

# Of every file that we open by its descriptor: no child inherits it, and no byte is translated.
OWN_FILE = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # opening a pipe that nobody writes to would wait for ever

_SYNCHRONIZE, _STILL_RUNNING, _DENIED = 0x0010_0000, 0x102, 5


def keep_private(descriptor: int) -> None:
    """Readable by this user alone, where files have such modes; elsewhere the folder's own rights decide."""
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, 0o600)


def write_at(descriptor: int, data: bytes | memoryview, place: int) -> int:
    if hasattr(os, "pwrite"):
        return os.pwrite(descriptor, data, place)
    os.lseek(descriptor, place, os.SEEK_SET)
    return os.write(descriptor, data)


def read_at(descriptor: int, size: int, place: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, place)
    os.lseek(descriptor, place, os.SEEK_SET)
    return os.read(descriptor, size)


def lives(pid: int) -> bool:
    """Whether a process of this number is there, whichever user's."""
    if pid <= 0:
        return False
    if os.name == "nt":
        return _lives_on_windows(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def own_parent() -> int:
    """The process that started this one; 0: the system does not say.  On Windows it is looked up in the list of
    processes: `os.getppid` rests on a call there that Wine lacks, and a process that makes it is ended."""
    if hasattr(os, "getppid") and os.name != "nt":
        return os.getppid()
    from atlasbridge.core.ancestry_windows import look_on_windows

    found = look_on_windows(os.getpid())
    return found[0] if found is not None else 0


def _lives_on_windows(pid: int) -> bool:  # pragma: no cover - the job on Windows runs it
    """`os.kill` with signal 0 would send Ctrl-C there."""
    if sys.platform != "win32":
        return False
    import ctypes

    kernel = ctypes.WinDLL("kernel32", use_last_error=True)
    kernel.OpenProcess.restype = ctypes.c_void_p
    handle = kernel.OpenProcess(_SYNCHRONIZE, False, pid)
    if not handle:
        return ctypes.get_last_error() == _DENIED
    try:
        return bool(kernel.WaitForSingleObject(ctypes.c_void_p(handle), 0) == _STILL_RUNNING)
    finally:
        kernel.CloseHandle(ctypes.c_void_p(handle))


# What survives a power loss.


def sync_folder(folder: Path) -> None:
    """New, renamed and removed names in `folder` are on the disk (where the system can say so)."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows opens no folder
        return
    descriptor = os.open(folder, os.O_RDONLY | OWN_FILE)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# An advisory lock on a file that the system releases however its holder ends: `flock`, or a locked byte on Windows.

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
