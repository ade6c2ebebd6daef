"""Where a process comes from on macOS: its parent, its start, its terminal, and how often its number was given away.

The kernel answers `proc_pidinfo` with structures of fixed layout.  Reading them is pure; asking stands at the end.
"""

from __future__ import annotations

import struct
import sys

# struct proc_bsdinfo: the fifth word is the parent; name, longer name, terminal and start follow
_BSDINFO = struct.Struct("<4I I 7I 16s 32s 3I I I i Q Q")
_UNIQUE = struct.Struct("<16s Q Q i i Q Q")  # struct proc_uniqidentifierinfo: the fourth is the version of the number
_BSDINFO_FLAVOUR, _UNIQUE_FLAVOUR = 3, 17
_NO_TERMINAL = 0xFFFFFFFF
_MICROSECONDS = 1_000_000


def parse_process(data: bytes) -> tuple[int, int, str, str, str] | None:
    """(parent, start in microseconds, terminal, no mark, name) as `Process` takes them; None: the system said less."""
    if len(data) < _BSDINFO.size:
        return None
    fields = _BSDINFO.unpack_from(data)
    short, name, terminal, seconds, rest = fields[12], fields[13], fields[17], fields[20], fields[21]
    called = (name or short).partition(b"\0")[0] or short.partition(b"\0")[0]
    tty = "" if terminal == _NO_TERMINAL else str(terminal)
    return int(fields[4]), seconds * _MICROSECONDS + rest, tty, "", called.decode("utf-8", "replace")


def parse_version(data: bytes) -> int:
    """0: the system does not say."""
    return int(_UNIQUE.unpack_from(data)[3]) if len(data) >= _UNIQUE.size else 0


def look_on_macos(pid: int) -> tuple[int, int, str, str, str] | None:
    return parse_process(_ask(pid, _BSDINFO_FLAVOUR, _BSDINFO.size))


def number_version(pid: int) -> int:
    return parse_version(_ask(pid, _UNIQUE_FLAVOUR, _UNIQUE.size))


def _ask(pid: int, flavour: int, size: int) -> bytes:
    """b"": there is no such process, or it is not ours to look at."""
    if sys.platform != "darwin":
        return b""
    import ctypes

    room = ctypes.create_string_buffer(size)
    library = ctypes.CDLL("/usr/lib/libproc.dylib", use_errno=True)
    given = library.proc_pidinfo(ctypes.c_int(pid), flavour, ctypes.c_uint64(0), room, size)
    return room.raw[:given] if given > 0 else b""
