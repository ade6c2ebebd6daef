"""What a zygote does so that its hosts have little memory of their own.  Done in other processes: it is for good."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from tests.support.waiting import wait_for
from tests.support.zygotes import children_of

from atlasbridge.core.clock import SystemClock
from atlasbridge.core.host.zygote import trial
from atlasbridge.core.host.zygote.nursery import claim
from atlasbridge.os.tty.procfs import read_process

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="zygotes are for Linux alone")


@pytest.fixture
def folder() -> Iterator[Path]:
    """With a path that is short enough for sockets."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def told(script: str, **environ: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, env={**os.environ, **environ}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


MOVE = """
from atlasbridge.core.host.zygote.packing import put_together

class Base:
    def name(self): return "base"

class Child(Base):
    def name(self, *, mark="!"): return super().name() + mark

def outer(limit, step=2):
    def inner(): return [number * factor for number in range(limit)]
    factor = step
    return inner() + list(one + factor for one in inner()), (lambda: factor)()

def count():
    for number in range(3):
        yield number

before = outer(4), outer(3, step=5), Child().name(), list(count())
inner = [part for part in outer.__code__.co_consts if hasattr(part, "co_code")]
chosen = {id(code) for code in (inner[0], Child.name.__code__, count.__code__)}
places = [id(function.__code__) for function in (outer, Child.name, count, Base.name)]
put_together(chosen)
print([id(function.__code__) != place for function, place in zip((outer, Child.name, count, Base.name), places)])
print(before == (outer(4), outer(3, step=5), Child().name(), list(count())))
put_together(set())
print(before == (outer(4), outer(3, step=5), Child().name(), list(count())))
"""


def test_code_that_was_moved_does_what_it_did_and_takes_along_what_makes_functions_of_it() -> None:
    assert told(MOVE) == ["[True, True, True, False]", "True", "True"]


FILL = """
import random
from atlasbridge.core.host.zygote.gaps import fill_gaps

def stands_together(size):
    made = [bytes(size) for _ in range(400)]
    return len({id(one) // 4096 for one in made}) <= 400 * (size + 64) // 4096 + 20

random.seed(1)
old = [bytes(size) for size in (700, 1500, 100, 300) for _ in range(5000)]
for _ in range(9000):
    old[random.randrange(len(old))] = None
before = [stands_together(size) for size in (700, 1500, 100)]
fill_gaps()
print(before, [stands_together(size) for size in (700, 1500, 100)])
"""


def test_after_the_gaps_are_filled_what_is_new_stands_together() -> None:
    assert told(FILL) == ["[False, False, False] [True, True, True]"]


GROW = """
import resource
from pathlib import Path
from atlasbridge.core.host.zygote.gaps import fill_gaps
def taken():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, int(Path("/proc/self/statm").read_text().split()[0]) * 4
before = taken()
fill_gaps()
print([now - then < 20_000 for now, then in zip(taken(), before)])
"""


BELOW = {"MALLOC_MMAP_THRESHOLD_": "4096"}  # what is large stands below what is small


@pytest.mark.parametrize("environ", [{}, {"PYTHONMALLOC": "malloc"}, BELOW])
def test_filling_takes_little_memory_also_where_there_are_no_pools(environ: dict[str, str]) -> None:
    command = ["bash", "-c", 'ulimit -s unlimited; exec "$@"', "bash", sys.executable, "-c", GROW]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **environ})
    assert done.stdout == "[True, True]\n", done.stderr


TRY = """
from atlasbridge.cli import zygote
from atlasbridge.core.host.zygote import takeover, trial

def try_out(*said):
    place = id(takeover.become.__code__)
    written = real(*said)
    print(place in written, id(trial.try_out.__code__) in written, len(written) > 100)
    return written

def shared():
    raise SystemExit

real, zygote.try_out, zygote.share_everything = zygote.try_out, try_out, shared
zygote.main()
"""


def test_a_trial_tells_which_code_a_host_writes_to_and_leaves_nothing_behind(folder: Path) -> None:
    for name in ("home", "tmp"):
        (folder / name).mkdir()
    found = told(TRY, ATLASBRIDGE_HOME=str(folder / "home"), TMPDIR=str(folder / "tmp"))
    assert found == ["True False True"]
    assert list((folder / "tmp").iterdir()) == []


def _end(*_: object) -> NoReturn:
    os._exit(0)


def _hang(*_: object) -> NoReturn:
    while True:
        time.sleep(60)


@pytest.mark.parametrize("live", [_end, _hang])
def test_a_trial_that_comes_to_nothing_is_over_soon_and_the_zygote_goes_on(
    live: trial.Live, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(trial, "_LONGEST_S", 0.3)
    monkeypatch.setattr(trial, "watch_code", lambda: set)
    before, handler = children_of(os.getpid()), signal.getsignal(signal.SIGUSR1)
    assert trial.try_out(live, b"", SystemClock()) == set()
    assert children_of(os.getpid()) == before and signal.getsignal(signal.SIGUSR1) is handler
    assert list(folder.iterdir()) == []


ALONE = """
import os, time
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.host.zygote import trial

def live(*_):
    print(os.getpid(), flush=True)
    time.sleep(1000)

trial.try_out(live, b"", SystemClock())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_trial_ends_with_its_zygote(folder: Path, number: int) -> None:
    environ = {**os.environ, "TMPDIR": str(folder)}
    with subprocess.Popen([sys.executable, "-c", ALONE], stdout=subprocess.PIPE, env=environ) as zygote:
        assert zygote.stdout is not None
        host = int(zygote.stdout.readline())
        zygote.send_signal(number)
        zygote.wait(30)
        wait_for(lambda: _is_gone(host), "the end of the host for nobody")


def _is_gone(pid: int) -> bool:
    process = read_process(pid)
    return process is None or process.state in "ZX"


HANG = """
import time
from atlasbridge.cli import zygote
zygote._warm_up, zygote._LONGEST_S = (lambda home: time.sleep(1000)), 1
zygote.main()
"""


def test_a_zygote_that_hangs_before_it_is_ready_gives_its_address_back(folder: Path) -> None:
    done = subprocess.run([sys.executable, "-c", HANG], env={**os.environ, "ATLASBRIDGE_HOME": str(folder)}, timeout=60)
    assert done.returncode == -signal.SIGALRM
    (lock,) = (folder / "run").glob("*.lock")
    assert claim(str(lock).removesuffix(".lock")) is not None
