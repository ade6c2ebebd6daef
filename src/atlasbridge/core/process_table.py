"""Reads processes where there is no /proc: on macOS, and on Windows, where it also finds the owner of a connection.

The parsers are pure; the system calls follow them. Windows forgets the parent of a process once that parent has ended.
An ancestry that does not end at a process started by the system is therefore unknown, and nothing is decided from it.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from atlasbridge.core.values import frozen

Address = tuple[str, int]

# Where an ancestry ends: the desktop, whose parent has always ended, and the processes that the system starts at boot
# and at login.
ROOTS = frozenset({"explorer.exe", "wininit.exe", "winlogon.exe", "system"})
_ROW = struct.Struct("<I4s2s2x4s2s2xI")  # state, local address and port, remote address and port, owner
_COUNT = struct.Struct("<I")
# AF_INET, TCP_TABLE_OWNER_PID_ALL: the table must include half-closed connections, which are no longer "connected"
_IPV4, _ALL_OWNED = 2, 5
_TOO_SMALL = 122
_PROCESSES = 0x2  # TH32CS_SNAPPROCESS
_MAY_ASK = 0x1000  # PROCESS_QUERY_LIMITED_INFORMATION


@frozen
class TaskRow:
    """A process in the system's process list."""

    parent: int
    name: str


def read_connections(table: bytes) -> Iterator[tuple[Address, Address, int]]:
    """Yields (local address, remote address, pid) of each connection. An incomplete last row is skipped."""
    if len(table) < _COUNT.size:
        return
    (count,) = _COUNT.unpack_from(table)
    fits = (len(table) - _COUNT.size) // _ROW.size
    for number in range(min(count, fits)):
        _, own, own_port, far, far_port, pid = _ROW.unpack_from(table, _COUNT.size + number * _ROW.size)
        yield _address(own, own_port), _address(far, far_port), int(pid)


def _address(host: bytes, port: bytes) -> Address:
    return ".".join(map(str, host)), int.from_bytes(port, "big")


def find_owner(table: bytes, client: Address, server: Address) -> int:
    """The process that owns the client's end; 0 if none is listed."""
    return next((pid for own, far, pid in read_connections(table) if (own, far) == (client, server)), 0)


def describe(pid: int, listed: Mapping[int, TaskRow], started: Callable[[int], int]) -> tuple[int, int, str] | None:
    """Returns (parent, start time, name) of a listed process, or None if it has ended. Parent 0 means that the ancestry
    ends here."""
    found = listed.get(pid)
    if found is None:
        return None
    name = found.name.lower()
    return 0 if name in ROOTS else found.parent, started(pid), name


# System calls


def owner_of(client: Address, server: Address) -> int:
    return find_owner(_connections(), client, server)


def look_on_windows(pid: int) -> tuple[int, int, str] | None:
    return describe(pid, _list_processes(), _started)


def _connections() -> bytes:
    """Enlarges the buffer until the table fits: connections can be added between two calls."""
    if sys.platform != "win32":
        return b""
    import ctypes

    helper = ctypes.WinDLL("iphlpapi")
    size = ctypes.c_ulong(0)
    table = ctypes.create_string_buffer(4)
    while True:
        fault = helper.GetExtendedTcpTable(table, ctypes.byref(size), False, _IPV4, _ALL_OWNED, 0)
        if fault != _TOO_SMALL:
            return b"" if fault else table.raw
        table = ctypes.create_string_buffer(size.value)


def _list_processes() -> dict[int, TaskRow]:
    if sys.platform != "win32":
        return {}
    import ctypes

    kernel = ctypes.WinDLL("kernel32")
    kernel.CreateToolhelp32Snapshot.restype = ctypes.c_void_p
    entry = _entry()()
    entry.size = ctypes.sizeof(entry)
    snapshot = ctypes.c_void_p(kernel.CreateToolhelp32Snapshot(_PROCESSES, 0))
    found: dict[int, TaskRow] = {}
    try:
        more = kernel.Process32FirstW(snapshot, ctypes.byref(entry))
        while more:
            found[int(entry.pid)] = TaskRow(int(entry.parent), str(entry.name))
            more = kernel.Process32NextW(snapshot, ctypes.byref(entry))
    finally:
        kernel.CloseHandle(snapshot)
    return found


def _entry() -> Any:
    """PROCESSENTRY32W."""
    import ctypes

    number, word = ctypes.c_ulong, ctypes.c_size_t

    class Entry(ctypes.Structure):
        _fields_ = (
            *(("size", number), ("usage", number), ("pid", number), ("heap", word), ("module", number)),
            *(("threads", number), ("parent", number), ("priority", ctypes.c_long), ("flags", number)),
            ("name", ctypes.c_wchar * 260),
        )

    return Entry


def _started(pid: int) -> int:
    """The start time in system ticks; 0 if the system does not report it."""
    if sys.platform != "win32":
        return 0
    import ctypes

    kernel = ctypes.WinDLL("kernel32")
    kernel.OpenProcess.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(kernel.OpenProcess(_MAY_ASK, False, pid))
    if not handle.value:
        return 0
    times = (ctypes.c_ulonglong * 4)()  # created, exited, kernel time, user time
    places = [ctypes.byref(times, place * 8) for place in range(4)]
    try:
        return int(times[0]) if kernel.GetProcessTimes(handle, *places) else 0
    finally:
        kernel.CloseHandle(handle)


# macOS: the kernel answers `proc_pidinfo` with structures of fixed layout.

# struct proc_bsdinfo: the second word is the state, the fourth and fifth are the process and its parent; then come the
# name, the longer name, the group, the terminal and the start
_BSDINFO = struct.Struct("<5I 7I 16s 32s I I I I I i Q Q")
# struct proc_uniqidentifierinfo: the fourth field is the version of the pid
_UNIQUE = struct.Struct("<16s Q Q i i Q Q")
_BSDINFO_FLAVOUR, _UNIQUE_FLAVOUR = 3, 17
_NO_TERMINAL = 0xFFFFFFFF
_MICROSECONDS = 1_000_000
AskMacos = Callable[[int, int, int], bytes]  # process, flavour of the structure, its size


@frozen
class MacProcess:
    pid: int
    parent: int
    group: int
    status: int
    command: str
    terminal: str = ""
    started: int = 0  # in microseconds


def parse_process(data: bytes) -> MacProcess | None:
    """Returns None if the data is incomplete."""
    if len(data) < _BSDINFO.size:
        return None
    _, status, _, pid, parent, *_, short, name, _, group, _, terminal, _, _, seconds, rest = _BSDINFO.unpack_from(data)
    called = (name.partition(b"\0")[0] or short.partition(b"\0")[0]).decode("utf-8", "replace")
    tty = "" if terminal == _NO_TERMINAL else str(terminal)
    return MacProcess(pid, parent, group, status, called, tty, seconds * _MICROSECONDS + rest)


def parse_version(data: bytes) -> int:
    """Returns 0 if the system does not report it."""
    return int(_UNIQUE.unpack_from(data)[3]) if len(data) >= _UNIQUE.size else 0


def ask_macos(pid: int, flavour: int, size: int) -> bytes:
    """Returns b"" if there is no such process, or we are not allowed to read it."""
    if sys.platform != "darwin":
        return b""
    import ctypes

    room = ctypes.create_string_buffer(size)
    library = ctypes.CDLL("/usr/lib/libproc.dylib", use_errno=True)
    given = library.proc_pidinfo(ctypes.c_int(pid), flavour, ctypes.c_uint64(0), room, size)
    return room.raw[:given] if given > 0 else b""


def look_on_macos(pid: int, ask: AskMacos = ask_macos) -> MacProcess | None:
    return parse_process(ask(pid, _BSDINFO_FLAVOUR, _BSDINFO.size))


def number_version(pid: int) -> int:
    return parse_version(ask_macos(pid, _UNIQUE_FLAVOUR, _UNIQUE.size))
