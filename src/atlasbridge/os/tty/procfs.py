"""Process information from /proc: relations, blocked system calls of threads, descriptors.

It reads and parses, and decides nothing. For a process that has ended it returns None or nothing; for one that cannot
be inspected it raises PermissionError where the caller needs to know.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator

from atlasbridge.core.values import frozen

_MAX_WALK = 512
_READING_EVENTS = 0x43  # POLLIN, POLLPRI, POLLRDNORM; the same bits for poll and epoll
_epoll_targets = re.compile(rb"tfd:\s+(\d+) events:\s+([0-9a-f]+)").findall


@frozen
class Process:
    pid: int
    command: str
    state: str
    parent: int
    group: int
    terminal: int  # device number of the controlling terminal, 0: none
    foreground: int  # foreground process group of that terminal
    started: int  # clock ticks after boot


@frozen
class BlockedCall:
    number: int
    args: tuple[int, ...]


def read_bytes(path: str, size: int = 4096) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, size)
    finally:
        os.close(fd)


def read_process(pid: int) -> Process | None:
    try:
        return parse_stat(read_bytes(f"/proc/{pid}/stat"))
    except (OSError, ValueError, IndexError):
        return None


def parse_stat(data: bytes) -> Process:
    """One line of /proc/PID/stat. The command is in brackets and can contain any character, also brackets."""
    opening, closing = data.index(b"("), data.rindex(b")")
    fields = data[closing + 2 :].split()
    device = int(fields[4])
    return Process(
        pid=int(data[:opening]),
        command=data[opening + 1 : closing].decode("utf-8", "replace"),
        state=fields[0].decode(),
        parent=int(fields[1]),
        group=int(fields[2]),
        terminal=os.makedev(device >> 8 & 0xFFF, device & 0xFF | device >> 12 & 0xFFF00),
        foreground=int(fields[5]),
        started=int(fields[19]),
    )


def threads(pid: int) -> list[int]:
    """Thread ids, the main thread first."""
    try:
        return sorted(map(int, os.listdir(f"/proc/{pid}/task")))
    except OSError:
        return []


def children(pid: int) -> list[int]:
    """Children of every thread, since each of them can fork."""
    found: list[int] = []
    for tid in threads(pid):
        try:
            found += map(int, read_bytes(f"/proc/{pid}/task/{tid}/children", 65536).split())
        except OSError:
            continue
    return found


def descendants(pid: int) -> Iterator[Process]:
    """Living children, their children and so on, parents before children."""
    queue, seen = children(pid), {pid}
    while queue and len(seen) < _MAX_WALK:
        child = queue.pop(0)
        if child in seen:
            continue
        seen.add(child)
        process = read_process(child)
        if process is not None and process.state not in "ZX":
            yield process
            queue += children(child)


def every_process() -> Iterator[Process]:
    """All visible processes, for groups that are not below the child."""
    for name in os.listdir("/proc"):
        if name.isdecimal() and (process := read_process(int(name))) is not None and process.state not in "ZX":
            yield process


def blocked_call(pid: int, tid: int) -> BlockedCall | None:
    """The system call a thread blocks in; None when it runs, or is gone."""
    try:
        return parse_syscall(read_bytes(f"/proc/{pid}/task/{tid}/syscall", 256))
    except PermissionError:
        raise
    except (OSError, ValueError):
        return None


def parse_syscall(data: bytes) -> BlockedCall | None:
    fields = data.split()
    if len(fields) < 7:  # "running", or "-1 sp pc": blocked, but not in a system call
        return None
    return BlockedCall(int(fields[0]), tuple(int(field, 16) for field in fields[1:7]))


def is_32_bit(pid: int) -> bool:
    try:
        return read_bytes(f"/proc/{pid}/exe", 5)[4:] == b"\x01"
    except OSError:
        return False


def read_memory(pid: int, address: int, size: int) -> bytes:
    fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(fd, size, address)
    finally:
        os.close(fd)


def epoll_set(pid: int, epoll_fd: int) -> list[int]:
    """Descriptors an epoll instance watches for reading."""
    data = read_bytes(f"/proc/{pid}/fdinfo/{epoll_fd}", 65536)
    return [int(fd) for fd, events in _epoll_targets(data) if int(events, 16) & _READING_EVENTS]


def poll_set(pid: int, address: int, count: int) -> list[int]:
    data = read_memory(pid, address, 8 * min(count, 1024))
    entries = (data[at : at + 8] for at in range(0, len(data) - 7, 8))
    numbers = ((int.from_bytes(e[:4], "little", signed=True), int.from_bytes(e[4:6], "little")) for e in entries)
    return [fd for fd, events in numbers if fd >= 0 and events & _READING_EVENTS]


def select_set(pid: int, address: int, count: int) -> list[int]:
    count = min(count, 4096)
    bits = int.from_bytes(read_memory(pid, address, (count + 7) // 8), "little") if address else 0
    return [fd for fd in range(count) if bits >> fd & 1]


def descriptor(pid: int, fd: int) -> str:
    """The link of a descriptor: "pipe:[123]", "anon_inode:[eventfd]", a path; "" if it is gone."""
    try:
        return os.readlink(f"/proc/{pid}/fd/{fd}")
    except OSError:
        return ""


def descriptors(pid: int) -> dict[int, str]:
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return {}
    return {int(name): descriptor(pid, int(name)) for name in names[:4096]}


def character_device(pid: int, fd: int) -> tuple[int, int] | None:
    """File system and device number of a descriptor. Unlike paths, they do not depend on a mount namespace."""
    try:
        status = os.stat(f"/proc/{pid}/fd/{fd}")
    except OSError:
        return None
    return (status.st_dev, status.st_rdev) if stat.S_ISCHR(status.st_mode) else None


def timer_is_set(pid: int, fd: int) -> bool:
    """Whether a timerfd will fire."""
    try:
        value = re.search(rb"it_value: \((\d+), (\d+)\)", read_bytes(f"/proc/{pid}/fdinfo/{fd}"))
    except OSError:
        return False
    return value is not None and (int(value[1]), int(value[2])) != (0, 0)


def terminal_index(pid: int, fd: int) -> int | None:
    """The number of the terminal whose master this descriptor is."""
    try:
        index = re.search(rb"tty-index:\s*(\d+)", read_bytes(f"/proc/{pid}/fdinfo/{fd}"))
    except OSError:
        return None
    return int(index[1]) if index else None
