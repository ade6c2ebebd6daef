"""Reads a process on macOS: its parent, start time, terminal, name and the version of its pid.

The kernel answers `proc_pidinfo` with structures of fixed layout. The parsers are pure; the system call is at the end.
"""

from __future__ import annotations

import struct
import sys

# struct proc_bsdinfo: the fifth word is the parent; then follow the name, the longer name, the terminal and the start
_BSDINFO = struct.Struct("<4I I 7I 16s 32s 3I I I i Q Q")
# struct proc_uniqidentifierinfo: the fourth field is the version of the pid
_UNIQUE = struct.Struct("<16s Q Q i i Q Q")
_BSDINFO_FLAVOUR, _UNIQUE_FLAVOUR = 3, 17
_NO_TERMINAL = 0xFFFFFFFF
_MICROSECONDS = 1_000_000


def parse_process(data: bytes) -> tuple[int, int, str, str, str] | None:
    """Returns (parent, start in microseconds, terminal, no mark, name) in the order of `Process`; None if the data is
    incomplete."""
    if len(data) < _BSDINFO.size:
        return None
    fields = _BSDINFO.unpack_from(data)
    short, name, terminal, seconds, rest = fields[12], fields[13], fields[17], fields[20], fields[21]
    called = (name or short).partition(b"\0")[0] or short.partition(b"\0")[0]
    tty = "" if terminal == _NO_TERMINAL else str(terminal)
    return int(fields[4]), seconds * _MICROSECONDS + rest, tty, "", called.decode("utf-8", "replace")


def parse_version(data: bytes) -> int:
    """Returns 0 if the system does not report it."""
    return int(_UNIQUE.unpack_from(data)[3]) if len(data) >= _UNIQUE.size else 0


def look_on_macos(pid: int) -> tuple[int, int, str, str, str] | None:
    return parse_process(_ask(pid, _BSDINFO_FLAVOUR, _BSDINFO.size))


def number_version(pid: int) -> int:
    return parse_version(_ask(pid, _UNIQUE_FLAVOUR, _UNIQUE.size))


def _ask(pid: int, flavour: int, size: int) -> bytes:
    """Returns b"" if there is no such process, or we are not allowed to read it."""
    if sys.platform != "darwin":
        return b""
    import ctypes

    room = ctypes.create_string_buffer(size)
    library = ctypes.CDLL("/usr/lib/libproc.dylib", use_errno=True)
    given = library.proc_pidinfo(ctypes.c_int(pid), flavour, ctypes.c_uint64(0), room, size)
    return room.raw[:given] if given > 0 else b""
