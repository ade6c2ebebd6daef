"""Programs of other sessions that hold a Linux terminal open: tmux and screen serve it from a server of their own,
pinentry takes it over by name.

Finds them; what they do there is judged in `linux`.  A search walks all of /proc, so it is made seldom.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator

from atlasbridge.os.tty import procfs
from atlasbridge.os.tty.procfs import Process
from atlasbridge.os.tty.waits import Line

_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 4.0


class Strangers:
    def __init__(self, line: Line) -> None:
        self.line = line
        self._known: dict[int, int] = {}  # who, and the descriptor that is the terminal
        self._about: Hashable = None
        self._again_at = 0.0
        self._pause_s = _FIRST_PAUSE_S

    def look(self, about: Hashable, now: float) -> list[Process]:
        """Those that hold the terminal now.  Another state of the terminal (`about`) is searched for at once, the same
        again after pauses that grow."""
        if about != self._about:
            self._about, self._again_at, self._pause_s = about, now, _FIRST_PAUSE_S
        held = [process for pid in self._known if (process := self._still_holds(pid)) is not None]
        if held or now < self._again_at:
            return held
        found = list(holders(self.line))
        self._known = {process.pid: fd for process, fd in found}
        self._again_at, self._pause_s = now + self._pause_s, min(2 * self._pause_s, _LONGEST_PAUSE_S)
        return [process for process, _ in found]

    def _still_holds(self, pid: int) -> Process | None:
        process = procfs.read_process(pid)
        gone = process is None or process.state in "ZX" or not self.line.is_open_as(process, self._known[pid])
        return None if gone else process


def holders(line: Line) -> Iterator[tuple[Process, int]]:
    """Every process that this user may inspect, that has another controlling terminal or none, and that has opened this
    one, with the descriptor."""
    name = f"/dev/pts/{line.index}"
    ourselves = os.getpid()
    for process in procfs.every_process():
        if process.terminal == line.device or process.pid == ourselves:
            continue
        for fd, link in procfs.descriptors(process.pid).items():
            if link == name and line.is_open_as(process, fd):
                yield process, fd
                break
