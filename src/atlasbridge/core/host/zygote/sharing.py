"""Makes what a zygote has in memory fit to be shared.  A page that a host writes to is its own from then on.

No collection walks over it; the gaps between its objects are filled, so that new ones do not come to lie among them;
and where the interpreter knows objects that are never counted (CPython 3.12 and 3.13), everything becomes one.
Before 3.12 every use of an object counts, and counting writes.
"""

from __future__ import annotations

import gc
import sys
from types import CodeType
from typing import Any

from atlasbridge.core.host.zygote.gaps import fill_gaps

_IMMORTAL = 1 << 30  # no count of a living object comes near; what is above is never counted
_UNCOUNTED = ((3, 12), (3, 13))  # versions where it was tried


def share_everything() -> None:
    gc.collect()
    fill_gaps()
    if counts_less():
        _stop_counting()
    gc.freeze()


def counts_less() -> bool:
    """The usual interpreter with its one lock; the other one counts in two places."""
    usual = sys.implementation.name == "cpython" and sys.maxsize > 1 << 32
    return usual and sys.version_info[:2] in _UNCOUNTED and bool(getattr(sys, "_is_gil_enabled", lambda: True)())


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
