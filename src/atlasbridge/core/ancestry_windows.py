"""Where a process comes from on Windows: whose end of a connection it is, and which process has started which.

Reading tables is pure; asking the system for them stands at the end.  Windows forgets who started whom once the parent
has ended: a line that does not lead to a process that the system itself starts cannot be told, and decides nothing.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from atlasbridge.core.values import frozen

Address = tuple[str, int]

# Where lines end: the desktop, whose own parent is always gone, and what the system starts at boot and at a login.
ROOTS = frozenset({"explorer.exe", "wininit.exe", "winlogon.exe", "system"})
_ROW = struct.Struct("<I4s2s2x4s2s2xI")  # state, local address and port, remote address and port, owner
_COUNT = struct.Struct("<I")
# AF_INET, TCP_TABLE_OWNER_PID_ALL: a peer that has said its last word and waits for ours is not "connected" any more
_IPV4, _ALL_OWNED = 2, 5
_TOO_SMALL = 122
_PROCESSES = 0x2  # TH32CS_SNAPPROCESS
_MAY_ASK = 0x1000  # PROCESS_QUERY_LIMITED_INFORMATION


@frozen
class TaskRow:
    """A process in the system's list."""

    parent: int
    name: str


def read_connections(table: bytes) -> Iterator[tuple[Address, Address, int]]:
    """(its own end, the far end, the process) of each; what is cut off is left out."""
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
    """The process that has the client's end; 0: none that is listed."""
    return next((pid for own, far, pid in read_connections(table) if (own, far) == (client, server)), 0)


def describe(pid: int, listed: Mapping[int, TaskRow], started: Callable[[int], int]) -> tuple[int, int, str] | None:
    """(parent, start, name) of one process of the list; None: it is gone.  Parent 0: the line ends here."""
    found = listed.get(pid)
    if found is None:
        return None
    name = found.name.lower()
    return 0 if name in ROOTS else found.parent, started(pid), name


# The system's own tables


def owner_of(client: Address, server: Address) -> int:
    return find_owner(_connections(), client, server)


def look_on_windows(pid: int) -> tuple[int, int, str] | None:
    return describe(pid, _list_processes(), _started)


def _connections() -> bytes:
    """Grown until it holds them all: more may come while we ask."""
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
    """In the system's own ticks; 0: it does not say."""
    if sys.platform != "win32":
        return 0
    import ctypes

    kernel = ctypes.WinDLL("kernel32")
    kernel.OpenProcess.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(kernel.OpenProcess(_MAY_ASK, False, pid))
    if not handle.value:
        return 0
    times = (ctypes.c_ulonglong * 4)()  # made, ended, in the kernel, outside of it
    places = [ctypes.byref(times, place * 8) for place in range(4)]
    try:
        return int(times[0]) if kernel.GetProcessTimes(handle, *places) else 0
    finally:
        kernel.CloseHandle(handle)
