"""`stall_watchdog`: the session's slow half.  Feeds output to the detector when it pauses, asks the probe, tells the
hub what is raised and withdrawn, and answers the tool's queries while no terminal is there to answer them.

The detector decides; this module only executes its commands and keeps its time.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from atlasbridge.core.clock import Clock
from atlasbridge.core.ids import new_id
from atlasbridge.core.ports import WaitingProbe
from atlasbridge.core.prompt.codec import encode_prompt
from atlasbridge.core.prompt.commands import Command, RaisePrompt, RequestProbe, RequestWakeup, WithdrawPrompt
from atlasbridge.core.prompt.events import Event, KeysTyped, OutputReceived, ProbeAnswer, ProbeAnswered, WakeupDue
from atlasbridge.core.prompt.model import Prompt
from atlasbridge.core.session.inlet import Inlet
from atlasbridge.core.session.relay import OutputRelay
from atlasbridge.core.session.ring import Ring
from atlasbridge.core.session.settings import SessionSettings
from atlasbridge.core.session.supervisor import Beat
from atlasbridge.core.session.typed import TypedBook
from atlasbridge.core.session.wakeup import Wakeup

_MAX_COMMANDS = 64  # of one event: a detector that keeps asking is cut short until the next event


class DetectorLike(Protocol):
    """What the session needs of `core.prompt.detector.Detector`."""

    screen: Any
    open_prompt: Prompt | None

    def handle(self, event: Event, now: float) -> list[Command]: ...
    def still_shows(self, digest: str) -> bool: ...


Viewer = Callable[[float, Any], float | None]
"""Called with the time and the screen after every turn; says when it wants to be called again at the latest."""


class StallWatchdog:
    def __init__(
        self,
        make: Callable[[], tuple[DetectorLike, WaitingProbe]],
        ring: Ring,
        inlet: Inlet,
        clock: Clock,
        settings: SessionSettings,
        post: Callable[[dict[str, Any]], None],
    ) -> None:
        self._make = make
        self._ring = ring
        self._inlet = inlet
        self._clock = clock
        self._settings = settings
        self._post = post  # to the hub
        self._parts: tuple[DetectorLike, WaitingProbe] | None = None
        self._wakeup = Wakeup()
        self._asleep = False
        self._events: deque[Event] = deque()
        self._pending_since: float | None = None
        self._wakeup_at: float | None = None
        self._handled_at = 0.0
        self._viewers: list[Viewer] = []
        self._view_at: float | None = None
        self.lock = threading.RLock()  # the detector's: one thread at a time
        self.typed = TypedBook(post)
        self.output: OutputRelay | None = None
        self.open: tuple[str, Prompt] | None = None

    @property
    def detector(self) -> DetectorLike:
        return self._built()[0]

    @property
    def screen(self) -> Any:
        return self.detector.screen

    def _built(self) -> tuple[DetectorLike, WaitingProbe]:
        """Made on first use: the tool starts before the detector is even imported."""
        with self.lock:
            if self._parts is None:
                self._parts = self._make()
            return self._parts

    def notice(self) -> None:
        """There is output.  Called for every chunk, so it is cheap: only a sleeping watchdog is woken."""
        if self._asleep:
            self._asleep = False
            self._wakeup.set()

    def tell(self, event: Event) -> None:
        """Something the detector must know; it is handled in the watchdog's own time."""
        self._events.append(event)
        self.notice()

    def keys_typed(self, data: bytes) -> None:
        self.tell(KeysTyped(data))

    def add_viewer(self, viewer: Viewer) -> None:
        self._viewers.append(viewer)
        self.wake()

    def wake(self) -> None:
        self._asleep = False
        self._wakeup.set()

    def run(self, beat: Beat) -> None:
        self._built()
        while not beat.retired:
            beat.rest()
            self._sleep()
            if beat.retired:
                return
            beat.work()
            with self.lock:
                self._turn(self._clock.now())

    def _sleep(self) -> None:
        self._asleep = True
        due = self._due(self._clock.now())
        if due is not None:
            self._asleep = self._pending_since is None  # it will look anyway: no need to be woken for every chunk
        while due is None or due > self._clock.now():
            if self._wakeup.wait(None if due is None else due - self._clock.now()):
                break
            due = self._due(self._clock.now())
        self._asleep = False

    def _due(self, now: float) -> float | None:
        due = self._wakeup_at
        for moment in (self.typed.due_at, self._view_at):
            if moment is not None and (due is None or moment < due):
                due = moment
        if not (self._ring.size or self._events):
            self._pending_since = None
            return due
        if self._pending_since is None:
            self._pending_since = now
        return self._feed_at(now)  # a settled screen cannot be judged before the output that waits is fed

    def _feed_at(self, now: float) -> float:
        output = self.output
        if output is None or output.finished or not self._terminal_answers():
            return now
        settings = self._settings
        latest_ms = settings.flood_ms if self._ring.flooded else settings.steady_ms
        quiet_at = output.last_output_at + settings.quiet_ms / 1000
        return min(quiet_at, (self._pending_since or now) + latest_ms / 1000)

    def _turn(self, now: float) -> None:
        if (self._ring.size or self._events) and self._feed_at(now) <= now:
            self.absorb()
        if self._wakeup_at is not None and now >= self._wakeup_at and not self._ring.size:
            self._wakeup_at = None
            self._handle(WakeupDue(), now)
        self.typed.check(now, self.detector.still_shows)
        self._show_viewers(now)

    def _show_viewers(self, now: float) -> None:
        self._view_at = None
        for viewer in self._viewers:
            moment = viewer(now, self.screen)
            if moment is not None and (self._view_at is None or moment < self._view_at):
                self._view_at = moment

    def absorb(self) -> None:
        """Feed everything that is known now.  Callable by any thread."""
        with self.lock:
            self._pending_since = None
            while self._events:
                self._handle(self._events.popleft(), self._clock.now())
            data, lost = self._ring.take()
            if data:
                self._handle(OutputReceived(data, lost), self._last_output_at())
                answers = self.screen.take_queries()
                if answers and not self._terminal_answers():
                    self._inlet.send(b"".join(answers))

    def _last_output_at(self) -> float:
        return self._clock.now() if self.output is None else self.output.last_output_at

    def _terminal_answers(self) -> bool:
        attachment = None if self.output is None else self.output.attachment
        return attachment is not None and attachment.is_terminal

    def handle(self, event: Event) -> None:
        """At once, by the caller's thread, which holds the lock."""
        self._handle(event, self._clock.now())

    def _handle(self, event: Event, now: float) -> None:
        self._handled_at = now = max(now, self._handled_at)  # the detector's time never goes back
        commands = deque(self.detector.handle(event, now))
        for _ in range(_MAX_COMMANDS):
            if not commands:
                return
            commands.extend(self._execute(commands.popleft(), now))

    def _execute(self, command: Command, now: float) -> list[Command]:
        match command:
            case RaisePrompt(prompt):
                self._raise(prompt)
            case WithdrawPrompt(digest, reason):
                self._withdraw(digest, reason)
            case RequestWakeup(at):
                self._wakeup_at = at
            case RequestProbe():
                return self.detector.handle(ProbeAnswered(self.look()), now)
        return []

    def look(self) -> ProbeAnswer:
        """Ask the operating system what the tool does."""
        now = self._clock.now()
        typed_at = self._inlet.last_input_at
        return self._built()[1].look(now - self._last_output_at(), None if typed_at is None else now - typed_at)

    def _raise(self, prompt: Prompt) -> None:
        self.typed.superseded(prompt.digest)
        prompt_id = new_id()
        self.open = (prompt_id, prompt)
        self._post({"m": "raise", "prompt_id": prompt_id, "prompt": encode_prompt(prompt)})

    def _withdraw(self, digest: str, reason: str) -> None:
        if self.open is None or self.open[1].digest != digest:
            return
        prompt_id, _ = self.open
        self.open = None
        if not self.typed.left_the_screen(prompt_id):
            self._post({"m": "withdraw", "prompt_id": prompt_id, "reason": reason})
