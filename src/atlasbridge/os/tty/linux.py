"""The waiting probe of Linux: what does the terminal's foreground process group do? From /proc, without ptrace.

A blocked read on the terminal is a clear answer. An event loop that watches the terminal can wait for a person or for
running work; a working child, an unanswered request or processor use tells which.
"""

from __future__ import annotations

import array
import fcntl
import os
import platform
import re
import stat
import struct
import time
from collections.abc import Hashable, Iterable, Iterator
from enum import Enum, auto

from atlasbridge.core import sockdiag
from atlasbridge.core.detection.events import ProbeAnswer, ProbeState
from atlasbridge.core.values import field, frozen, mutable, replace
from atlasbridge.os.tty.posix import TURNS, echo_and_canon, foreground_group

# Process information from /proc: relations, blocked system calls of threads, descriptors.
#
# It reads and parses, and decides nothing. For a process that has ended it returns None or nothing; for one that cannot
# be inspected it raises PermissionError where the caller needs to know.

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


def can_write(pid: int, fd: int) -> bool:
    try:
        return bool(os.lstat(f"/proc/{pid}/fd/{fd}").st_mode & stat.S_IWUSR)
    except OSError:
        return False


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


# What one thread waits for: a blocked system call becomes a `Wait`.

# System call numbers by what a blocked caller waits for, per machine. A 32-bit program on a 64-bit
# kernel has different numbers. They never collide with blocking calls of the 64-bit table, and a match in the second
# table is trusted only for a 32-bit executable.


class Waits(Enum):
    """What a system call blocks on."""

    READ = auto()  # (fd, ...)
    POLL = auto()  # (pollfd*, count, milliseconds)
    PPOLL = auto()  # (pollfd*, count, timespec*)
    SELECT = auto()  # (count, read set*, write set*, except set*, time*)
    EPOLL = auto()  # (epoll fd, events*, count, milliseconds)
    EPOLL_TIMESPEC = auto()  # (epoll fd, events*, count, timespec*)
    RESTART = auto()  # a poll, sleep or futex continued after a signal; the arguments are the first call's
    URING = auto()
    FUTEX = auto()  # (word*, operation, value, timespec*)
    SLEEP = auto()
    CHILD = auto()
    SIGNAL = auto()
    SOCKET = auto()  # (fd, ...)


def _table(groups: dict[Waits, tuple[int, ...]]) -> dict[int, Waits]:
    return {number: waits for waits, numbers in groups.items() for number in numbers}


_X86_64 = _table(
    {
        Waits.READ: (0, 17, 19, 275, 295, 327),  # read pread64 readv splice preadv preadv2
        Waits.POLL: (7,),
        Waits.PPOLL: (271,),
        Waits.SELECT: (23, 270),
        Waits.EPOLL: (232, 281),
        Waits.EPOLL_TIMESPEC: (441,),
        Waits.RESTART: (219,),
        Waits.URING: (426,),
        Waits.FUTEX: (202, 449, 455),
        Waits.SLEEP: (35, 230),
        Waits.CHILD: (61, 247, 58),  # wait4 waitid vfork
        Waits.SIGNAL: (34, 128, 130),  # pause rt_sigtimedwait rt_sigsuspend
        Waits.SOCKET: (42, 43, 45, 47, 288, 299),  # connect accept recvfrom recvmsg accept4 recvmmsg
    }
)
_AARCH64 = _table(
    {
        Waits.READ: (63, 65, 67, 69, 76, 286),  # read readv pread64 preadv splice preadv2
        Waits.PPOLL: (73,),
        Waits.SELECT: (72,),
        Waits.EPOLL: (22,),
        Waits.EPOLL_TIMESPEC: (441,),
        Waits.RESTART: (128,),
        Waits.URING: (426,),
        Waits.FUTEX: (98, 449, 455),
        Waits.SLEEP: (101, 115),
        Waits.CHILD: (95, 260),
        Waits.SIGNAL: (133, 137),
        Waits.SOCKET: (202, 203, 207, 212, 242, 243),
    }
)
_OF_32_BITS = _table(
    {
        Waits.READ: (3, 145),
        Waits.POLL: (168,),
        Waits.PPOLL: (414,),
        Waits.SELECT: (142, 413),
        Waits.FUTEX: (240, 422),
        Waits.SLEEP: (162, 407),
        Waits.CHILD: (114,),
        Waits.SIGNAL: (29, 177, 179),
    }
)
_I386 = (
    _OF_32_BITS
    | {309: Waits.PPOLL, 308: Waits.SELECT, 256: Waits.EPOLL, 319: Waits.EPOLL}
    | {
        267: Waits.SLEEP,
        284: Waits.CHILD,
    }
)
_ARM = (
    _OF_32_BITS
    | {336: Waits.PPOLL, 335: Waits.SELECT, 252: Waits.EPOLL, 346: Waits.EPOLL}
    | {
        265: Waits.SLEEP,
        280: Waits.CHILD,
    }
)

NATIVE = {"x86_64": _X86_64, "amd64": _X86_64, "aarch64": _AARCH64, "arm64": _AARCH64}
COMPAT = {"x86_64": _I386, "amd64": _I386, "aarch64": _ARM, "arm64": _ARM}


_NATIVE = NATIVE.get(platform.machine().lower(), {})
_COMPAT = COMPAT.get(platform.machine().lower(), {})
_DEV_TTY = os.makedev(5, 0)
_PTS_MAJOR = 136
_FOREVER_S = 3600  # a longer timeout counts as none
_SOME_S = 1.0  # for a timer whose length is unknown
_SHORTEST_S = 0.001
_MAX_NESTING = 3

_POLLS = (Waits.POLL, Waits.PPOLL, Waits.SELECT, Waits.EPOLL, Waits.EPOLL_TIMESPEC, Waits.RESTART)


@frozen
class Terminal:
    """A terminal, identified by its number and, if known, by its file system."""

    index: int
    filesystem: int | None

    @classmethod
    def of(cls, index: int) -> Terminal:
        device = os.makedev(_PTS_MAJOR, index)
        try:
            status = os.stat(f"/dev/pts/{index}")
        except OSError:
            return cls(index, None)
        return cls(index, status.st_dev if status.st_rdev == device else None)

    @property
    def device(self) -> int:
        return os.makedev(_PTS_MAJOR, self.index)

    def is_open_as(self, process: Process, fd: int) -> bool:
        """Whether a descriptor is this terminal, by its own name or as /dev/tty.

        Containers have their own file systems, in which terminal numbers start again.
        """
        found = character_device(process.pid, fd)
        if found is None:
            return False
        filesystem, device = found
        if device == _DEV_TTY:
            return process.terminal == self.device
        return device == self.device and self.filesystem in (None, filesystem)


NOWHERE = Terminal((1 << 20) - 1, -1)  # no descriptor is this terminal


@frozen
class Wait:
    """`reads`: blocked in read on the terminal; `watches`: in poll, select or epoll with the terminal among others."""

    call: Waits | None  # None: the thread runs
    reads: bool = False
    watches: bool = False
    timeout: float = 0.0  # wakes by itself after this many seconds, as far as visible; 0: never
    others: tuple[str, ...] = ()  # other descriptors it waits for, except internal wake-ups

    @property
    def idle(self) -> bool:
        """Only another thread of the same program, or a signal, wakes it."""
        quiet = self.call in (Waits.FUTEX, Waits.SIGNAL) or (self.call in _POLLS and not self.timeout)
        return quiet and not self.others


def classify(process: Process, tid: int, terminal: Terminal) -> Wait:
    """Raises PermissionError if the thread cannot be inspected."""
    call = blocked_call(process.pid, tid)
    if call is None:
        return Wait(None)
    waits = _NATIVE.get(call.number)
    if waits is None and call.number in _COMPAT and is_32_bit(process.pid):
        waits = _COMPAT[call.number]
    if waits in (Waits.READ, Waits.SOCKET):
        return _wait_on_one(process, call.args[0], waits, terminal)
    if waits in _POLLS:
        return _wait_on_many(process, call, waits, terminal)
    if waits is Waits.FUTEX:
        return Wait(waits, timeout=_SOME_S if call.args[3] else 0.0)
    return Wait(waits or Waits.SLEEP, timeout=_SOME_S if waits is Waits.SLEEP else 0.0)


def _wait_on_one(process: Process, fd: int, waits: Waits, terminal: Terminal) -> Wait:
    if terminal.is_open_as(process, fd):
        return Wait(waits, reads=True)
    return Wait(waits, others=_outside(process.pid, [fd]))


def _wait_on_many(process: Process, call: BlockedCall, waits: Waits, terminal: Terminal) -> Wait:
    try:
        fds = _watched(process.pid, call, waits)
    except PermissionError:
        raise
    except OSError:  # the memory is not such a list, or the process is exiting
        return Wait(waits, timeout=_SOME_S)
    ours = [fd for fd in fds if terminal.is_open_as(process, fd)]
    rest = [fd for fd in fds if fd not in ours]
    timers = any(timer_is_set(process.pid, fd) for fd in rest if "timerfd" in descriptor(process.pid, fd))
    timeout = _wakes_after(process.pid, call, waits) or (_SOME_S if timers else 0.0)
    return Wait(waits, watches=bool(ours), timeout=timeout, others=_outside(process.pid, rest))


def _watched(pid: int, call: BlockedCall, waits: Waits) -> list[int]:
    if waits is Waits.SELECT:
        return select_set(pid, call.args[1], call.args[0] & 0xFFFF)
    if waits in (Waits.EPOLL, Waits.EPOLL_TIMESPEC):
        return _epoll_leaves(pid, call.args[0], _MAX_NESTING)
    return poll_set(pid, call.args[0], call.args[1])


def _epoll_leaves(pid: int, fd: int, depth: int) -> list[int]:
    """The descriptors that an epoll instance watches, including nested instances."""
    leaves: list[int] = []
    for target in epoll_set(pid, fd):
        if depth and descriptor(pid, target) == "anon_inode:[eventpoll]":
            leaves += _epoll_leaves(pid, target, depth - 1)
        else:
            leaves.append(target)
    return leaves


def _wakes_after(pid: int, call: BlockedCall, waits: Waits) -> float:
    """The call's timeout in seconds; 0 if it has no relevant one."""
    if waits in (Waits.POLL, Waits.RESTART, Waits.EPOLL):
        seconds = (call.args[3 if waits is Waits.EPOLL else 2] & 0xFFFFFFFF) / 1000
    else:
        address = call.args[{Waits.PPOLL: 2, Waits.SELECT: 4}.get(waits, 3)]
        if address == 0:
            return 0.0
        try:
            whole, part = struct.unpack("=qq", read_memory(pid, address, 16))
        except (OSError, struct.error):
            return _SOME_S
        seconds = whole + part / (1e9 if part >= 1e6 else 1e6)  # select uses either unit, depending on its number
    return max(seconds, _SHORTEST_S) if seconds < _FOREVER_S else 0.0


def _outside(pid: int, fds: list[int]) -> tuple[str, ...]:
    """The links of the descriptors that something outside the program can make ready."""
    if not fds:
        return ()
    links = {fd: descriptor(pid, fd) for fd in fds}
    suspects = {fd: link for fd, link in links.items() if not _is_wake_up(link)}
    if any(link.startswith(("pipe:", "socket:")) for link in suspects.values()):
        own = descriptors(pid)
        suspects = {fd: link for fd, link in suspects.items() if not _is_own_end(fd, link, own)}
    return tuple(suspects.values())


def _is_wake_up(link: str) -> bool:
    kinds = ("eventfd", "signalfd", "timerfd", "io_uring", "eventpoll")
    return link.startswith("anon_inode:") and any(kind in link for kind in kinds)


def _is_own_end(fd: int, link: str, own: dict[int, str]) -> bool:
    """Whether the program itself has the other end: a pipe or socket pair to wake its own loop."""
    if link.startswith("pipe:"):
        return any(other == link for number, other in own.items() if number != fd)
    inode = sockdiag.socket_inode(link)
    return inode != 0 and sockdiag.unix_peer(inode) in sockdiag.inodes_of(own)


# Processor use of the foreground group: its share of a processor, and how long it has not run at all. A program that
# reads the terminal in a loop with short sleeps has run between two looks; a sleeping one has not.

_SHORTEST_SPAN_S = 0.05
_MOST_GROUPS = 16


class Share:
    """The recent share of processor use of a group. Time spent waiting for a processor, because others use it, counts
    neither as use nor as idle time."""

    def __init__(self) -> None:
        self._spent = (0, 0.0, dict[int, tuple[float, float]]())  # group, time, and by process: used, waited
        self._share = 0.0

    def of(self, group: int, pids: Iterable[int]) -> float:
        """Return 0 until there are two samples to compare."""
        now = time.monotonic()
        last_group, then, before = self._spent
        if group == last_group and now - then < _SHORTEST_SPAN_S:
            return self._share
        spent = {pid: _processor_seconds(pid) for pid in pids}
        known = [pid for pid in spent if group == last_group and pid in before]
        self._share = sum(_part(before[pid], spent[pid], now - then) for pid in known)
        self._spent = (group, now, spent)
        return self._share


def _part(before: tuple[float, float], after: tuple[float, float], span_s: float) -> float:
    used, waited = after[0] - before[0], after[1] - before[1]
    return used / max(span_s - waited, used) if used > 0 else 0.0


class Stillness:
    """How long no thread of a group has run."""

    def __init__(self) -> None:
        # by group: switches per thread, and since when
        self._ran: dict[int, tuple[tuple[tuple[int, int], ...], float]] = {}

    def of(self, group: int, pids: Iterable[int]) -> float:
        """Seconds, as far as the samples can tell."""
        now, turns = time.monotonic(), tuple(turn for pid in pids for turn in _turns(pid))
        before, since = self._ran.pop(group, ((), now))
        if turns != before:
            since = now
        self._ran[group] = (turns, since)
        while len(self._ran) > _MOST_GROUPS:
            del self._ran[next(iter(self._ran))]
        return now - since


def _processor_seconds(pid: int) -> tuple[float, float]:
    """The processor time that a process has used, and the time that its main thread has waited for a processor, if the
    kernel reports it.

    The kernel has a clock for every process, with an id that can be computed.
    """
    try:
        used = time.clock_gettime((~pid << 3) | 2)
    except (OSError, OverflowError, ValueError):
        return 0.0, 0.0
    try:
        return used, sum(map(int, read_bytes(f"/proc/{pid}/schedstat").split()[1:2])) / 1e9
    except (OSError, ValueError):
        return used, 0.0


def _turns(pid: int) -> list[tuple[int, int]]:
    """How often each thread was scheduled; empty if the kernel does not count."""
    found = []
    for tid in threads(pid):
        try:
            fields = read_bytes(f"/proc/{pid}/task/{tid}/schedstat").split()
        except OSError:
            continue
        found += [(tid, int(fields[2]))] if len(fields) > 2 else []
    return found


# The processes of a terminal's foreground group, and what their threads wait for. This part only collects; the probe
# below decides.


@mutable
class Member:
    """One process of the foreground group, and what its threads wait for (the main thread first)."""

    process: Process
    waits: list[Wait] = field(default_factory=list)
    denied: bool = False

    @property
    def reads_in_main(self) -> bool:
        return bool(self.waits) and self.waits[0].reads

    @property
    def attends(self) -> bool:
        return any(wait.reads or wait.watches for wait in self.waits)

    @property
    def only_the_terminal(self) -> bool:
        """Whether all threads wait only for the terminal, an internal wake-up, or another thread."""
        attending = [wait for wait in self.waits if wait.reads or wait.watches]
        rest = [wait for wait in self.waits if not (wait.reads or wait.watches)]
        reads = any(wait.reads for wait in attending)
        if any(wait.timeout or wait.others for wait in attending):
            return False
        helpers = rest if self.waits[0] in attending else rest[1:]
        main_idle = self.waits[0] in attending or self.waits[0].idle
        # Runtime threads sleep with timeouts during a blocked read; during a poll they could be drawing.
        return main_idle and all(wait.idle or (reads and not wait.others) for wait in helpers)

    @property
    def timer(self) -> float:
        """After how many seconds it wakes by itself; 0 means never."""
        return max((wait.timeout for wait in self.waits), default=0.0)

    @property
    def serves_others(self) -> bool:
        """Whether its work comes from callers or from changing files."""
        others = {other for wait in self.waits for other in wait.others}
        return any("inotify" in other for other in others) or sockdiag.listens(map(sockdiag.socket_inode, others))

    @property
    def relays(self) -> bool:
        """A server without a controlling terminal only relays."""
        return self.process.terminal == 0


def group_members(group: int, child: int) -> Iterator[Process]:
    """The living processes of a group: the leader first, then descendants of the child; if there are none, all."""
    if group <= 0:
        return
    leader = read_process(group)
    found = leader is not None and leader.state not in "ZX" and leader.group == group
    if found and leader is not None:
        yield leader
    first = read_process(child)
    family = [first] if first is not None and first.state not in "ZX" else []
    for process in [*family, *descendants(child)]:
        if process.group == group and process.pid != group:
            found = True
            yield process
    if not found:
        yield from (process for process in every_process() if process.group == group)


def examine(process: Process, terminal: Terminal) -> Member:
    member = Member(process)
    if process.state in "Tt":
        return member
    try:
        for tid in threads(process.pid):
            member.waits.append(classify(process, tid, terminal))
            if member.reads_in_main:
                break
    except PermissionError:
        member.denied = True
    return member


def is_signalled(process: Process, terminal: Terminal) -> bool:
    """Whether the kernel sends it a signal when keys arrive on the terminal, so that it blocks in no read of it."""
    for fd in descriptors(process.pid):
        try:
            flags = re.search(rb"flags:\s+(\d+)", read_bytes(f"/proc/{process.pid}/fdinfo/{fd}"))
        except OSError:
            continue
        if flags and int(flags[1], 8) & os.O_ASYNC and terminal.is_open_as(process, fd):
            return True
    return False


# Programs of other sessions that have this terminal open: tmux and screen serve it from their own server, pinentry
# opens it by name. This part finds them; the probe below judges them. A search walks through all of /proc, so it is
# rare.

_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 4.0


class OutsideReaders:
    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self._known: dict[int, int] = {}  # process, and its descriptor of the terminal
        self._about: Hashable = None
        self._again_at = 0.0
        self._pause_s = _FIRST_PAUSE_S

    def look(self, about: Hashable, now: float) -> list[Process]:
        """Return the programs that have the terminal open. A new state of the terminal (`about`) causes a search at
        once; for the same state, searches are repeated with growing pauses."""
        if about != self._about:
            self._about, self._again_at, self._pause_s = about, now, _FIRST_PAUSE_S
        held = [process for pid in self._known if (process := self._still_holds(pid)) is not None]
        if held or now < self._again_at:
            return held
        found = list(holders(self.terminal))
        self._known = {process.pid: fd for process, fd in found}
        self._again_at, self._pause_s = now + self._pause_s, min(2 * self._pause_s, _LONGEST_PAUSE_S)
        return [process for process, _ in found]

    def _still_holds(self, pid: int) -> Process | None:
        process = read_process(pid)
        gone = process is None or process.state in "ZX" or not self.terminal.is_open_as(process, self._known[pid])
        return None if gone else process


def holders(terminal: Terminal) -> Iterator[tuple[Process, int]]:
    """Every inspectable process with another or no controlling terminal that has this terminal open, with its
    descriptor."""
    name = f"/dev/pts/{terminal.index}"
    ourselves = os.getpid()
    for process in every_process():
        if process.terminal == terminal.device or process.pid == ourselves:
            continue
        for fd, link in descriptors(process.pid).items():
            if link == name and terminal.is_open_as(process, fd):
                yield process, fd
                break


# Whether a program has other work while it watches its terminal: unanswered requests, or children that do something it
# waits for.

_SLACK_S = 0.05


def pending_request(processes: Iterable[Process], input_age_s: float | None) -> str:
    """Why one of these processes waits for an answer from the network, or ""."""
    inodes = set[int]()
    for process in processes:
        inodes |= sockdiag.inodes_of(descriptors(process.pid))
    since_ms = float("inf") if input_age_s is None else (input_age_s + _SLACK_S) * 1000
    return sockdiag.pending(inodes, since_ms)


def is_at_work(child: Process, program: Process, input_age_s: float | None) -> bool:
    """Whether a child does something that the program waits for.

    Permanent helpers do not count: children older than the last input, children that wait for input from the program,
    and independent daemons.
    """
    if child.state in "Tt":
        return False
    if child.state in "RD":
        return not _is_daemon(child, program)
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - child.started / os.sysconf("SC_CLK_TCK")
    if input_age_s is not None and age_s > input_age_s + _SLACK_S:
        return False
    try:
        waits = [classify(child, tid, NOWHERE) for tid in threads(child.pid)]
    except PermissionError:
        return True
    return not (_awaits_words(child, waits) or _awaits_only(program, waits) or _is_daemon(child, program))


def _is_daemon(child: Process, program: Process) -> bool:
    """Whether it is an independent server: no terminal, waiting for connections, and nothing that it could write to the
    program or the terminal. Its standard input and a pipe that tells it when to end are harmless.
    """
    if child.terminal:
        return False
    own, streams = descriptors(child.pid), set(descriptors(program.pid).values())
    said = {link for fd, link in own.items() if fd and can_write(child.pid, fd)}
    if any(link.startswith(("pipe:", "/dev/pts/")) for link in streams & said):
        return False
    inodes, theirs = sockdiag.inodes_of(own), sockdiag.inodes_of(dict(enumerate(streams)))
    return sockdiag.awaits_calls(inodes) and not any(sockdiag.unix_peer(inode) in theirs for inode in inodes)


def _awaits_words(child: Process, waits: list[Wait]) -> bool:
    """Whether a child waits for its standard input, a pipe or socket that its parent writes to."""
    words = descriptor(child.pid, 0)
    return words.startswith(("pipe:", "socket:")) and any(words in wait.others for wait in waits)


def _awaits_only(program: Process, waits: list[Wait]) -> bool:
    """Whether every thread waits for the program or a caller: a halted debugger target, a language server."""
    others = {other for wait in waits for other in wait.others}
    if not others or not all(wait.idle or (wait.others and not wait.timeout) for wait in waits):
        return False
    own = descriptors(program.pid)
    rest = others - set(own.values())
    inodes = {sockdiag.socket_inode(other) for other in rest}
    return 0 not in inodes and inodes == sockdiag.answering(inodes, sockdiag.inodes_of(own))


_TIOCGPTN = 0x80045430
_BUSY_SHARE = 0.5  # of one processor, between two samples
_STILL_S = 1.0  # a program that reads the terminal in a loop with sleeps runs at least once in this time
_MAX_DEPTH = 3  # nested terminals
_MAX_CHILDREN = 64


class LinuxProbe:
    def __init__(self, master_fd: int, child_pid: int) -> None:
        self._master = master_fd
        self._child = child_pid
        self._terminal = Terminal.of(_terminal_number(master_fd))
        self._outside_readers = OutsideReaders(self._terminal)
        self._mode: tuple[bool | None, bool | None] = (None, None)  # echo, canonical
        self._share = Share()
        self._stillness = Stillness()

    def look(self, quiet_s: float, input_age_s: float | None) -> ProbeAnswer:
        """`quiet_s` is left to the detector; the kernel's answer does not depend on it."""
        for _ in range(TURNS):
            self._mode = echo, canonical = echo_and_canon(self._master)
            group = foreground_group(self._master)
            answer = self._judge(
                self._terminal, group, self._child, input_age_s, canonical is True and echo is False, 0
            )
            if echo_and_canon(self._master) == self._mode:
                break  # otherwise the program changed them during this look, and a secret could pass for a line
        if answer.echo is None:
            answer = replace(answer, echo=echo, canonical=canonical)
        return replace(answer, called=answer.pid not in (0, self._child) and not answer.rows)

    def _judge(
        self, terminal: Terminal, group: int, child: int, input_age_s: float | None, secret: bool, depth: int
    ) -> ProbeAnswer:
        members: list[Member] = []
        for process in group_members(group, child):
            member = examine(process, terminal)
            if member.reads_in_main:
                return _timed(_answer(ProbeState.READING, "blocks in read on the terminal", process), reads=True)
            members.append(member)
        if not members:
            return ProbeAnswer(ProbeState.UNKNOWN, "no foreground process")
        if self._mode[1] is False and not any(member.attends for member in members):
            for member in members:
                if is_signalled(member.process, terminal):
                    member.waits.append(Wait(Waits.SIGNAL, watches=True))
        share = self._share.of(group, [member.process.pid for member in members]) if depth == 0 else 0.0
        return self._judge_members(members, input_age_s, secret, share, depth)

    def _judge_outside_readers(self, group: int, input_age_s: float | None) -> ProbeAnswer | None:
        """A program of another session can serve the terminal while the foreground group only waits for its end. Such a
        program has switched off canonical mode or the echo."""
        if self._mode == (True, True):
            return None
        for process in self._outside_readers.look((group, self._mode), time.monotonic()):
            member = examine(process, self._terminal)
            if member.attends:
                return self._inside(member, input_age_s, 0) or self._judge_loop(member, input_age_s, 0.0, 0)
        return None

    def _judge_members(
        self, members: list[Member], input_age_s: float | None, secret: bool, share: float, depth: int
    ) -> ProbeAnswer:
        attending = [member for member in members if member.attends]
        parents = {member.process.parent for member in members if member.attends}
        leaves = [member for member in attending if member.process.pid not in parents]
        answers = [self._judge_loop(member, input_age_s, share, depth) for member in leaves]
        if answers:
            return min(answers, key=lambda answer: _STRENGTH[answer.state])
        served = self._judge_outside_readers(members[0].process.group, input_age_s) if depth == 0 else None
        if served is not None:
            return served
        answer = _judge_absent(members, secret)
        if answer.state is ProbeState.BUSY and (depth or self._mode != (True, True)):
            certain = self._reads_surely_not(members, depth)
            answer = replace(answer, certain=certain, sleeps=not certain and _only_sleeps(members))
        return answer

    def _reads_surely_not(self, members: list[Member], depth: int) -> bool:
        """A program that reads the terminal in a loop with sleeps runs now and then, but never much."""
        group, pids = members[0].process.group, [member.process.pid for member in members]
        computes = depth == 0 and self._share.of(group, pids) > _BUSY_SHARE
        return self._stillness.of(group, pids) >= _STILL_S or computes

    def _judge_loop(self, member: Member, input_age_s: float | None, share: float, depth: int) -> ProbeAnswer:
        """Judge a program that watches the terminal with poll, or reads it in a helper thread."""
        process, runs = member.process, ""
        if any(wait.call is None for wait in member.waits):
            runs = "one of its threads runs"
        elif share > _BUSY_SHARE:
            runs = f"uses {share:.0%} of a processor"
        below = list(descendants(process.pid))[:_MAX_CHILDREN]
        why = pending_request([process, *below], input_age_s)
        inner = self._inside(member, input_age_s, depth) if below and not why else None
        if inner is not None:
            return _answer(ProbeState.BUSY, runs, process) if runs else inner
        worker = next((child for child in below if is_at_work(child, process, input_age_s)), None) if not why else None
        why = f"its child {worker.command} ({worker.pid}) is at work" if worker else why
        if why or runs:
            return replace(_answer(ProbeState.BUSY, why or runs, process), runs=not why)
        if member.only_the_terminal:
            return _timed(_answer(ProbeState.READING, "waits for nothing but the terminal", process))
        others = sorted({other.split(":")[0] for wait in member.waits for other in wait.others})
        why = f"watches the terminal and {', '.join(others) or 'the time'}"
        answer = replace(_answer(ProbeState.POLLING, why, process), others=bool(others), serves=member.serves_others)
        return _timed(replace(answer, timer=bool(member.timer), period_s=member.timer))

    def _inside(self, member: Member, input_age_s: float | None, depth: int) -> ProbeAnswer | None:
        """The answer of a nested terminal that this program runs (script, expect, an agent's shell), if it has one."""
        if depth >= _MAX_DEPTH:
            return None
        answers: list[ProbeAnswer] = []
        terminals = _terminals_of(member.process.pid)
        below = list(descendants(member.process.pid)) if terminals else []
        for index in terminals:
            terminal = Terminal.of(index)
            owner = next((one for one in below if one.terminal == terminal.device), None)
            if owner is not None and owner.foreground > 0:
                answer = self._judge(terminal, owner.foreground, owner.pid, input_age_s, False, depth + 1)
                answers.append(_relayed(answer, member, index))
        return _one_of(answers)


_STRENGTH = {ProbeState.READING: 0, ProbeState.POLLING: 1, ProbeState.UNKNOWN: 2, ProbeState.BUSY: 3}


def _answer(state: ProbeState, why: str, process: Process) -> ProbeAnswer:
    return ProbeAnswer(state, why, pid=process.pid, command=process.command)


def _timed(answer: ProbeAnswer, reads: bool = False) -> ProbeAnswer:
    """With how often its threads have run. If the main thread blocks in read, others can only write."""
    turns = sum(turns for tid, turns in _turns(answer.pid) if tid == answer.pid or not reads)
    return replace(answer, turns=turns)


def _terminal_number(master_fd: int) -> int:
    number = array.array("I", [0])
    fcntl.ioctl(master_fd, _TIOCGPTN, number)
    return number[0]


def _judge_absent(members: list[Member], secret: bool) -> ProbeAnswer:
    """Judge a group in which no process is seen to wait for the terminal."""
    denied = [member for member in members if member.denied]
    if denied:
        process = denied[-1].process
        if secret and process.state == "S":
            return _answer(ProbeState.READING, "may not be inspected, but the terminal asks for a secret", process)
        return _answer(ProbeState.UNKNOWN, "may not be inspected", process)
    first = members[0].process
    if all(member.process.state in "Tt" for member in members):
        return _answer(ProbeState.BUSY, "is stopped", first)
    if any(wait.call is Waits.URING for member in members for wait in member.waits):
        return _answer(ProbeState.UNKNOWN, "waits in io_uring, which does not show for what", first)
    return _answer(ProbeState.BUSY, "waits for something else than the terminal, or runs", first)


def _only_sleeps(members: list[Member]) -> bool:
    """Whether it is one program without children that sleeps in short turns: it can look at its keys in between."""
    first = members[0]
    sleeps = len(members) == 1 and bool(first.waits) and first.waits[0].call is Waits.SLEEP
    return sleeps and not children(first.process.pid)


def _terminals_of(pid: int) -> list[int]:
    """The numbers of the terminals whose masters this program has open."""
    masters = [fd for fd, link in descriptors(pid).items() if link.endswith("ptmx")]
    return sorted({index for fd in masters if (index := terminal_index(pid, fd)) is not None})


def _relayed(answer: ProbeAnswer, member: Member, index: int) -> ProbeAnswer:
    """The answer of a nested terminal, with its own flags."""
    why = f"inside a terminal of {member.process.command}: {answer.why}"
    echo, canonical, rows = _inner_state(index)
    answer = replace(answer, why=why, rows=rows)
    if answer.state is ProbeState.BUSY:  # only the outer program can ask then, so the outer flags count
        return replace(answer, certain=answer.certain or canonical is True)
    if answer.state is ProbeState.READING and member.timer and not member.relays:
        answer = replace(answer, state=ProbeState.POLLING, timer=True)  # it could do more than relay
    return answer if answer.echo is not None else replace(answer, echo=echo, canonical=canonical)


def _one_of(answers: list[ProbeAnswer]) -> ProbeAnswer | None:
    """Only one of several nested terminals has the keyboard, and it is unknown which."""
    if not answers:
        return None
    best = min(answers, key=lambda answer: _STRENGTH[answer.state])
    if best.state is ProbeState.READING and any(answer.state is not ProbeState.READING for answer in answers):
        return replace(best, state=ProbeState.POLLING, timer=True)
    return best


def _inner_state(index: int) -> tuple[bool | None, bool | None, int]:
    """Echo, canonical mode and height of a terminal, by its number."""
    try:
        fd = os.open(f"/dev/pts/{index}", os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None, None, 0
    try:
        return *echo_and_canon(fd), os.get_terminal_size(fd).lines
    except OSError:
        return None, None, 0
    finally:
        os.close(fd)
