"""One event loop in a thread of its own, for those who have none: started when first needed, again after a fork.

It runs coroutines and plain calls for other threads, and hands back what they return or raise.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from ptypool.errors import PtyInternalError

T = TypeVar("T")

_starting = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_owner = 0


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run it in the loop's thread and wait for its end; an interrupt here cancels it there."""
    try:
        loop = _running_loop()
    except BaseException:
        coroutine.close()
        raise
    future = asyncio.run_coroutine_threadsafe(coroutine, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def call(function: Callable[[], T]) -> T:
    """Call it in the loop's thread: what is not a coroutine must not run beside the loop either."""

    async def calling() -> T:
        return function()

    return run(calling())


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop, _owner
    with _starting:
        if _loop is None or _owner != os.getpid():
            _loop, _owner = asyncio.new_event_loop(), os.getpid()
            threading.Thread(target=_loop.run_forever, name="ptypool-loop", daemon=True).start()
        loop = _loop
    if threading.current_thread().name == "ptypool-loop":
        raise PtyInternalError("a call that waits was made inside the loop's own thread")
    return loop


def _after_fork() -> None:
    global _starting
    _starting = threading.Lock()


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(after_in_child=_after_fork)
