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
from tests.support.zygotes import children_of

from atlasbridge.core.clock import SystemClock
from atlasbridge.core.host.zygote import trial


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
import random
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

def spread(size):
    made = [bytes(size) for _ in range(40)]
    return max(map(id, made)) - min(map(id, made))

random.seed(1)
old = [bytes(size) for size in (700, 1500, 100, 300) for _ in range(5000)]
for _ in range(9000):
    old[random.randrange(len(old))] = None
gaps = [spread(size) > 100 * size for size in (700, 1500, 100)]
fill_gaps()
print(gaps, [spread(size) < 60 * (size + 64) for size in (700, 1500, 100)])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of another C library")
def test_after_the_gaps_are_filled_what_is_new_stands_together() -> None:
    assert told(FILL) == ["[True, True, True] [True, True, True]"]


GROW = """
import resource
from atlasbridge.core.host.zygote.gaps import fill_gaps
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
fill_gaps()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000)
"""


@pytest.mark.parametrize("environ", [{}, {"PYTHONMALLOC": "malloc"}])
def test_filling_takes_little_memory_also_where_there_are_no_pools(environ: dict[str, str]) -> None:
    assert told(GROW, **environ) == ["True"]


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
