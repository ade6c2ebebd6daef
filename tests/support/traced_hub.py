"""The hub under strace: counts its system calls on files, locks and sockets, and dies at a chosen one (Linux).

This is the same attack as `deadly`, one floor deeper: also inside SQLite's own writes, and for every system call.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from functools import partial
from pathlib import Path

from tests.support.arena import Arena, exists
from tests.support.waiting import DEADLINE_S, wait_for

from atlasbridge.core.daemon.request import ALREADY_RUNNING

CALLS = (
    "write", "pwrite64", "fsync", "fdatasync", "ftruncate", "unlink", "rename", "flock", "fcntl", "fchmod", "openat",
    "sendto", "recvfrom", "accept4", "bind", "listen", "close", "pread64",
)  # fmt: skip
_CALL = re.compile(r"^(?:\d+ +)?(\w+)\(")


def available() -> bool:
    return shutil.which("strace") is not None


class TracedHub:
    """A hub that was forked for it, with everything imported, and strace beside it from its first step on."""

    def __init__(self, pid: int, tracer: subprocess.Popen[bytes]) -> None:
        self.pid = pid
        self._tracer = tracer

    @property
    def died(self) -> bool:
        return not exists(self.pid)

    def end(self) -> None:
        """Once the hub is dead; strace has written down all it saw."""
        self._tracer.wait(DEADLINE_S)


def start_traced(place: Arena, told: Path | None = None, kill: tuple[str, int] | None = None) -> TracedHub:
    """`kill`: at the N-th call of this name, counted from its first step.  Returns when it listens, or is dead."""
    while True:
        pid = place.order(kind="hub", witness=str(place.witness), ready=place.ready)  # it waits for us to read there
        traced = TracedHub(pid, _attach(pid, told, kill))
        with open(place.ready, "rb") as pipe:
            verdict = pipe.readline()  # nothing: it died before it listened
        if ALREADY_RUNNING.encode() not in verdict:
            return traced
        traced.end()  # a session was faster and has started a hub of its own
        place.kill_hub()


def _attach(pid: int, told: Path | None, kill: tuple[str, int] | None) -> subprocess.Popen[bytes]:
    words = ["strace", "-f", "-qq", "-p", str(pid), "-o", str(told or os.devnull), "-e", f"trace={','.join(CALLS)}"]
    if kill is not None:
        words += ["-e", f"inject={kill[0]}:signal=KILL:when={kill[1]}"]
    tracer = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(partial(_is_traced, pid, tracer), "strace to attach")
    return tracer


def _is_traced(pid: int, tracer: subprocess.Popen[bytes]) -> bool:
    assert tracer.poll() is None, f"strace could not attach: status {tracer.poll()}"
    return "TracerPid:\t0\n" not in Path(f"/proc/{pid}/status").read_text()


def count_calls(told: Path) -> Counter[str]:
    found = Counter(
        match.group(1) for line in told.read_text(errors="replace").splitlines() if (match := _CALL.match(line))
    )
    return Counter({name: count for name, count in found.items() if name in CALLS})
