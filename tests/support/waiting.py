"""The one way to wait in tests: for a condition, with a generous deadline and a word about what did not come.

Nothing here depends on how fast a machine is; a pause between two looks is the only sleep.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")

DEADLINE_S = 120.0  # for a machine with much else to do; who waits this long has waited in vain
LOOK_EVERY_S = 0.01
LOOK_AT_LEAST_EVERY_S = 0.05  # after a while: a look often asks a hub, which has its own work to do


def wait_for(look: Callable[[], T | None], what: str = "a condition", deadline_s: float = DEADLINE_S) -> T:
    """What `look` gives as soon as it is something."""
    give_up_at = time.monotonic() + deadline_s
    pause = pauses()
    while not (found := look()):
        assert time.monotonic() < give_up_at, f"waited {deadline_s:g} s in vain for {what}"
        time.sleep(next(pause))
    return found


def pauses() -> Iterator[float]:
    pause_s = LOOK_EVERY_S
    while True:
        yield pause_s
        pause_s = min(pause_s * 1.2, LOOK_AT_LEAST_EVERY_S)


def written(path: Path, what: str = "") -> str:
    """What another program has written there, as soon as it has: a file is there before its words are."""
    return wait_for(lambda: path.read_text("utf-8") if path.exists() else None, what or f"words in {path.name}")


async def until(
    look: Callable[[], T | None] | Callable[[], Awaitable[T | None]],
    what: str = "a condition",
    deadline_s: float = DEADLINE_S,
) -> T:
    """The same in an event loop, which goes on meanwhile; a look may take its time there."""
    give_up_at = time.monotonic() + deadline_s
    while not (found := await _seen(look())):
        assert time.monotonic() < give_up_at, f"waited {deadline_s:g} s in vain for {what}"
        await asyncio.sleep(LOOK_EVERY_S)
    return found


async def _seen(found: T | Awaitable[T]) -> T:
    return await found if isinstance(found, Awaitable) else found


async def in_thread(call: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """A blocking call, beside the event loop."""
    return await asyncio.to_thread(call, *arguments, **named)


async def stays(look: Callable[[], object], what: str = "it", for_s: float = 0.1) -> None:
    """That something does *not* happen can only be waited for: it holds now and for a while."""
    give_up_at = time.monotonic() + for_s
    while time.monotonic() < give_up_at:
        assert look(), f"{what} changed"
        await asyncio.sleep(LOOK_EVERY_S)
    assert look(), f"{what} changed"
