"""The product in a home of its own, with a running hub, as the measurements use it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from atlasbridge.core.daemon.request import HubClient
from atlasbridge.core.home import Home
from tests.support.sessions import host_pids
from tests.support.zygotes import zygotes

ATLAS = str(Path(sys.executable).parent / "atlasbridge")


class Product:
    """`with Product() as product`: a hub in a fresh home, ended with all its sessions."""

    def __enter__(self) -> Product:
        self.folder = Path(tempfile.mkdtemp(prefix="ab"))
        self.home = self.folder / "h"
        self.env = {**os.environ, "ATLASBRIDGE_HOME": str(self.home), "TERM": "xterm-256color"}
        self.call("hub", "start")
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

    def hub_pid(self) -> int:
        return int(json.loads(self.call("hub", "status", "--json"))["pid"])


def wait(condition: Callable[[], Any], limit_s: float = 30.0) -> Any:
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.02)
    raise TimeoutError("the benchmark waited in vain")
