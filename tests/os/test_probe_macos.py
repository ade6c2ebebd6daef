"""The macOS probe's parsing and judgement, on structures as libproc fills them and a real terminal's flags."""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from atlasbridge.core.detection.events import ProbeState
from atlasbridge.core.process_table import MacProcess, parse_process
from atlasbridge.os.tty.macos import MacProbe, MacTask, parse_task_info

_LAUNCH = "import fcntl,termios,os,sys; fcntl.ioctl(0,termios.TIOCSCTTY,0); os.execvp(sys.argv[1],sys.argv[1:])"


def bsd_info(pid: int, status: int = 3, name: bytes = b"") -> bytes:
    head = struct.pack("=12I", 0, status, 0, pid, 1, *[0] * 7)
    return head + struct.pack("=16s32s", b"short", name) + struct.pack("=5Ii2Q", 3, pid, 0, 0, pid, 0, 0, 0)


def task_info(running: int, ticks: int = 0) -> bytes:
    return struct.pack("=6Q12i", 0, 0, ticks, ticks, 0, 0, *[0] * 10, running, 31)


U32, U64, I32 = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int32


def _all(kind: Any, names: str) -> list[tuple[str, Any]]:
    return [(name, kind) for name in names.split()]


class ProcBsdInfo(ctypes.Structure):
    """As <sys/proc_info.h> of macOS declares it."""

    _fields_ = (
        *_all(U32, "flags status xstatus pid ppid uid gid ruid rgid svuid svgid rfu_1"),
        *(("comm", ctypes.c_char * 16), ("name", ctypes.c_char * 32)),
        *_all(U32, "nfiles pgid pjobc e_tdev e_tpgid"),
        *(("nice", I32), ("start_tvsec", U64), ("start_tvusec", U64)),
    )


class ProcTaskInfo(ctypes.Structure):
    """The same header's."""

    _fields_ = (
        *_all(U64, "virtual resident total_user total_system threads_user threads_system"),
        *_all(I32, "policy faults pageins cow_faults sent received mach unix csw threads numrunning priority"),
    )


def test_the_sizes_and_places_are_those_of_the_systems_header() -> None:
    assert (ctypes.sizeof(ProcBsdInfo), ctypes.sizeof(ProcTaskInfo)) == (136, 96)
    assert parse_process(bytes(ProcBsdInfo())[:-1]) is None and parse_task_info(bytes(ProcTaskInfo())[:-1]) is None
    process = ProcBsdInfo(status=2, pid=41, ppid=7, pgid=40, comm=b"short", name=b"a longer name")
    assert parse_process(bytes(process)) == MacProcess(41, 7, 40, 2, "a longer name", "0")
    process = ProcBsdInfo(pid=41, comm=b"short", uid=501, svgid=20, nfiles=9, e_tdev=5, start_tvsec=1)
    assert parse_process(bytes(process)) == MacProcess(41, 0, 0, 0, "short", "5", 1_000_000)
    task = ProcTaskInfo(total_user=3, total_system=4, numrunning=2, threads=9, csw=8, priority=31, threads_user=5)
    assert parse_task_info(bytes(task), 1e9) == MacTask(2, 7.0)


@dataclass
class FakeLibproc:
    """One process in the foreground group."""

    status: int = 3
    running: int = 0
    ticks: int = 0
    tick_ns: float = 1.0
    gone: bool = False
    asked: list[int] = field(default_factory=list)

    def list_pids(self, kind: int, value: int) -> list[int]:
        self.asked.append(value)
        return [] if self.gone else [value]

    def info(self, pid: int, flavour: int, size: int) -> bytes:
        data = bsd_info(pid, self.status, b"tool") if flavour == 3 else task_info(self.running, self.ticks)
        assert len(data) == size
        return data


@pytest.fixture
def terminal() -> Iterator[tuple[int, int, int]]:
    """A real terminal with a real foreground process: master, slave, process id."""
    master, slave = os.openpty()
    command = [sys.executable, "-S", "-c", _LAUNCH, "sh", "-c", "echo up; exec sleep 600"]
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    shown = b""
    while b"up" not in shown:
        shown += os.read(master, 100)
    yield master, slave, process.pid
    process.kill()
    process.wait()
    os.close(master)
    os.close(slave)


def test_structures_are_read() -> None:
    assert parse_process(bsd_info(77, 2, b"a long name")) == MacProcess(77, 1, 77, 2, "a long name", "0")
    assert parse_process(bsd_info(77)) == MacProcess(77, 1, 77, 3, "short", "0")
    assert parse_task_info(task_info(2, 500_000_000), 2.0) == MacTask(2, 2.0)


@pytest.mark.parametrize("data", [b"", b"\0" * 50])
def test_what_the_system_refuses_is_nothing(data: bytes) -> None:
    assert parse_process(data) is None
    assert parse_task_info(data) is None


def test_a_sleeping_group_is_unknown(terminal: tuple[int, int, int]) -> None:
    source = FakeLibproc()
    answer = MacProbe(terminal[0], terminal[2], source).look(1.0, None)
    assert (answer.state, answer.command, answer.echo, answer.canonical) == (ProbeState.UNKNOWN, "tool", True, True)
    assert source.asked == [terminal[2]]


def test_a_running_thread_is_busy(terminal: tuple[int, int, int]) -> None:
    assert MacProbe(terminal[0], terminal[2], FakeLibproc(running=1)).look(1.0, None).state is ProbeState.BUSY


def test_a_stopped_group_is_busy(terminal: tuple[int, int, int]) -> None:
    assert MacProbe(terminal[0], terminal[2], FakeLibproc(status=4)).look(1.0, None).state is ProbeState.BUSY


@pytest.mark.parametrize("source", [FakeLibproc(gone=True), FakeLibproc(status=5)])
def test_no_process_is_unknown(terminal: tuple[int, int, int], source: FakeLibproc) -> None:
    assert "no foreground" in MacProbe(terminal[0], terminal[2], source).look(1.0, None).why


def test_canonical_mode_without_echo_is_a_secret(terminal: tuple[int, int, int]) -> None:
    flags = termios.tcgetattr(terminal[1])
    flags[3] &= ~termios.ECHO
    termios.tcsetattr(terminal[1], termios.TCSANOW, flags)
    answer = MacProbe(terminal[0], terminal[2], FakeLibproc()).look(1.0, None)
    assert (answer.state, answer.echo) == (ProbeState.READING, False)


def test_processor_use_between_looks_is_busy(terminal: tuple[int, int, int]) -> None:
    source = FakeLibproc()
    probe = MacProbe(terminal[0], terminal[2], source)
    probe.look(1.0, None)
    probe._used = (probe._used[0], 0.0, probe._used[2] - 1.0)  # the first look was a second ago
    source.ticks = 10**13
    assert probe.look(1.0, None).why == "computes"
