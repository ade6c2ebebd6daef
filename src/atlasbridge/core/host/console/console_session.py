"""A session on a console, in one process: the program's output is shown here, keys typed here go in, and the usual slow
half (screen, detector, watchdog, typist, hub) judges, asks and types.

It ends with its console; one that was started without any goes on until its program ends.  Other consoles and the hooks
of its tool come over its line (`company`).
"""

from __future__ import annotations

import threading
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from atlasbridge.core.clock import Clock
from atlasbridge.core.host.console.company import Company
from atlasbridge.core.host.console.console_inlet import ConsoleInlet
from atlasbridge.core.host.console.console_outlet import ConsoleOutlet
from atlasbridge.core.host.console.line_door import Whose
from atlasbridge.core.host.edges import HostParts
from atlasbridge.core.host.judgement import Judgement
from atlasbridge.core.host.logbook import Logbook
from atlasbridge.core.host.supervisor import Beat, Supervisor, end_in_background
from atlasbridge.core.host.terminal.ring import Ring
from atlasbridge.core.host.terminal.wakeup import Wakeup
from atlasbridge.core.session.plan import Plan
from atlasbridge.core.session.settings import SessionSettings
from atlasbridge.core.tty import Console, ConsolePty, Size

if TYPE_CHECKING:
    from atlasbridge.core.detection.events import Event
    from atlasbridge.core.host.hub.hubside import HubSide
    from atlasbridge.core.host.watchdog import StallWatchdog

_LOOK_S = 0.1  # a console tells neither of its program's end nor of a new size
_INTERRUPT = b"\x03"


class ConsoleSession:
    def __init__(
        self,
        plan: Plan,
        pty: ConsolePty,
        console: Console,
        parts: HostParts,
        settings: SessionSettings,
        clock: Clock,
        journal: Logbook,
    ) -> None:
        self._plan, self._pty, self._console, self._parts = plan, pty, console, parts
        self._settings, self._clock, self._journal = settings, clock, journal
        self._started_at = clock.wall()
        self._size = console.size()
        self._sizing = threading.RLock()
        self._present = not plan.hosted
        self._ended_at: float | None = None
        self._wakeup = Wakeup()
        self._supervisor = Supervisor(clock, settings, journal, self._wakeup.set)
        self._judgement = Judgement(
            self._build,
            self._size,
            plan.hub,
            lambda loop: self._supervisor.start("response_consumer", loop),
            journal,
        )
        self._inlet = ConsoleInlet(pty.write, clock)
        self._ring = Ring(settings.ring_bytes)
        self._company = Company(
            plan, pty.pid, self._judgement, settings.detach_key, journal, self._type, self._follow_size
        )
        self._outlet = ConsoleOutlet(pty.read, console.write, self._keep, self._has_terminal, clock, self._output_ended)

    def listen(self, path: Path, whose: Whose) -> None:
        """Open the door for other consoles and hooks; `path`: where a socket would be."""
        self._company.open(path, whose)

    def _keep(self, chunk: bytes) -> None:
        """For the screen, and for other consoles: whoever comes in between sees it once."""
        with self._company.lock:
            self._company.show(chunk)
            self._ring.append(chunk)

    def _has_terminal(self) -> bool:
        return self._console.is_terminal or self._company.size is not None

    def _build(self, size: Size, events: deque[Event | bytes]) -> tuple[StallWatchdog, HubSide]:
        from atlasbridge.core.host.slow_half import build_slow_half

        watch, hub, self._company.hook = build_slow_half(
            self._plan,
            self._pty,
            size,
            self._parts,
            self._settings,
            self._clock,
            self._started_at,
            self._outlet,
            self._ring,
            self._inlet,
            events,
        )
        hub.end_tool = self.end_tool
        return watch, hub

    def run(self) -> int:
        """Until the program has ended and all it wrote is shown; returns its exit status."""
        self._judgement.changed(self._size, self._present)
        self._supervisor.start("pty_reader", self._outlet.run)
        self._supervisor.start("pty_writer", self._inlet.run)
        self._supervisor.start("stdin_relay", self._relay_keys)
        self._supervisor.start("stall_watchdog", self._judgement.run)
        while not self._is_over():
            if self._supervisor.failed:
                self._give_up()
            self._wakeup.wait(min(self._supervisor.check(), _LOOK_S))
            self._follow_size()
        status = self._pty.poll() or 0
        self._finish(status)
        return status

    def interrupt(self) -> None:
        """Ctrl-C that the system has taken for itself belongs to the program."""
        self._type(_INTERRUPT)

    def end_tool(self, force: bool = False) -> None:
        """Politely, a grace period, by force.  Returns at once."""
        end_in_background(self._pty, 0.0 if force else self._settings.kill_grace_s)

    def _relay_keys(self, beat: Beat) -> None:
        beat.rest()
        while not beat.retired and (keys := self._console.read_keys()):
            self._type(keys)

    def _type(self, keys: bytes) -> None:
        self._inlet.type(keys)
        self._judgement.keys_typed(keys)
        self._judgement.notice()

    def _output_ended(self) -> None:
        self._judgement.notice()
        self._wakeup.set()

    def _follow_size(self) -> None:
        """Its own console's; without one, that of the console which came last."""
        with self._sizing:
            others = self._company.size
            wanted = others or self._size if self._plan.hosted else self._console.size()
            present = not self._plan.hosted or others is not None
            if wanted != self._size:
                self._pty.resize(wanted)
            if (wanted, present) != (self._size, self._present):
                self._size, self._present = wanted, present
                self._judgement.changed(wanted, present)

    def _is_over(self) -> bool:
        """A pseudo-console may stay open behind its program: it is over when nothing more comes."""
        if self._pty.poll() is None:
            return False
        now = self._clock.now()
        if self._ended_at is None:
            self._ended_at = now
        quiet_s = now - max(self._ended_at, self._outlet.last_output_at)
        return self._outlet.finished or quiet_s > self._settings.exit_grace_ms / 1000

    def _give_up(self) -> None:
        name, self._supervisor.failed = self._supervisor.failed, ""
        self._journal.note("the session cannot go on", task=name)
        self.end_tool()

    def _finish(self, status: int) -> None:
        if status != 0 and self._console.is_terminal:
            self._console.write(self._judgement.farewell())  # it may have left the console in any state
        self._company.finish(status)
        self._inlet.stop()
        self._judgement.finish(status, self._clock.now() + self._settings.hub_farewell_s)
        self._supervisor.stop()
        self._journal.note("session ended", status=status)
