"""How long a prompt takes: from the tool's rest to `prompt.raised`, and from a reply to the tool's reading it.

One small tool for each signal; every tool logs when it has asked and when it was answered, on the machine's clock.
Between two questions it says how far it is, as tools do.
"""

from __future__ import annotations

import statistics
import sys
import textwrap
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.benchmarks.measure import pss_kb
from tests.benchmarks.product import Product, wait
from tests.support.sessions import host_pids

_READER = textwrap.dedent("""
    import sys, time
    with open(sys.argv[1], "a", buffering=1) as log:
        for step in range(10**6):
            sys.stdout.write(f"step {step} is done\\nContinue? (y/n) "); sys.stdout.flush()
            log.write(f"asked {time.monotonic()}\\n")
            line = sys.stdin.readline()
            log.write(f"got {time.monotonic()}\\n")
            if not line or line.startswith("q"): break
""")
_LOOPER = textwrap.dedent("""
    import os, selectors, socket, sys, time, tty
    tty.setraw(0)
    other, _keep = socket.socketpair(); outside = socket.create_server(("127.0.0.1", 0))
    loop = selectors.DefaultSelector()
    for source in (0, other, outside): loop.register(source, selectors.EVENT_READ)
    with open(sys.argv[1], "a", buffering=1) as log:
        for step in range(10**6):
            os.write(1, b"STATUS\\r\\nstep %d is done\\r\\nContinue? (y/n) " % step)
            log.write(f"asked {time.monotonic()}\\n")
            loop.select(60)
            key = os.read(0, 64)
            log.write(f"got {time.monotonic()}\\n")
            if key in (b"", b"q"): break
""")
SIGNALS = {
    "blocked in read": _READER,
    "event loop": _LOOPER.replace("STATUS", ""),
    "event loop that says so (program status)": _LOOPER.replace(
        "STATUS",
        "\\x1b]7501;state=working:app=bench\\x1b\\\\\\x1b]7501;state=blocked:app=bench:kind=permission\\x1b\\\\",
    ),
}


def percentiles(samples: list[float]) -> tuple[float, float]:
    ordered = sorted(samples)
    return statistics.median(ordered), ordered[int(len(ordered) * 0.99)]


def of_prompts(source: str, rounds: int) -> tuple[list[float], list[float]]:
    """Milliseconds: rest to raised, and reply to the tool."""
    raised, typed = [], []
    with Product() as product:
        log, script = product.folder / "log", product.folder / "tool.py"
        script.write_text(source)
        log.touch()
        with product.client() as events, product.client() as hub:
            stream = events.stream("events", follow=True)
            product.detached(sys.executable, str(script), str(log))
            for _ in range(rounds):
                prompt = next(event for event in stream if event.get("event") == "prompt.raised")
                arrived = time.monotonic()
                raised.append((arrived - _last(log, "asked")) * 1e3)
                sent = time.monotonic()
                hub.ask("reply", prompt_id=prompt["prompt_id"], value="y")
                seen = wait(partial(_after, log, "got", sent))
                typed.append((seen - sent) * 1e3)
    return raised, typed


def of_first_prompts(sessions: int) -> list[float]:
    """Milliseconds from rest to raised for the first question of a session, asked as soon as a tool can."""
    raised = []
    with Product() as product:
        log = product.folder / "log"
        with product.client() as events:
            stream = events.stream("events", follow=True)
            for _ in range(sessions):
                product.detached("bash", "-c", f'printf $EPOCHREALTIME > {log}; read -p "Continue? (y/n) " x')
                next(event for event in stream if event.get("event") == "prompt.raised")
                raised.append((time.time() - float(log.read_text())) * 1e3)
    return raised


@dataclass(frozen=True, slots=True)
class Flood:
    raised_ms: float
    before_mb: float
    after_mb: float


def after_a_flood(payload: Path) -> Flood:
    """A tool that asks, floods, and asks again."""
    with Product() as product:
        log, script = product.folder / "log", product.folder / "tool.py"
        flood = f"import subprocess, sys; sys.stdin.readline(); subprocess.run(['cat', {str(payload)!r}])\n"
        script.write_text("print('Ready? (y/n) ', end='', flush=True)\n" + flood + _READER)
        log.touch()
        with product.client() as events, product.client() as hub:
            stream = (event for event in events.stream("events", follow=True) if event.get("event") == "prompt.raised")
            product.detached(sys.executable, str(script), str(log))
            first = next(stream)
            host = host_pids(product.home)[0]
            before = pss_kb(host) / 1024
            hub.ask("reply", prompt_id=first["prompt_id"], value="y")
            next(stream)
            return Flood((time.monotonic() - _last(log, "asked")) * 1e3, before, pss_kb(host) / 1024)


def _last(log: Path, word: str) -> float:
    found = [float(line.split()[1]) for line in log.read_text().splitlines() if line.startswith(word)]
    return found[-1] if found else 0.0


def _after(log: Path, word: str, earliest: float) -> float:
    """When `word` was written last, once that was after `earliest`; 0: not yet."""
    at = _last(log, word)
    return at if at > earliest else 0.0
