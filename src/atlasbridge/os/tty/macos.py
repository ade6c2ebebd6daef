"""The waiting probe of macOS, from libproc and the terminal's flags.

macOS does not tell an ordinary user in which system call a thread sleeps. So this probe can answer *no* (a thread runs,
the group is stopped, it computes) and recognise a secret; everything else is `unknown`.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import struct
import time
from typing import Protocol

from atlasbridge.core.detection.events import ProbeAnswer, ProbeState
from atlasbridge.core.process_table import ask_macos, look_on_macos
from atlasbridge.core.values import frozen, replace
from atlasbridge.os.tty.posix import TURNS, echo_and_canon, foreground_group

_PROC_PGRP_ONLY = 2
_TASK_INFO, _TASK_SIZE = 4, 96
_STOPPED, _ZOMBIE = 4, 5
_BUSY_SHARE = 0.5
_SHORTEST_SPAN_S = 0.05


@frozen
class MacTask:
    running_threads: int
    processor_s: float


def parse_task_info(data: bytes, tick_ns: float = 1.0) -> MacTask | None:
    """A struct proc_taskinfo; its times count ticks of `tick_ns` nanoseconds."""
    if len(data) < _TASK_SIZE:
        return None
    user, system = struct.unpack_from("=QQ", data, 16)
    (running,) = struct.unpack_from("=i", data, 88)
    return MacTask(running, (user + system) * tick_ns / 1e9)


class ProcessSource(Protocol):
    """The part of libproc that the probe uses."""

    tick_ns: float

    def list_pids(self, kind: int, value: int) -> list[int]: ...
    def info(self, pid: int, flavour: int, size: int) -> bytes: ...


class Libproc:
    """libproc through ctypes."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(ctypes.util.find_library("proc") or "libproc.dylib")
        timebase = (ctypes.c_uint32 * 2)()
        ctypes.CDLL(None).mach_timebase_info(timebase)
        self.tick_ns = timebase[0] / timebase[1] if timebase[1] else 1.0

    def list_pids(self, kind: int, value: int) -> list[int]:
        buffer = (ctypes.c_int * 1024)()
        size = self._library.proc_listpids(kind, value, buffer, ctypes.sizeof(buffer))
        return [pid for pid in buffer[: max(0, size) // 4] if pid > 0]

    def info(self, pid: int, flavour: int, size: int) -> bytes:
        return ask_macos(pid, flavour, size)


class MacProbe:
    def __init__(self, master_fd: int, child_pid: int, source: ProcessSource | None = None) -> None:
        self._master = master_fd
        self._child = child_pid
        self._source = source or Libproc()
        self._used = (0, 0.0, 0.0)  # foreground group, its processor seconds, when

    def look(self, quiet_s: float, input_age_s: float | None) -> ProbeAnswer:
        """`quiet_s` is left to the detector; `input_age_s` is unused, because start times of children
        are unknown here."""
        for _ in range(TURNS):
            echo, canonical = echo_and_canon(self._master)
            answer = self._judge(foreground_group(self._master), secret=canonical is True and echo is False)
            if echo_and_canon(self._master) == (echo, canonical):
                break  # otherwise the program changed them during this look, and a secret could pass for a line
        return replace(answer, echo=echo, canonical=canonical)

    def _judge(self, group: int, secret: bool) -> ProbeAnswer:
        found = [look_on_macos(pid, self._source.info) for pid in self._source.list_pids(_PROC_PGRP_ONLY, group)]
        members = [process for process in found if process is not None and process.status != _ZOMBIE]
        if group <= 0 or not members:
            return ProbeAnswer(ProbeState.UNKNOWN, "no foreground process")
        last = members[-1]
        if all(process.status == _STOPPED for process in members):
            return ProbeAnswer(ProbeState.BUSY, "is stopped", pid=last.pid, command=last.command)
        tasks = [self._task(process.pid) for process in members]
        if any(task is not None and task.running_threads > 0 for task in tasks):
            return ProbeAnswer(ProbeState.BUSY, "one of its threads runs", pid=last.pid, command=last.command)
        if self._share(group, sum(task.processor_s for task in tasks if task is not None)) > _BUSY_SHARE:
            return ProbeAnswer(ProbeState.BUSY, "computes", pid=last.pid, command=last.command)
        if secret:
            why = "sleeps, and the terminal asks for a secret"
            return ProbeAnswer(ProbeState.READING, why, pid=last.pid, command=last.command)
        return ProbeAnswer(
            ProbeState.UNKNOWN, "sleeps, macOS does not tell for what", pid=last.pid, command=last.command
        )

    def _task(self, pid: int) -> MacTask | None:
        """None for a process of another user."""
        return parse_task_info(self._source.info(pid, _TASK_INFO, _TASK_SIZE), self._source.tick_ns)

    def _share(self, group: int, used: float) -> float:
        """Processors used by the group since the last look; 0 if there is nothing to compare."""
        now = time.monotonic()
        last_group, last_used, then = self._used
        if group == last_group and now - then < _SHORTEST_SPAN_S:
            return 0.0
        self._used = (group, used, now)
        return (used - last_used) / (now - then) if group == last_group else 0.0
