"""What not every system has, under one name: how a file of ours is opened and written, and whether a process lives.

Whoever needs one of these asks here instead of asking which system it is.
"""

from __future__ import annotations

import os
import sys

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
    from atlasbridge.core.kin_windows import look_on_windows

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
