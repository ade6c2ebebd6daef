"""What the product costs while nothing happens: processor time, wake-ups and memory."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from functools import partial

from tests.benchmarks.measure import cpu_s, pss_kb, wakeups
from tests.benchmarks.product import ATLAS, Product, wait
from tests.support.sessions import host_pids
from tests.support.terminal import Terminal

_WAITING = ("sh", "-c", "printf 'name: '; read x")
_SETTLING_S = 3.0


def idling(seconds: float) -> dict[str, tuple[float, float]]:
    """Percent of a core and wake-ups a second."""
    found = {}
    for name, command in (("session, prompt open", _WAITING), ("session, tool busy in silence", ("sleep", "600"))):
        with Product() as product:
            product.detached(*command)
            host = wait(partial(host_pids, product.home))[0]
            time.sleep(_SETTLING_S)
            found[name] = _watched(host, seconds)
            found["hub"] = _watched(product.hub_pid(), seconds)
    return found


def _watched(pid: int, seconds: float) -> tuple[float, float]:
    spent, woken = cpu_s(pid), wakeups(pid)
    time.sleep(seconds)
    return (cpu_s(pid) - spent) / seconds * 100, (wakeups(pid) - woken) / seconds


def attached() -> list[tuple[str, float, float]]:
    """MB (PSS) of client and host of one attached session, at rest and after a flood."""
    rows = []
    script = "printf 'first: '; read a; yes | head -c 20000000; printf 'second: '; read b"
    with Product() as product, Terminal([ATLAS, "run", "--", "sh", "-c", script], home=product.home) as terminal:
        for moment, shown in (("at rest", "first:"), ("after 20 MB", "second:")):
            terminal.wait_for(shown, deadline_s=300)
            wait(lambda: json.loads(product.call("approvals", "--json")))
            host = host_pids(product.home)[0]
            rows.append((moment, pss_kb(terminal.pid) / 1024, pss_kb(host) / 1024))
            terminal.type("x\r")
    return rows


def interpreter() -> float:
    """MB (PSS) of a Python process that has imported what client and host need of its library, and nothing of ours."""
    code = "import json, pathlib, re, socket, threading, typing; print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = pss_kb(process.pid) / 1024
        process.kill()
    return found


def directory(counts: tuple[int, ...]) -> list[tuple[int, float, float]]:
    """For each number of sessions: MB (PSS) of one host on average, and of the hub."""
    rows = []
    with Product() as product:
        for count in counts:
            while len(host_pids(product.home)) < count:
                product.detached(*_WAITING)
            wait(partial(_are_asked, product, count))
            pids = host_pids(product.home)
            rows.append((count, sum(map(pss_kb, pids)) / 1024 / len(pids), pss_kb(product.hub_pid()) / 1024))
    return rows


def _are_asked(product: Product, count: int) -> bool:
    return len(json.loads(product.call("approvals", "--json"))) >= count
