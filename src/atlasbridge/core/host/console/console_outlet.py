"""`pty_reader` of a console: every byte that the program writes, at once and in order, to this console and the ring.

A read of a console blocks: nobody can ask it whether there is something to read.
"""

from __future__ import annotations

from collections.abc import Callable

from atlasbridge.core.clock import Clock
from atlasbridge.core.host.supervisor import Beat


class ConsoleOutlet:
    """`read`: the next bytes, b"" at the end.  `show`: on the person's console.  `keep`: for everybody else.
    `answers`: whether a terminal is there that answers queries.  `ended`: nothing more will come."""

    def __init__(
        self,
        read: Callable[[], bytes],
        show: Callable[[bytes], None],
        keep: Callable[[bytes], None],
        answers: Callable[[], bool],
        clock: Clock,
        ended: Callable[[], None],
    ) -> None:
        self._read = read
        self._show = show
        self._keep = keep
        self._clock = clock
        self._ended = ended
        self._fetching = False
        self._answers = answers
        self.last_output_at = clock.now()
        self.finished = False

    @property
    def pending(self) -> bool:
        """As far as it has arrived here; what the system still holds cannot be asked for."""
        return self._fetching

    @property
    def terminal_answers(self) -> bool:
        return self._answers()

    def run(self, beat: Beat) -> None:
        while not beat.retired:
            beat.rest()
            self._fetching = False
            chunk = self._read()
            self._fetching = True
            if not chunk:
                break
            self._show(chunk)
            self.last_output_at = self._clock.now()
            self._keep(chunk)
        self.finished, self._fetching = True, False
        self._ended()
