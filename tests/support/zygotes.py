"""Zygotes for tests: started as the product does, by a session that had to take the plain way."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.support.terminal import ATLASBRIDGE
from tests.support.waiting import wait_for

from atlasbridge.core.peer import HOST_NAME

_LISTENS = 0x10000  # among the flags of /proc/net/unix
SWITCH = "ATLASBRIDGE_SESSION_ZYGOTE"


def environ_with_zygote(home: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ATLASBRIDGE_")}
    return {**kept, "ATLASBRIDGE_HOME": str(home), **more}


def start_zygote(home: Path, environ: Mapping[str, str] | None = None) -> int:
    """The process of a zygote that listens."""
    environ = environ or environ_with_zygote(home)
    before = set(zygotes(home))
    subprocess.run([*ATLASBRIDGE, "run", "--no-hub", "true"], env=environ, check=True)
    wait_for(lambda: set(zygotes(home)) - before, "a zygote")
    return (set(zygotes(home)) - before).pop()


def zygotes(home: Path) -> list[int]:
    """Who listens at the addresses of this home.  Nobody is knocked at: that would cost a zygote its spare host."""
    paths = sorted((home / "run").glob("*.sock"))
    return [pid for path in paths if _is_listened_at(path) and (pid := _locked_by(Path(f"{path}.lock")))]


def _is_listened_at(path: Path) -> bool:
    lines = [line.split(maxsplit=7) for line in Path("/proc/net/unix").read_text().splitlines()]
    return any(words[-1] == str(path) and int(words[3], 16) & _LISTENS for words in lines[1:])


def _locked_by(path: Path) -> int:
    """0: by nobody."""
    try:
        place = str(path.stat().st_ino)
    except FileNotFoundError:
        return 0
    locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return next((int(words[4]) for words in locks if words[1] == "FLOCK" and words[5].split(":")[2] == place), 0)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_spare(zygote: int, *others: int) -> int:
    """The host that waits for the next caller; none of the others, which have been one."""

    def look() -> int:
        return next((pid for pid in children_of(zygote) if pid not in others and _waits(pid)), 0)

    return wait_for(look, "a spare host")


def _waits(spare: int) -> bool:
    """Whether it leads a session of its own, and is not a session's host yet."""
    try:
        return os.getsid(spare) == spare and Path(f"/proc/{spare}/comm").read_text().strip() != HOST_NAME
    except OSError:
        return False  # it has ended meanwhile
