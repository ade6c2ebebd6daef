"""Fills the gaps between what a process has in memory, so that new things do not come to lie among the old ones.

A page that a forked process writes to is its own from then on: what it makes for itself is to stand by itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

_POOL = 16 * 1024  # the interpreter keeps small objects of one size together in pools of so many bytes,
_HEAD = 48  # the first of them after so many;
_STEP, _LARGEST = 16, 512  # the sizes are multiples of this, up to that
_OVERHEAD = 33  # of `bytes`
_SIZES = (65536, 32768, 16384, 8192, 4096, *range(2048, _STEP, -_STEP))  # of the C library, which has what is larger
_UNTOLD = 512 * 1024  # more than the C library has at hand beside what it tells of
_MOST = 20_000  # objects of one size
_filling: list[Any] = []


def fill_gaps() -> None:
    if _has_pools():
        for size in range(_STEP, _LARGEST + 1, _STEP):
            _filling.append(_fill_pools(size, _maker_of(size)))
        _fill_heap()


def _has_pools() -> bool:
    """The usual interpreter on a machine of 64 bits: not the one without a lock, and none that was told otherwise."""
    usual = sys.implementation.name == "cpython" and sys.maxsize > 1 << 32
    return usual and "t" not in sys.abiflags and "PYTHONMALLOC" not in os.environ


def _maker_of(size: int) -> Callable[[], object]:
    if size == _STEP:
        return object
    if size < _OVERHEAD:
        return lambda: float("1.5")
    return lambda: bytes(bytearray(size - _OVERHEAD))


def _fill_pools(size: int, make: Callable[[], object]) -> list[object]:
    """Until two in a row are the first of a pool: then no older one has room."""
    made, place = [make()], 0
    while len(made) < _MOST:
        made.append(make())
        before, place = place, id(made[-1]) % _POOL
        if before == _HEAD and place == _HEAD + size:
            break
    return made


def _fill_heap() -> None:
    """Whatever the C library gives from below the place where all that is in use ends was a gap, and is kept."""
    import ctypes

    class Told(ctypes.Structure):  # ten numbers, as malloc.h of the GNU library has them
        _fields_ = (("others", ctypes.c_size_t * 8), ("free", ctypes.c_size_t), ("free_at_end", ctypes.c_size_t))

    try:
        library = ctypes.CDLL(None)
        allocate, release, move_end, tell = library.malloc, library.free, library.sbrk, library.mallinfo2
    except (OSError, AttributeError):
        return  # another C library
    allocate.restype = move_end.restype = ctypes.c_void_p
    allocate.argtypes, move_end.argtypes = [ctypes.c_size_t], [ctypes.c_ssize_t]
    release.argtypes, release.restype, tell.restype = [ctypes.c_void_p], None, Told
    told = tell()
    end, left = move_end(0) - told.free_at_end, told.free - told.free_at_end + _UNTOLD
    for size in _SIZES:
        while (place := allocate(size)) is not None and place < end and left > 0:
            left -= size
        release(place)
