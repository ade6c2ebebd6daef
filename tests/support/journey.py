"""Which modules a run goes through: what a reader has to open to follow it.

A room with a face is followed to its face and no further: what its own functions call is read for its own sake.  A
passage belongs to such a room, but calls what others gave it: that is followed.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import atlasbridge

ROOT = str(Path(atlasbridge.__file__).parent) + "/"


@contextmanager
def followed(faces: Mapping[str, str], passages: Collection[str] = ()) -> Iterator[set[str]]:
    """The modules of which a function is called meanwhile; `faces`: the beginning of a room's files, and its face."""
    seen: set[str] = set()

    def room_of(module: str) -> str:
        return next((room for room in faces if module.startswith(room)), "")

    def note(frame: FrameType, event: str, argument: object) -> None:
        module = _module(frame)
        if event != "call" or not module or frame.f_code.co_name == "<module>":
            return
        caller = frame.f_back
        while caller is not None:
            if room_of(where := _module(caller)) and where not in passages:
                return  # behind a face
            caller = caller.f_back
        room = room_of(module)
        seen.add(faces[room] if room else module)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield seen
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def _module(frame: FrameType) -> str:
    name = frame.f_code.co_filename
    return name.removeprefix(ROOT) if name.startswith(ROOT) else ""
