"""Where the time goes: the processor time of a relay by whose it is, and what the imports of a start consist of."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

from tests.benchmarks.measure import MARK, cpu_s, scratch
from tests.benchmarks.peers import Peer
from tests.benchmarks.product import wait

_TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
_STILL_S = 0.4
_KEYS, _STARTED_S, _WATCHED_S = 600, 1.0, 0.9  # by then a relay has started, and the keys last longer
_IMPORTS = textwrap.dedent("""
    import json, sys, time
    begun = time.perf_counter()
    import atlasbridge.cli.run, atlasbridge.bootstrap, atlasbridge.core.client.client, atlasbridge.core.host.launch
    client = time.perf_counter()
    import atlasbridge.core.host.host
    host = time.perf_counter()
    import re
    import atlasbridge.core.values as values
    spent = {"values": 0.0, "expressions": 0.0}
    def timed(function, name):
        def call(*given, **named):
            since = time.perf_counter()
            try:
                return function(*given, **named)
            finally:
                spent[name] += time.perf_counter() - since
        return call
    values._with_slots = timed(values._with_slots, "values")
    re._compile = timed(re._compile, "expressions")
    late = time.perf_counter()
    import atlasbridge.core.host.hub_link, atlasbridge.core.host.typist,
    atlasbridge.core.detection.detector
    spent = {"client": client - begun, "host": host - client, "judging": time.perf_counter() - late, **spent}
    print(json.dumps({name: seconds * 1e3 for name, seconds in spent.items()}))
""")


def relay_ms(
    tool: str, peer: Peer, file: Path, env: dict[str, str], relay: Callable[[int], int]
) -> tuple[float, float]:
    """Milliseconds of processor time that the relaying process spends on `file`, in the interpreter or its own code,
    and in the kernel.  `relay` finds that process, given the one that was started."""
    with scratch() as folder:
        argv = peer.argv(["sh", "-c", f"cat {file}; sleep 600"], folder)
        with subprocess.Popen([tool, "drain", MARK, *argv], env=env, stdout=subprocess.DEVNULL) as run:
            pid = wait(lambda: relay(run.pid))
            try:
                return _times_at_rest(pid)
            finally:
                os.kill(pid, signal.SIGKILL)  # a session would outlive its terminal
                run.kill()
                wait(lambda: _is_gone(pid))


def key_us(tool: str, peer: Peer, env: dict[str, str], relay: Callable[[int], int]) -> float:
    """Microseconds of processor time that the relaying process spends on a key typed after three milliseconds of
    silence, and on its echo."""
    with scratch() as folder:
        argv = [tool, "echo", str(_KEYS), "3000", *peer.argv([tool, "mirror"], folder)]
        with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True) as run:
            pid = wait(lambda: relay(run.pid))
            time.sleep(_STARTED_S)
            since, spent = time.monotonic(), cpu_s(pid)
            time.sleep(_WATCHED_S)
            spent, seconds = cpu_s(pid) - spent, time.monotonic() - since
            assert run.stdout is not None
            trips = json.loads(run.stdout.read())
        wait(lambda: _is_gone(pid))
    a_key_s = 0.003 + sum(trips) / len(trips) / 1e6
    return spent / (seconds / a_key_s) * 1e6


def warm_us() -> float:
    """The least that a relay does for a key and its echo, twice poll, read and write, in a loop that never sleeps."""
    source, sink = os.pipe()
    ready = select.poll()
    ready.register(source, select.POLLIN)
    times = []
    for _ in range(5):
        since = time.perf_counter()
        for _ in range(2000):
            os.write(sink, b"k")
            ready.poll()
            os.read(source, 4096)
        times.append((time.perf_counter() - since) / 1000)
    os.close(source)
    os.close(sink)
    return min(times) * 1e6


def child_of(pid: int) -> int:
    return int((Path(f"/proc/{pid}/task/{pid}/children").read_text().split() or ["0"])[0])


def _is_gone(pid: int) -> bool:
    """With all its threads."""
    try:
        ended = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        return ended and len(os.listdir(f"/proc/{pid}/task")) == 1
    except OSError:
        return True


def _times_at_rest(pid: int) -> tuple[float, float]:
    """When they have grown, and grow no more."""
    times, since = (0, 0), time.monotonic()
    while time.monotonic() - since < _STILL_S or not any(times):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        now = int(fields[11]), int(fields[12])
        if now != times:
            times, since = now, time.monotonic()
        time.sleep(0.02)
    return times[0] * _TICK_MS, times[1] * _TICK_MS


def imports_ms() -> dict[str, float]:
    """What is imported by the client, by the host before the tool starts, and for judging once it runs; of the last:
    how much goes into making value classes and compiling regular expressions."""
    run = subprocess.run([sys.executable, "-c", _IMPORTS], capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(run.stdout)
    return found
