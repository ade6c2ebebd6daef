"""Hides differences between operating systems: how our files are opened, written and locked, and whether a process is
alive.

Other modules call these functions instead of checking the platform.
"""

from __future__ import annotations

import errno
import os
import select
import sys
from pathlib import Path
from typing import Any, Protocol

# Flags for every file that we open by descriptor: children do not inherit it, and Windows does not translate line ends.
OWN_FILE = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # opening a pipe without a writer would block forever

_SYNCHRONIZE, _STILL_RUNNING, _DENIED = 0x0010_0000, 0x102, 5


def keep_private(descriptor: int) -> None:
    """Makes the file readable by this user only, where files have modes. Elsewhere the permissions of the folder
    apply."""
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, 0o600)


def write_private(path: Path, text: str) -> None:
    """Writes a new file that only this user can ever read. It replaces a file of this name, and follows no link."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | OWN_FILE, 0o600)
    with open(descriptor, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)


def replace_private(path: Path, text: str) -> None:
    """The same, and a reader finds the old text or the new one, whole."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    write_private(draft, text)
    os.replace(draft, path)


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
    """Whether a process with this pid exists, whichever user owns it."""
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
    """Returns the pid of the parent process, or 0 if the system does not report it.

    On Windows it is looked up in the process list, because Wine lacks the call behind `os.getppid` and ends a process
    that makes it.
    """
    if hasattr(os, "getppid") and os.name != "nt":
        return os.getppid()
    from atlasbridge.core.process_table import look_on_windows

    found = look_on_windows(os.getpid())
    return found[0] if found is not None else 0


def _lives_on_windows(pid: int) -> bool:  # pragma: no cover - the job on Windows runs it
    """Needed because `os.kill` with signal 0 sends Ctrl-C on Windows."""
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


# Durability after a power loss.


def sync_folder(folder: Path) -> None:
    """Flushes new, renamed and removed names in `folder` to disk, where the system supports it."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows cannot open a folder
        return
    _sync(folder, os.O_RDONLY)


def sync_file(path: Path) -> None:
    """Flushes the content of a file to disk."""
    _sync(path, os.O_RDWR)


def _sync(path: Path, access: int) -> None:
    descriptor = os.open(path, access | OWN_FILE)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# An advisory file lock that the system releases when its holder ends: `flock`, or a locked byte on Windows.

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_FAR = 1 << 30  # a locked byte cannot be read, so this one is beyond the end of all our files
# The errors that mean "already locked"; not every Windows C library has an errno for it.
_HELD = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES, errno.EDEADLK, 0, None)


def try_lock(descriptor: int) -> bool:
    """Does not wait. Returns False if another process, or another open descriptor of the file, has the lock."""
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
    """Takes a shared lock; where the system has none, an exclusive one."""
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


# Waits for several sockets: `poll` where the system has it, otherwise `select` with the same interface.
#
# On Windows it is possible to wait only for sockets, not for pipes or files.

POLLIN, POLLOUT, POLLERR, POLLHUP = 1, 4, 8, 16  # the same numbers on every system that has `poll`


class Watched(Protocol):
    def fileno(self) -> int: ...


class ReadyWait(Protocol):
    def register(self, fd: int | Watched, eventmask: int, /) -> None: ...
    def poll(self, timeout_ms: float | None = None, /) -> list[tuple[int, int]]: ...


class SelectPoller:
    def __init__(self) -> None:
        self._masks: dict[int, int] = {}

    def register(self, fd: int | Watched, eventmask: int, /) -> None:
        self._masks[fd if isinstance(fd, int) else fd.fileno()] = eventmask

    def poll(self, timeout_ms: float | None = None, /) -> list[tuple[int, int]]:
        readers = [fd for fd, mask in self._masks.items() if mask & POLLIN]
        writers = [fd for fd, mask in self._masks.items() if mask & POLLOUT]
        timeout_s = None if timeout_ms is None else timeout_ms / 1000
        readable, writable, broken = select.select(readers, writers, list(self._masks), timeout_s)
        found = dict.fromkeys([*readable, *writable, *broken], 0)
        for ready, event in ((readable, POLLIN), (writable, POLLOUT), (broken, POLLERR)):
            for fd in ready:
                found[fd] |= event
        return list(found.items())


async def wait_readable(source: int | Watched) -> None:
    """Waits in the event loop until there is something to read, or the end."""
    import asyncio  # not at the start of a session, which has no event loop
    import contextlib

    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(source, readable.set)
    try:
        await readable.wait()
    finally:
        with contextlib.suppress(ValueError, OSError):  # already closed
            loop.remove_reader(source)


def make_poller() -> ReadyWait:
    return select.poll() if hasattr(select, "poll") else SelectPoller()
