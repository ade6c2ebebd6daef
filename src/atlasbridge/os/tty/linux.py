"""The waiting probe of Linux: what does the terminal's foreground process group do?  From /proc, without ptrace.

A blocked read on the terminal is an answer by itself.  An event loop that watches the terminal may wait for a person
or for work in progress; a child at work, a request without an answer, or the processor's use tell which.
"""

from __future__ import annotations

import array
import fcntl
import os
import termios
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from atlasbridge.core.prompt.events import ProbeAnswer, ProbeState
from atlasbridge.os.tty import procfs, sockdiag
from atlasbridge.os.tty.procfs import Process
from atlasbridge.os.tty.syscalls import Waits
from atlasbridge.os.tty.waits import NOWHERE, Line, Wait, classify

_TIOCGPTN = 0x80045430
_BUSY_SHARE = 0.5  # of one processor, between two looks
_SHORTEST_SPAN_S = 0.05
_MAX_DEPTH = 3  # terminals inside terminals
_MAX_CHILDREN = 64
_SLACK_S = 0.05


@dataclass(slots=True)
class _Member:
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
        """No thread waits for anything but the terminal, a wake-up of the program's own, or another thread."""
        attending = [wait for wait in self.waits if wait.reads or wait.watches]
        rest = [wait for wait in self.waits if not (wait.reads or wait.watches)]
        reads = any(wait.reads for wait in attending)
        if any(wait.timeout or wait.others for wait in attending):
            return False
        helpers = rest if self.waits[0] in attending else rest[1:]
        main_idle = self.waits[0] in attending or self.waits[0].idle
        # A runtime's own threads doze with timeouts beside a blocked read; beside a poll they may draw.
        return main_idle and all(wait.idle or (reads and not wait.others) for wait in helpers)

    @property
    def timer(self) -> bool:
        return any(wait.timeout for wait in self.waits)


class LinuxProbe:
    def __init__(self, master_fd: int, child_pid: int) -> None:
        self._master = master_fd
        self._child = child_pid
        self._line = Line.of(_terminal_number(master_fd))
        self._used = (0, 0.0, 0.0)  # foreground group, its processor seconds, when
        self._share = 0.0

    def look(self, quiet_s: float, input_age_s: float | None) -> ProbeAnswer:
        """`quiet_s` is left to the detector, which weighs it; the kernel's answer does not depend on it."""
        echo, canonical = _flags(self._master)
        group = _foreground_group(self._master)
        answer = self._judge(self._line, group, self._child, input_age_s, canonical is True and echo is False, 0)
        if answer.echo is None:
            answer = replace(answer, echo=echo, canonical=canonical)
        return answer

    def _judge(
        self, line: Line, group: int, child: int, input_age_s: float | None, secret: bool, depth: int
    ) -> ProbeAnswer:
        members: list[_Member] = []
        for process in _group_members(group, child):
            member = _examine(process, line)
            if member.reads_in_main:
                return _answer(ProbeState.READING, "blocks in read on the terminal", process)
            members.append(member)
        if not members:
            return ProbeAnswer(ProbeState.UNKNOWN, "no foreground process")
        share = self._processor_share(group, members) if depth == 0 else 0.0
        return self._judge_members(members, input_age_s, secret, share, depth)

    def _judge_members(
        self, members: list[_Member], input_age_s: float | None, secret: bool, share: float, depth: int
    ) -> ProbeAnswer:
        attending = [member for member in members if member.attends]
        parents = {member.process.parent for member in members if member.attends}
        leaves = [member for member in attending if member.process.pid not in parents]
        answers = [self._judge_loop(member, input_age_s, share, depth) for member in leaves]
        if answers:
            return min(answers, key=lambda answer: _STRENGTH[answer.state])
        for member in members:
            inner = self._inside(member, input_age_s, depth)
            if inner is not None:
                return inner
        return _judge_absent(members, secret)

    def _judge_loop(self, member: _Member, input_age_s: float | None, share: float, depth: int) -> ProbeAnswer:
        """A program that watches the terminal by poll, or reads it in a helper thread."""
        process = member.process
        if any(wait.call is None for wait in member.waits):
            return _answer(ProbeState.BUSY, "one of its threads runs", process)
        if share > _BUSY_SHARE:
            return _answer(ProbeState.BUSY, f"uses {share:.0%} of a processor", process)
        below = list(procfs.descendants(process.pid))[:_MAX_CHILDREN]
        why = _pending_request([process, *below], input_age_s)
        if why:
            return _answer(ProbeState.BUSY, why, process)
        inner = self._inside(member, input_age_s, depth) if below else None
        if inner is not None:
            return inner
        worker = next((child for child in below if _is_at_work(child, input_age_s)), None)
        if worker is not None:
            return _answer(ProbeState.BUSY, f"its child {worker.command} ({worker.pid}) is at work", process)
        if member.only_the_terminal:
            return _answer(ProbeState.READING, "waits for nothing but the terminal", process)
        others = sorted({other.split(":")[0] for wait in member.waits for other in wait.others})
        why = f"watches the terminal and {', '.join(others) or 'the time'}"
        return replace(_answer(ProbeState.POLLING, why, process), timer=member.timer)

    def _inside(self, member: _Member, input_age_s: float | None, depth: int) -> ProbeAnswer | None:
        """What the terminal says that this program runs itself (script, expect, an agent's shell), if it has one."""
        if depth >= _MAX_DEPTH:
            return None
        for fd, link in procfs.descriptors(member.process.pid).items():
            index = procfs.terminal_index(member.process.pid, fd) if link.endswith("ptmx") else None
            if index is None:
                continue
            line = Line.of(index)
            owner = next((one for one in procfs.descendants(member.process.pid) if one.terminal == line.device), None)
            if owner is None or owner.foreground <= 0:
                continue
            answer = self._judge(line, owner.foreground, owner.pid, input_age_s, False, depth + 1)
            return _relayed(answer, member, index)
        return None

    def _processor_share(self, group: int, members: list[_Member]) -> float:
        """Processors used by the group of late; 0 until there are two looks to compare."""
        now, used = time.monotonic(), sum(_processor_seconds(member.process.pid) for member in members)
        last_group, last_used, then = self._used
        if group == last_group and now - then < _SHORTEST_SPAN_S:
            return self._share
        known = group == last_group and used >= last_used
        self._share = (used - last_used) / (now - then) if known else 0.0
        self._used = (group, used, now)
        return self._share


_STRENGTH = {ProbeState.READING: 0, ProbeState.POLLING: 1, ProbeState.UNKNOWN: 2, ProbeState.BUSY: 3}


def _answer(state: ProbeState, why: str, process: Process) -> ProbeAnswer:
    return ProbeAnswer(state, why, pid=process.pid, command=process.command)


def _terminal_number(master_fd: int) -> int:
    number = array.array("I", [0])
    fcntl.ioctl(master_fd, _TIOCGPTN, number)
    return number[0]


def _foreground_group(master_fd: int) -> int:
    group = array.array("i", [0])
    try:
        fcntl.ioctl(master_fd, termios.TIOCGPGRP, group)
    except OSError:
        return 0
    return group[0]


def _flags(fd: int) -> tuple[bool | None, bool | None]:
    """Echo and canonical mode of a terminal."""
    try:
        local = termios.tcgetattr(fd)[3]
    except (termios.error, OSError):
        return None, None
    return bool(local & termios.ECHO), bool(local & termios.ICANON)


def _group_members(group: int, child: int) -> Iterator[Process]:
    """The living processes of a group: its leader first, then the child's family, then, if none is there, all."""
    if group <= 0:
        return
    leader = procfs.read_process(group)
    found = leader is not None and leader.state not in "ZX" and leader.group == group
    if found and leader is not None:
        yield leader
    first = procfs.read_process(child)
    family = [first] if first is not None and first.state not in "ZX" else []
    for process in [*family, *procfs.descendants(child)]:
        if process.group == group and process.pid != group:
            found = True
            yield process
    if not found:
        yield from (process for process in procfs.every_process() if process.group == group)


def _examine(process: Process, line: Line) -> _Member:
    member = _Member(process)
    if process.state in "Tt":
        return member
    try:
        for tid in procfs.threads(process.pid):
            member.waits.append(classify(process, tid, line))
            if member.reads_in_main:
                break
    except PermissionError:
        member.denied = True
    return member


def _judge_absent(members: list[_Member], secret: bool) -> ProbeAnswer:
    """Nobody in the group is seen to wait for the terminal."""
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


def _relayed(answer: ProbeAnswer, member: _Member, index: int) -> ProbeAnswer:
    """What a terminal inside this one says, with that terminal's own flags."""
    echo, canonical = _flags_of(index)
    state, timer = answer.state, answer.timer
    if state is ProbeState.READING and member.timer:  # the program around it may have more to do than to relay
        state, timer = ProbeState.POLLING, True
    why = f"inside a terminal of {member.process.command}: {answer.why}"
    return replace(answer, state=state, timer=timer, why=why, echo=echo, canonical=canonical)


def _flags_of(index: int) -> tuple[bool | None, bool | None]:
    try:
        fd = os.open(f"/dev/pts/{index}", os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None, None
    try:
        return _flags(fd)
    finally:
        os.close(fd)


def _processor_seconds(pid: int) -> float:
    """Processor time a process has used, and its main thread has queued for: on a loaded machine the two go together.

    The kernel gives every process a clock of its own, with a number that can be computed.
    """
    try:
        queued = procfs.read_bytes(f"/proc/{pid}/schedstat").split()[1:2]
        return time.clock_gettime((~pid << 3) | 2) + sum(map(int, queued)) / 1e9
    except (OSError, OverflowError, ValueError):
        return 0.0


def _pending_request(processes: list[Process], input_age_s: float | None) -> str:
    inodes = set[int]()
    for process in processes:
        inodes |= sockdiag.inodes_of(procfs.descriptors(process.pid))
    since_ms = float("inf") if input_age_s is None else (input_age_s + _SLACK_S) * 1000
    return sockdiag.pending(inodes, since_ms)


def _is_at_work(child: Process, input_age_s: float | None) -> bool:
    """Whether a child does something the program waits for.

    Children older than the last input are helpers that stay; so are those that wait for words on their own input.
    """
    if child.state in "Tt":
        return False
    if child.state in "RD":
        return True
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - child.started / os.sysconf("SC_CLK_TCK")
    if input_age_s is not None and age_s > input_age_s + _SLACK_S:
        return False
    return not _awaits_words(child)


def _awaits_words(child: Process) -> bool:
    """Whether a child waits for its standard input, which is a pipe or socket that its parent writes to."""
    words = procfs.descriptor(child.pid, 0)
    if not words.startswith(("pipe:", "socket:")):
        return False
    try:
        return any(words in classify(child, tid, NOWHERE).others for tid in procfs.threads(child.pid))
    except PermissionError:
        return False
