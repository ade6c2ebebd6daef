"""The hub under strace: counts its system calls on files, locks and sockets, and dies at a chosen one (Linux).

This is the same attack as `deadly`, one floor deeper: also inside SQLite's own writes, and for every system call.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path

from tests.support.arena import Arena
from tests.support.waiting import wait_for

CALLS = (
    "write", "pwrite64", "fsync", "fdatasync", "ftruncate", "unlink", "rename", "flock", "fcntl", "fchmod", "openat",
    "sendto", "recvfrom", "accept4", "bind", "listen", "close", "pread64",
)  # fmt: skip
_CALL = re.compile(r"^(?:\d+ +)?(\w+)\(")


def available() -> bool:
    return shutil.which("strace") is not None


def start_traced(
    place: Arena, told: Path | None = None, kill: tuple[str, int] | None = None
) -> subprocess.Popen[bytes]:
    """A hub by the product's own entry; `kill`: at the N-th call of this name, counted from its start."""
    words = ["strace", "-f", "-qq", "-o", str(told or os.devnull), "-e", f"trace={','.join(CALLS)}"]
    if kill is not None:
        words += ["-e", f"inject={kill[0]}:signal=KILL:when={kill[1]}"]
    while True:
        process = subprocess.Popen(
            [*words, sys.executable, "-m", "atlasbridge.core.daemon"],
            env=place.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
        )
        wait_for(partial(_listens_or_ended, place, process), "the traced hub to listen")
        if process.poll() != 0:  # 0: a session was faster and has started a hub of its own
            return process
        place.kill_hub()


def _listens_or_ended(place: Arena, process: subprocess.Popen[bytes]) -> bool:
    return bool(place.listens()) or process.poll() is not None


def count_calls(told: Path) -> Counter[str]:
    found = Counter(
        match.group(1) for line in told.read_text(errors="replace").splitlines() if (match := _CALL.match(line))
    )
    return Counter({name: count for name, count in found.items() if name in CALLS})


def first_of_home(told: Path, home: Path) -> Counter[str]:
    """How many calls of each name come before the home's own files are touched: the interpreter's start."""
    before: Counter[str] = Counter()
    for line in told.read_text(errors="replace").splitlines():
        if str(home) in line and "hub.lock" in line:
            return before
        if match := _CALL.match(line):
            before[match.group(1)] += 1
    return before
