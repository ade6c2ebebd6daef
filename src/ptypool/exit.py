"""Detects the end of a child and reaps it, without a thread: with a pidfd if available, otherwise by polling.

It calls back once with the exit status. `termination` ends the child.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable

UNKNOWN_STATUS = 255
"""Reported when another part of the program has reaped the child before us (as asyncio does)."""

_FIRST_LOOK_S, _LOOK_EVERY_S = 0.02, 0.5


class ExitWatch:
    """Watches one child. `hold` delays reaping, so that the pid stays reserved while its session is being ended."""

    def __init__(self, loop: asyncio.AbstractEventLoop, pid: int, on_exit: Callable[[int], None]) -> None:
        self._loop = loop
        self._pid = pid
        self._on_exit = on_exit
        self._held = False
        self._done = False
        self._timer: asyncio.TimerHandle | None = None
        self._pidfd = _open_pidfd(pid)
        if self._pidfd is not None:
            loop.add_reader(self._pidfd, self.look)
        else:
            self._timer = loop.call_later(_FIRST_LOOK_S, self._look_again)

    def look(self) -> bool:
        """Reap the child if it has ended; return whether it has."""
        if self._done or self._held:
            return self._done
        try:
            found, status = os.waitpid(self._pid, os.WNOHANG)
        except ChildProcessError:
            self._finish(UNKNOWN_STATUS)
            return True
        if found:
            self._finish(os.waitstatus_to_exitcode(status))
        return self._done

    def hold(self) -> None:
        self._held = True
        self._forget()  # the pidfd of a zombie stays readable, so the loop would spin

    def resume(self) -> None:
        """End a `hold`: reap the child if it has ended, otherwise continue to watch."""
        self._held = False
        if not self.look():
            self._look_again()

    def stop(self) -> None:
        """Stop watching (the event loop is gone, or the child is no longer ours)."""
        self._done = True
        self._forget()

    def _finish(self, status: int) -> None:
        self._done = True
        self._forget()
        self._on_exit(status)

    def _look_again(self) -> None:
        if not self.look():
            self._timer = self._loop.call_later(_LOOK_EVERY_S, self._look_again)

    def _forget(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        pidfd, self._pidfd = self._pidfd, None
        if pidfd is not None:
            if not self._loop.is_closed():
                self._loop.remove_reader(pidfd)
            os.close(pidfd)


def _open_pidfd(pid: int) -> int | None:
    opener: Callable[[int], int] | None = getattr(os, "pidfd_open", None)
    if opener is None:
        return None
    with contextlib.suppress(OSError):  # an old kernel, or no descriptors left: polling works, too
        return opener(pid)
    return None
