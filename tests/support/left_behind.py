"""Processes that a file of tests has left running, each with the test that started it.

They are known by what they inherited: a mark of this test run, and pytest's own word about the test that was running.
Where the system does not show another process's environment none is found.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import time
import weakref
from pathlib import Path
from typing import Protocol

from tests.support.waiting import LOOK_EVERY_S
from tests.support.warm import living

MARK = "TEST_RUN"
GRACE_S = 30.0  # for those that are about to end by themselves
SHARED = ("postgres", "postgres:")  # a database server serves all files of a run


class HasProcess(Protocol):
    def end_process(self) -> None: ...


FILES_PROCESSES: weakref.WeakSet[HasProcess] = weakref.WeakSet()  # stay until their file of tests ends


def mark() -> str:
    return f"{os.getpid()}-{time.monotonic_ns()}"


def end_and_name() -> list[str]:
    for one in list(FILES_PROCESSES):  # pytest holds what the last test was given
        one.end_process()
    gc.collect()  # some end with the object that stands for them, and that may be part of a circle
    give_up_at = time.monotonic() + GRACE_S
    while (left := _left()) and time.monotonic() < give_up_at:
        time.sleep(LOOK_EVERY_S)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return [f"{pid} {words} of {test}" for pid, (words, test) in left.items()]


def _left() -> dict[int, tuple[str, str]]:
    mine = f"{MARK}={os.environ[MARK]}".encode()
    found = dict.fromkeys(living(), ("forked by warm.py", "a test"))
    for path in Path("/proc").glob("[0-9]*"):
        try:
            environ = (path / "environ").read_bytes().split(b"\0")
            words = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue  # ended just now, or somebody else's
        if mine in environ and int(path.name) != os.getpid() and words and Path(words.split()[0]).name not in SHARED:
            names = [one.partition(b"=")[2].decode() for one in environ if one.startswith(b"PYTEST_CURRENT_TEST=")]
            found[int(path.name)] = (words[:120], names[0] if names else "a test")
    return found
