"""Puts the code that hosts write to side by side.

An interpreter takes notes inside code while it runs (how often, on what); code is scattered over a process as it was
imported, and each of its pages that a host writes to is the host's own from then on.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, FunctionType
from typing import Any

from atlasbridge.core.host.zygote.sharing import counts_less

# Of each code its copy, and itself: where it stood would be a gap otherwise, and its place soon another's.
_copies: dict[int, tuple[CodeType, CodeType]] = {}


def put_together(places: set[int]) -> None:
    """Copies of the code at these places, one behind the other; every function gets the copy of its own."""
    for function in _functions():
        code = _copied(function.__code__, places)
        if code is not function.__code__:
            function.__code__ = code


def _copied(code: CodeType, places: set[int]) -> CodeType:
    """Code whose inner code moves, moves as well: it is what makes functions of it."""
    if id(code) not in _copies:
        inner = tuple(_copied(part, places) if type(part) is CodeType else part for part in code.co_consts)
        moves = id(code) in places or any(one is not other for one, other in zip(inner, code.co_consts, strict=True))
        _copies[id(code)] = code, code.replace(co_consts=inner) if moves else code
    return _copies[id(code)][1]


def watch_code() -> Callable[[], set[int]]:
    """Returns what tells the places of all code that was written to meanwhile."""
    if not counts_less():
        return _watch_runs()
    before = {id(code): (code, _notes(code)) for function in _functions() for code in _with_inner(function.__code__)}
    return lambda: {place for place, (code, notes) in before.items() if _notes(code) != notes}


def _watch_runs() -> Callable[[], set[int]]:
    """Where running means counting, all that runs is written to."""
    ran: dict[int, CodeType] = {}

    def note(frame: FrameType, event: str, argument: Any) -> None:
        ran[id(frame.f_code)] = frame.f_code

    sys.setprofile(note)
    threading.setprofile(note)
    return lambda: set(ran)


def _functions() -> Iterator[FunctionType]:
    return (item for item in gc.get_objects() if type(item) is FunctionType)


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for part in code.co_consts:
        if type(part) is CodeType:
            yield from _with_inner(part)


def _notes(code: CodeType) -> bytes:
    return code._co_code_adaptive  # type: ignore[attr-defined, no-any-return]
