"""A person's own terminal: a process that has nobody of the test for an ancestor, so that it may answer."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from atlasbridge.core import wire
from atlasbridge.core.home import Home


class Person:
    def __init__(self) -> None:
        self.hatch, theirs = socket.socketpair()
        connector = str(Path(__file__).with_name("connector.py"))
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-ISE", connector, str(theirs.fileno()), "orphan"],
                stdin=subprocess.PIPE,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                text=True,
            )
        self._process.wait()  # it lives on as an orphan

    def request(self, home: Home, op: str, **fields: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{home.socket}\n")
        self._process.stdin.flush()
        _, fds, _, _ = socket.recv_fds(self.hatch, 1, 1)
        if not fds:
            raise ConnectionRefusedError(f"nobody listens at {home.socket}")
        with socket.socket(fileno=fds[0]) as link, link.makefile("rb") as lines:
            link.settimeout(60)
            link.sendall(wire.encode({"op": op, **fields}))
            answer: dict[str, Any] = json.loads(lines.readline())
            return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self.hatch.close()
