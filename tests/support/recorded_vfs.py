"""A VFS for the very SQLite that Python uses: passes everything on, records writes and syncs, and fails on request.

It copies the default VFS and replaces xOpen and xDelete; every file it opens gets a copy of its method table with
xWrite, xTruncate and xSync replaced.  ctypes finds SQLite through Python's own `_sqlite3`: no compiler is needed.
"""

from __future__ import annotations

import _sqlite3
import ctypes
from collections.abc import Callable
from contextlib import AbstractContextManager
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_void_p, cast, string_at
from typing import Any

SQLITE_OK = 0

Open = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)
Delete = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int)
Write = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
Truncate = CFUNCTYPE(c_int, c_void_p, c_int64)
Sync = CFUNCTYPE(c_int, c_void_p, c_int)


class Vfs(Structure):
    _fields_ = (
        ("iVersion", c_int),
        ("szOsFile", c_int),
        ("mxPathname", c_int),
        ("pNext", c_void_p),
        ("zName", c_char_p),
        ("pAppData", c_void_p),
        ("xOpen", c_void_p),
        ("xDelete", c_void_p),
        ("others", c_void_p * 14),
    )


class Methods(Structure):
    _fields_ = (
        ("iVersion", c_int),
        ("xClose", c_void_p),
        ("xRead", c_void_p),
        ("xWrite", c_void_p),
        ("xTruncate", c_void_p),
        ("xSync", c_void_p),
        ("others", c_void_p * 13),
    )


class File(Structure):
    _fields_ = (("methods", POINTER(Methods)),)


class Observer:
    """What the VFS tells.  A method that returns another number than 0 makes SQLite see that error."""

    def opened(self, path: str) -> None: ...

    def deleted(self, path: str, folder_synced: bool) -> int:
        return SQLITE_OK

    def wrote(self, path: str, offset: int, data: bytes) -> int:
        return SQLITE_OK

    def truncated(self, path: str, size: int) -> int:
        return SQLITE_OK

    def synced(self, path: str) -> int:
        return SQLITE_OK


def available() -> bool:
    """Some builds of Python carry SQLite inside, with its functions hidden."""
    return hasattr(ctypes.CDLL(_sqlite3.__file__), "sqlite3_vfs_register")


class RecordedVfs(AbstractContextManager["RecordedVfs"]):
    """The default VFS of this process while it is entered."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._sqlite = ctypes.CDLL(_sqlite3.__file__)
        self._sqlite.sqlite3_vfs_find.restype = POINTER(Vfs)
        self._real = self._sqlite.sqlite3_vfs_find(None)
        self._vfs = Vfs()
        ctypes.memmove(ctypes.byref(self._vfs), self._real, ctypes.sizeof(Vfs))
        self._vfs.zName = b"recorded"
        self._keep: list[Any] = []
        self._files: dict[int, tuple[str, Methods, Methods]] = {}
        self._vfs.xOpen = self._pointer(Open, self._open)
        self._vfs.xDelete = self._pointer(Delete, self._delete)
        self._write_pointer = self._pointer(Write, self._write)
        self._truncate_pointer = self._pointer(Truncate, self._truncate)
        self._sync_pointer = self._pointer(Sync, self._sync)

    def _pointer(self, kind: Any, function: Callable[..., int]) -> int | None:
        callback = kind(function)
        self._keep.append(callback)
        return cast(callback, c_void_p).value

    def __enter__(self) -> RecordedVfs:
        self._sqlite.sqlite3_vfs_register(ctypes.byref(self._vfs), 1)
        return self

    def __exit__(self, *_: object) -> None:
        self._sqlite.sqlite3_vfs_unregister(ctypes.byref(self._vfs))

    def _open(self, _vfs: int, name: int | None, file: int, flags: int, out: int | None) -> int:
        code = Open(self._real.contents.xOpen)(cast(self._real, c_void_p).value, name, file, flags, out)
        if code == SQLITE_OK and name:
            path = string_at(name).decode()
            handle = cast(file, POINTER(File)).contents
            real, changed = Methods(), Methods()
            for copy in (real, changed):
                ctypes.memmove(ctypes.byref(copy), handle.methods, ctypes.sizeof(Methods))
            changed.xWrite, changed.xTruncate = self._write_pointer, self._truncate_pointer
            changed.xSync = self._sync_pointer
            self._files[file] = (path, real, changed)
            handle.methods = ctypes.pointer(changed)
            self._observer.opened(path)
        return code

    def _delete(self, _vfs: int, name: int, sync_folder: int) -> int:
        code = self._observer.deleted(string_at(name).decode(), bool(sync_folder))
        if code:
            return code
        return Delete(self._real.contents.xDelete)(cast(self._real, c_void_p).value, name, sync_folder)

    def _write(self, file: int, data: int, amount: int, offset: int) -> int:
        path, real, _ = self._files[file]
        return self._observer.wrote(path, offset, string_at(data, amount)) or Write(real.xWrite)(
            file, data, amount, offset
        )

    def _truncate(self, file: int, size: int) -> int:
        path, real, _ = self._files[file]
        return self._observer.truncated(path, size) or Truncate(real.xTruncate)(file, size)

    def _sync(self, file: int, flags: int) -> int:
        path, real, _ = self._files[file]
        return self._observer.synced(path) or Sync(real.xSync)(file, flags)
