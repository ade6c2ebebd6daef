"""A home of its own with a running hub, and what is measured in it: memory, idling, latencies."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from atlasbridge.core.daemon.client import HubClient
from atlasbridge.core.home import Home
from tests.benchmarks.measure import cpu_ticks, pss_kb, wakeups
from tests.support.sessions import host_pids

ATLAS = str(Path(sys.executable).parent / "atlasbridge")
READER = textwrap.dedent("""
    import sys, time
    with open(sys.argv[1], "a", buffering=1) as log:
        while True:
            sys.stdout.write("Continue? (y/n) "); sys.stdout.flush()
            log.write(f"asked {time.monotonic()}\\n")
            line = sys.stdin.readline()
            log.write(f"got {time.monotonic()}\\n")
            if not line or line.startswith("q"): break
""")
LOOPER = textwrap.dedent("""
    import os, selectors, socket, sys, time, tty
    tty.setraw(0)
    other, _keep = socket.socketpair(); outside = socket.create_server(("127.0.0.1", 0))
    loop = selectors.DefaultSelector()
    for source in (0, other, outside): loop.register(source, selectors.EVENT_READ)
    with open(sys.argv[1], "a", buffering=1) as log:
        while True:
            os.write(1, b"\\r\\nContinue? (y/n) ")
            log.write(f"asked {time.monotonic()}\\n")
            loop.select(60)
            key = os.read(0, 64)
            log.write(f"got {time.monotonic()}\\n")
            if key in (b"", b"q"): break
""")


class Product:
    """`with Product() as product`: a hub in a fresh home, ended with all its sessions."""

    def __enter__(self) -> Product:
        self.folder = Path(tempfile.mkdtemp(prefix="ab"))
        self.home = self.folder / "h"
        self.env = {**os.environ, "ATLASBRIDGE_HOME": str(self.home), "TERM": "xterm-256color"}
        self.call("hub", "start")
        return self

    def __exit__(self, *_: object) -> None:
        for session in json.loads(self.call("ps", "--json")):
            self.call("kill", session["session_id"])
        self.call("hub", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, *words: str) -> str:
        run = subprocess.run([ATLAS, *words], env=self.env, capture_output=True, text=True, timeout=60, check=False)
        return run.stdout

    def detached(self, *command: str) -> None:
        subprocess.run(
            [ATLAS, "run", "--detach", "--", *command], env=self.env, stdout=subprocess.DEVNULL, timeout=60, check=True
        )

    def client(self) -> HubClient:
        return HubClient(Home(self.home))

    def hub_pid(self) -> int:
        return int(json.loads(self.call("hub", "status", "--json"))["pid"])


def wait(condition: Callable[[], Any], limit_s: float = 30.0) -> Any:
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.02)
    raise TimeoutError("the benchmark waited in vain")


def prompt_latencies(source: str, rounds: int) -> tuple[list[float], list[float]]:
    """Milliseconds from the tool's coming to rest to `prompt.raised`, and from a reply to the tool's reading it."""
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
                raised.append((arrived - last(log, "asked")) * 1e3)
                sent = time.monotonic()
                hub.ask("reply", prompt_id=prompt["prompt_id"], value="y")
                seen = wait(lambda sent=sent: (at := last(log, "got")) > sent and at)
                typed.append((seen - sent) * 1e3)
    return raised, typed


def last(log: Path, word: str) -> float:
    found = [float(line.split()[1]) for line in log.read_text().splitlines() if line.startswith(word)]
    return found[-1] if found else 0.0


def memory(counts: tuple[int, ...]) -> list[tuple[int, float, float]]:
    """For each number of sessions: MB (PSS) of one host on average, and of the hub."""
    rows = []
    with Product() as product:
        for count in counts:
            while len(host_pids(product.home)) < count:
                product.detached("sh", "-c", "printf 'name: '; read x")
            wait(lambda n=count: len(json.loads(product.call("approvals", "--json"))) >= n)
            pids = host_pids(product.home)
            rows.append((count, sum(map(pss_kb, pids)) / 1024 / len(pids), pss_kb(product.hub_pid()) / 1024))
    return rows


def idling(seconds: float) -> dict[str, tuple[float, float]]:
    """Percent of a core and wake-ups a second of a session at rest, and of the hub."""
    with Product() as product:
        product.detached("sh", "-c", "printf 'name: '; read x")
        wait(lambda: json.loads(product.call("approvals", "--json")))
        pids = {"host": host_pids(product.home)[0], "hub": product.hub_pid()}
        time.sleep(3)
        before = {name: (cpu_ticks(pid), wakeups(pid)) for name, pid in pids.items()}
        time.sleep(seconds)
        return {
            name: ((cpu_ticks(pid) - before[name][0]) / seconds, (wakeups(pid) - before[name][1]) / seconds)
            for name, pid in pids.items()
        }
