"""Makes what a zygote has in memory fit to be shared.  A page that a host writes to is its own from then on.

No collection walks over it; the gaps between its objects are filled, so that new ones do not come to lie among them;
and where the interpreter knows objects that are never counted (CPython 3.12 and 3.13), everything becomes one.
Before 3.12 every use of an object counts, and counting writes.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

_IMMORTAL = 1 << 30  # no count of a living object comes near; what is above is never counted
_POOL = 16 * 1024  # objects of one size stand together in pools of so many bytes,
_HEAD = 48  # the first of them after so many;
_STEP, _LARGEST = 16, 512  # the sizes are multiples of this, up to that
_MOST = 20_000
_OVERHEAD = 33  # of `bytes`
_UNCOUNTED = ((3, 12), (3, 13))  # versions where it was tried
_filling: list[Any] = []


def share_everything() -> None:
    gc.collect()
    if sys.implementation.name == "cpython" and sys.maxsize > 1 << 32:
        _fill_gaps()
        if _counts():
            _stop_counting()
    gc.freeze()


def _fill_gaps() -> None:
    for size in range(_STEP, _LARGEST + 1, _STEP):
        _filling.append(_fill(size, _maker_of(size)))


def _maker_of(size: int) -> Callable[[], object]:
    if size == _STEP:
        return object
    if size < _OVERHEAD:
        return lambda: float("1.5")
    return lambda: bytes(bytearray(size - _OVERHEAD))


def _fill(size: int, make: Callable[[], object]) -> list[object]:
    """Until two in a row are the first of a pool: then no older one has room."""
    made, place = [make()], 0
    while len(made) < _MOST:
        made.append(make())
        before, place = place, id(made[-1]) % _POOL
        if before == _HEAD and place == _HEAD + size:
            break
    return made


def _counts() -> bool:
    """The usual interpreter with its one lock; the other one counts in two places."""
    return sys.version_info[:2] in _UNCOUNTED and bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def _stop_counting() -> None:
    """What `None` has for a count, all get.  Nothing of it is ever freed, which is what a zygote is for."""
    from ctypes import c_uint32

    count_at = c_uint32.from_address  # the count is the first field of every object; of more than 32 bits the lowest
    if sys.byteorder != "little" or (never := count_at(id(None)).value) < _IMMORTAL:
        return
    waiting = gc.get_objects()
    while waiting:
        item = waiting.pop()
        count = count_at(id(item))
        if count.value < _IMMORTAL:
            count.value = never
            waiting += held_by(item)


def held_by(item: object) -> list[Any]:
    """Code keeps its constants and the code of the functions inside it to itself: no collector has to know them."""
    if isinstance(item, CodeType):
        names = (item.co_names, item.co_varnames, item.co_freevars, item.co_cellvars)
        return [item.co_consts, *item.co_consts, *names, item.co_filename, item.co_name, item.co_qualname]
    return gc.get_referents(item)
