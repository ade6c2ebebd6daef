"""The product in a home of its own, with a running hub, as the measurements use it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from atlasbridge.core.daemon.request import HubClient
from atlasbridge.core.home import Home
from tests.support.sessions import host_pids
from tests.support.zygotes import zygotes

ATLAS = str(Path(sys.executable).parent / "atlasbridge")


class Product:
    """`with Product() as product`: a hub in a fresh home, ended with all its sessions.

    `warm`: one session has run already, and a zygote waits for the next."""

    def __init__(self, warm: bool = True, environ: Mapping[str, str] | None = None) -> None:
        self._warm = warm
        self._environ = environ or {}

    def __enter__(self) -> Product:
        self.folder = Path(tempfile.mkdtemp(prefix="ab"))
        self.home = self.folder / "h"
        self.env = {**os.environ, "ATLASBRIDGE_HOME": str(self.home), "TERM": "xterm-256color"}
        self.env |= self._environ
        self.call("hub", "start")
        if self._warm:
            self.call("run", "true")  # the plain way, which brings a zygote up for those that are measured
            wait(lambda: zygotes(self.home))
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

    def host(self, _started: int = 0) -> int:
        """The process of the one session; 0 before there is one."""
        return next(iter(host_pids(self.home)), 0)

    def beside_the_hub(self) -> list[int]:
        """Every process of ours in this home but the hub: clients, hosts, what stands by for the next session."""
        mark, ours, hub = f"ATLASBRIDGE_HOME={self.home}".encode(), os.path.realpath(sys.executable), self.hub_pid()
        return [
            pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if pid != hub and _is(pid, ours, mark)
        ]

    def hub_pid(self) -> int:
        return int(json.loads(self.call("hub", "status", "--json"))["pid"])


def _is(pid: int, program: str, mark: bytes) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/exe") == program and mark in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False  # it has ended meanwhile


def wait(condition: Callable[[], Any], limit_s: float = 30.0) -> Any:
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.02)
    raise TimeoutError("the benchmark waited in vain")
