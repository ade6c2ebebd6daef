"""Zygotes for tests: started as the product does, by a session that had to take the plain way."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.support.terminal import ATLASBRIDGE
from tests.support.waiting import wait_for

SWITCH = "ATLASBRIDGE_SESSION_ZYGOTE"


def environ_with_zygote(home: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ATLASBRIDGE_")}
    return {**kept, "ATLASBRIDGE_HOME": str(home), **more}


def start_zygote(home: Path, environ: Mapping[str, str] | None = None) -> int:
    """The process of a zygote that listens."""
    environ = environ or environ_with_zygote(home)
    before = set(zygotes(home))
    subprocess.run([*ATLASBRIDGE, "run", "--no-hub", "true"], env=environ, check=True, timeout=60)
    wait_for(lambda: set(zygotes(home)) - before, "a zygote")
    return (set(zygotes(home)) - before).pop()


def zygotes(home: Path) -> list[int]:
    """Who listens at the addresses of this home."""
    return [pid for path in sorted((home / "run").glob("*.sock")) if (pid := _holder(path))]


def _holder(path: Path) -> int:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(str(path))
        except OSError:
            return 0
        return int(struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
