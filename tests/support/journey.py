"""Which modules a run goes through: what a reader has to open to follow it.  Nothing is left out."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import atlasbridge

ROOT = str(Path(atlasbridge.__file__).parent) + "/"


@contextmanager
def followed() -> Iterator[set[str]]:
    """The modules of which a function is called meanwhile, in any thread that starts meanwhile or runs this."""
    seen: set[str] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(ROOT) and frame.f_code.co_name != "<module>":
            seen.add(name.removeprefix(ROOT))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield seen
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
