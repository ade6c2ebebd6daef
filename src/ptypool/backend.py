"""The interface to the operating system: a child on a terminal, its input and output, its end.

Unix has pseudo-terminals (`posix`), Windows has pseudo-consoles (`console`); pool and handle know neither.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import asyncio
    import signal


class Started(Protocol):
    """A running child. Its owner must end it."""

    @property
    def pid(self) -> int: ...


class Stream(Protocol):
    """Moves bytes between a terminal and two bounded queues; it owns the terminal."""

    @property
    def closed(self) -> bool: ...
    @property
    def at_end(self) -> bool: ...
    @property
    def backlog(self) -> int: ...
    @property
    def size(self) -> tuple[int, int]: ...
    async def read(self) -> bytes: ...
    def read_now(self) -> bytes | None: ...
    def read_available(self) -> bytes: ...
    async def write(self, message: bytes) -> None: ...
    async def flush(self) -> None: ...
    def resize(self, cols: int, rows: int) -> None: ...
    def set_attributes(self, attributes: list[Any]) -> None: ...
    def drain(self) -> None: ...
    def stop_writing(self, reason: str) -> None: ...
    def close(self) -> None: ...


class Watch(Protocol):
    """Calls back once when the child has ended; `hold` delays that while its session is being ended."""

    def look(self) -> bool: ...
    def hold(self) -> None: ...
    def resume(self) -> None: ...
    def stop(self) -> None: ...


class Backend(Protocol):
    def start(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str | os.PathLike[str] | None,
        size: tuple[int, int],
        attributes: list[Any] | None,
    ) -> Any:
        """Return a new `Started`; raises SpawnFailed."""

    def stream(self, loop: asyncio.AbstractEventLoop, child: Any, on_end: Callable[[], None]) -> Stream: ...
    def watch(self, loop: asyncio.AbstractEventLoop, child: Any, on_exit: Callable[[int], None]) -> Watch: ...
    def signal(self, child: Any, number: signal.Signals) -> None: ...

    def is_ours(self, child: Any, ended: bool) -> bool:
        """Whether the child's pid still belongs to us and can be signalled."""

    def ending(self, children: Sequence[Any], grace_s: float) -> Iterator[float]:
        """End them with SIGTERM, then by force; yields how long to wait before the next check."""

    def end_now(self, child: Any) -> int | None:
        """End it at once, without an event loop; return its exit status if it is known."""

    def discard(self, child: Any) -> None:
        """End a child for which no handle could be made, and close its terminal."""


def of_this_system() -> Backend:
    if sys.platform == "win32":
        from ptypool.console import Console

        return Console()
    from ptypool.posix import Posix

    return Posix()
