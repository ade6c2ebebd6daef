"""A home on a small disk of its own (a tmpfs; root only): filled and freed at will."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.arena import Arena
from tests.support.hubs import NO_WEB

from atlasbridge.core.home import Home


class SmallDisk:
    def __init__(self, root: Path) -> None:
        self._filler = root / "filler"

    def fill(self) -> None:
        with open(self._filler, "wb", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError:
                return

    def free(self) -> None:
        self._filler.unlink(missing_ok=True)


@contextmanager
def arena_on_small_disk(megabytes: int = 8) -> Iterator[tuple[Arena, SmallDisk]]:
    with tempfile.TemporaryDirectory(prefix="ab-") as folder:
        options = f"size={megabytes}m,mode=700"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True, capture_output=True)
        try:
            home = Home(Path(folder) / "h")
            home.prepare()
            place = Arena(home, NO_WEB)
            try:
                yield place, SmallDisk(Path(folder))
            finally:
                SmallDisk(Path(folder)).free()
                place.close()
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


def may_mount() -> bool:
    if os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory() as folder:
        tried = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], capture_output=True, check=False)
        if tried.returncode == 0:
            subprocess.run(["umount", folder], check=True)
        return tried.returncode == 0
