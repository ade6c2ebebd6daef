"""The waiting probe of Linux: what does the terminal's foreground process group do?  From /proc, without ptrace.

A blocked read on the terminal is an answer by itself.  An event loop that watches the terminal may wait for a person
or for work in progress; a child at work, a request without an answer, or the processor's use tell which.
"""

from __future__ import annotations

import array
import fcntl
import os
import time

from atlasbridge.core.detection.events import ProbeAnswer, ProbeState
from atlasbridge.core.values import replace
from atlasbridge.os.tty import procfs
from atlasbridge.os.tty.attributes import echo_and_canon, foreground_group
from atlasbridge.os.tty.effort import Share, Stillness
from atlasbridge.os.tty.members import Member, examine, group_members
from atlasbridge.os.tty.procfs import Process
from atlasbridge.os.tty.strangers import Strangers
from atlasbridge.os.tty.syscalls import Waits
from atlasbridge.os.tty.waits import Line
from atlasbridge.os.tty.work import is_at_work, pending_request

_TIOCGPTN = 0x80045430
_BUSY_SHARE = 0.5  # of one processor, between two looks
_STILL_S = 1.0  # whoever reads the terminal in turns of sleep has run at least once in this time
_MAX_DEPTH = 3  # terminals inside terminals
_MAX_CHILDREN = 64


class LinuxProbe:
    def __init__(self, master_fd: int, child_pid: int) -> None:
        self._master = master_fd
        self._child = child_pid
        self._line = Line.of(_terminal_number(master_fd))
        self._strangers = Strangers(self._line)
        self._mode: tuple[bool | None, bool | None] = (None, None)  # echo, canonical
        self._share = Share()
        self._stillness = Stillness()

    def look(self, quiet_s: float, input_age_s: float | None) -> ProbeAnswer:
        """`quiet_s` is left to the detector, which weighs it; the kernel's answer does not depend on it."""
        self._mode = echo, canonical = echo_and_canon(self._master)
        group = foreground_group(self._master)
        answer = self._judge(self._line, group, self._child, input_age_s, canonical is True and echo is False, 0)
        if answer.echo is None:
            answer = replace(answer, echo=echo, canonical=canonical)
        return answer

    def _judge(
        self, line: Line, group: int, child: int, input_age_s: float | None, secret: bool, depth: int
    ) -> ProbeAnswer:
        members: list[Member] = []
        for process in group_members(group, child):
            member = examine(process, line)
            if member.reads_in_main:
                return _answer(ProbeState.READING, "blocks in read on the terminal", process)
            members.append(member)
        if not members:
            return ProbeAnswer(ProbeState.UNKNOWN, "no foreground process")
        share = self._share.of(group, [member.process.pid for member in members]) if depth == 0 else 0.0
        return self._judge_members(members, input_age_s, secret, share, depth)

    def _judge_strangers(self, group: int, input_age_s: float | None) -> ProbeAnswer | None:
        """Somebody of another session may serve the terminal while the foreground group only waits for it to end.  He
        has switched off the line editing or the echo for it."""
        if self._mode == (True, True):
            return None
        for process in self._strangers.look((group, self._mode), time.monotonic()):
            member = examine(process, self._line)
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
        served = self._judge_strangers(members[0].process.group, input_age_s) if depth == 0 else None
        if served is not None:
            return served
        answer = _judge_absent(members, secret)
        if answer.state is ProbeState.BUSY and (depth or self._mode != (True, True)):
            answer = replace(answer, certain=self._reads_surely_not(members, depth))
        return answer

    def _reads_surely_not(self, members: list[Member], depth: int) -> bool:
        """Whoever reads the terminal in turns of sleep runs now and then, and never much."""
        group, pids = members[0].process.group, [member.process.pid for member in members]
        computes = depth == 0 and self._share.of(group, pids) > _BUSY_SHARE
        return self._stillness.of(group, pids) >= _STILL_S or computes

    def _judge_loop(self, member: Member, input_age_s: float | None, share: float, depth: int) -> ProbeAnswer:
        """A program that watches the terminal by poll, or reads it in a helper thread."""
        process, runs = member.process, ""
        if any(wait.call is None for wait in member.waits):
            runs = "one of its threads runs"
        elif share > _BUSY_SHARE:
            runs = f"uses {share:.0%} of a processor"
        below = list(procfs.descendants(process.pid))[:_MAX_CHILDREN]
        why = pending_request([process, *below], input_age_s)
        inner = self._inside(member, input_age_s, depth) if below and not why else None
        if inner is not None:
            return _answer(ProbeState.BUSY, runs, process) if runs else inner
        worker = next((child for child in below if is_at_work(child, process, input_age_s)), None) if not why else None
        why = f"its child {worker.command} ({worker.pid}) is at work" if worker else why
        if why or runs:
            return replace(_answer(ProbeState.BUSY, why or runs, process), runs=not why)
        if member.only_the_terminal:
            return _answer(ProbeState.READING, "waits for nothing but the terminal", process)
        others = sorted({other.split(":")[0] for wait in member.waits for other in wait.others})
        why = f"watches the terminal and {', '.join(others) or 'the time'}"
        answer = replace(_answer(ProbeState.POLLING, why, process), others=bool(others), serves=member.serves_others)
        return replace(answer, timer=bool(member.timer), period_s=member.timer)

    def _inside(self, member: Member, input_age_s: float | None, depth: int) -> ProbeAnswer | None:
        """What the terminal says that this program runs itself (script, expect, an agent's shell), if it has one."""
        if depth >= _MAX_DEPTH:
            return None
        answers: list[ProbeAnswer] = []
        terminals = _terminals_of(member.process.pid)
        below = list(procfs.descendants(member.process.pid)) if terminals else []
        for index in terminals:
            line = Line.of(index)
            owner = next((one for one in below if one.terminal == line.device), None)
            if owner is not None and owner.foreground > 0:
                answer = self._judge(line, owner.foreground, owner.pid, input_age_s, False, depth + 1)
                answers.append(_relayed(answer, member, index))
        return _one_of(answers)


_STRENGTH = {ProbeState.READING: 0, ProbeState.POLLING: 1, ProbeState.UNKNOWN: 2, ProbeState.BUSY: 3}


def _answer(state: ProbeState, why: str, process: Process) -> ProbeAnswer:
    return ProbeAnswer(state, why, pid=process.pid, command=process.command)


def _terminal_number(master_fd: int) -> int:
    number = array.array("I", [0])
    fcntl.ioctl(master_fd, _TIOCGPTN, number)
    return number[0]


def _judge_absent(members: list[Member], secret: bool) -> ProbeAnswer:
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


def _terminals_of(pid: int) -> list[int]:
    """The numbers of the terminals that a program runs itself."""
    masters = [fd for fd, link in procfs.descriptors(pid).items() if link.endswith("ptmx")]
    return sorted({index for fd in masters if (index := procfs.terminal_index(pid, fd)) is not None})


def _relayed(answer: ProbeAnswer, member: Member, index: int) -> ProbeAnswer:
    """What a terminal inside this one says, with that terminal's own flags."""
    why = f"inside a terminal of {member.process.command}: {answer.why}"
    echo, canonical, rows = _inner_state(index)
    answer = replace(answer, why=why, rows=rows)
    if answer.state is ProbeState.BUSY:  # only the program around it can ask then: the outer flags count
        return replace(answer, certain=answer.certain or canonical is True)
    if answer.state is ProbeState.READING and member.timer and not member.relays:
        answer = replace(answer, state=ProbeState.POLLING, timer=True)  # it may have more to do than to relay
    return answer if answer.echo is not None else replace(answer, echo=echo, canonical=canonical)


def _one_of(answers: list[ProbeAnswer]) -> ProbeAnswer | None:
    """Of several terminals in one program only one has the keyboard, and nobody can tell which."""
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
