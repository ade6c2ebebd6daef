"""Waits for several sockets: `poll` where the system has it, otherwise `select` with the same interface.

On Windows it is possible to wait only for sockets, not for pipes or files.
"""

from __future__ import annotations

import select
from typing import Protocol

POLLIN, POLLOUT, POLLERR, POLLHUP = 1, 4, 8, 16  # the same numbers on every system that has `poll`


class Watched(Protocol):
    def fileno(self) -> int: ...


class ReadyWait(Protocol):
    def register(self, fd: int | Watched, eventmask: int, /) -> None: ...
    def poll(self, timeout_ms: float | None = None, /) -> list[tuple[int, int]]: ...


class SelectPoller:
    def __init__(self) -> None:
        self._masks: dict[int, int] = {}

    def register(self, fd: int | Watched, eventmask: int, /) -> None:
        self._masks[fd if isinstance(fd, int) else fd.fileno()] = eventmask

    def poll(self, timeout_ms: float | None = None, /) -> list[tuple[int, int]]:
        readers = [fd for fd, mask in self._masks.items() if mask & POLLIN]
        writers = [fd for fd, mask in self._masks.items() if mask & POLLOUT]
        timeout_s = None if timeout_ms is None else timeout_ms / 1000
        readable, writable, broken = select.select(readers, writers, list(self._masks), timeout_s)
        found = dict.fromkeys([*readable, *writable, *broken], 0)
        for ready, event in ((readable, POLLIN), (writable, POLLOUT), (broken, POLLERR)):
            for fd in ready:
                found[fd] |= event
        return list(found.items())


def make_poller() -> ReadyWait:
    return select.poll() if hasattr(select, "poll") else SelectPoller()
