"""How the hub is told from outside to end or to read its configuration again, with POSIX signals and without."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import Any

_STOP = ("SIGTERM", "SIGINT", "SIGBREAK")  # the last is what Windows has for a process of its own group
_RELOAD = ("SIGHUP",)


class SignalWatch:
    """From its making until `close`.  A signal that the system does not have is left out."""

    def __init__(self, loop: asyncio.AbstractEventLoop, stop: Callable[[], None], reload: Callable[[], None]) -> None:
        self._loop = loop
        self._before: dict[int, Any] = {}
        wanted = [(name, stop) for name in _STOP] + [(name, reload) for name in _RELOAD]
        self._calls = {int(getattr(signal, name)): call for name, call in wanted if hasattr(signal, name)}
        for number, call in self._calls.items():
            try:
                loop.add_signal_handler(number, call)
            except NotImplementedError:  # an event loop of Windows
                self._before[number] = signal.signal(number, self._noted)

    def _noted(self, number: int, frame: object) -> None:
        self._loop.call_soon_threadsafe(self._calls[number])

    def close(self) -> None:
        for number in self._calls:
            if number in self._before:
                signal.signal(number, self._before[number])
            else:
                self._loop.remove_signal_handler(number)
