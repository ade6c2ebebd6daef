"""A hub that dies at the N-th of its calls on files, locks and sockets: builds and arms `deadly_calls.c` (Linux)."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

_SOURCE = Path(__file__).with_name("deadly_calls.c")


def available() -> bool:
    return sys.platform == "linux" and shutil.which("cc") is not None


def build(folder: Path) -> Path:
    """The library, to be preloaded into the process that is to die or into the one that forks it."""
    library = folder / "deadly_calls.so"
    words = ["cc", "-O1", "-shared", "-fPIC", "-Wall", "-Werror", "-o", str(library), str(_SOURCE), "-ldl"]
    subprocess.run(words, check=True)
    return library


def arm(place: int, tell: str, host: bool = False) -> None:
    """This process, or the session host that it forks, dies at this place from now on; which call that was is written
    to the file `tell`."""
    witness = os.open(tell, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    ctypes.CDLL(None).deadly_arm(ctypes.c_long(place), witness, int(host))
