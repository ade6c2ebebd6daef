"""`stall_watchdog`: the session's analysis thread. It feeds output to the detector when the output pauses, asks the
probe, reports raised and withdrawn prompts to the hub, and answers the tool's queries while no terminal is attached.

The detector decides; this module only executes its commands and provides the time.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from atlasbridge.core.clock import Clock
from atlasbridge.core.detection.events import (
    ChildExited,
    Command,
    Event,
    KeysTyped,
    OutputReceived,
    ProbeAnswer,
    ProbeAnswered,
    ProbeState,
    RaisePrompt,
    ReplyTyped,
    RequestProbe,
    RequestWakeup,
    Resized,
    WakeupDue,
    WithdrawPrompt,
)
from atlasbridge.core.host.analysis import DetectorLike, Opened, Outflow
from atlasbridge.core.host.relay import InputWriter, Ring
from atlasbridge.core.host.supervisor import Beat
from atlasbridge.core.host.typed import Outcome, TypedBook
from atlasbridge.core.host.wakeup import Wakeup
from atlasbridge.core.ids import new_id
from atlasbridge.core.patterns import compile_next
from atlasbridge.core.ports import WaitingProbe
from atlasbridge.core.prompt.codec import encode_prompt
from atlasbridge.core.prompt.model import FIRST_KEY, Prompt
from atlasbridge.core.prompt.redact import redact_prompt, typed_text, with_secret
from atlasbridge.core.screen.queries import FOCUS_GAINED, FOCUS_LOST, keys_of
from atlasbridge.core.session.settings import SessionSettings
from atlasbridge.core.values import replace

_UNREAD_S = 10.0  # input that stays unread for longer says nothing about what the tool does now
_MOST_PUT_OFF = 5  # consecutive postponements; a tool that never stops writing is analysed all the same
_LONGEST_SECRET = 4096
_LINE_ENDS = (b"\r", b"\n")
_MAX_COMMANDS = 64  # per event: a detector that requests more has to wait for the next event


Viewer = Callable[[float, Any], float | None]
"""Called with the time and the screen after every step; says when it wants to be called again at the latest."""


class StallWatchdog:
    def __init__(
        self,
        detector: DetectorLike,
        probe: WaitingProbe,
        output: Outflow,
        ring: Ring,
        input_writer: InputWriter,
        clock: Clock,
        settings: SessionSettings,
        events: deque[Event | bytes],
        unread: Callable[[], int] = lambda: 0,
        make_id: Callable[[], str] = new_id,
    ) -> None:
        self._detector = detector
        self._make_id = make_id
        self._unread = unread  # bytes that were typed and not read by the tool; negative: unknown
        self._probe = probe
        self._output = output
        self._ring = ring
        self._input_writer = input_writer
        self._clock = clock
        self._settings = settings
        self._wakeup = Wakeup()
        self._events = events  # bytes are a person's keys; other threads can append and call `notice`
        self._pending_since: float | None = None
        self.wakeup_at: float | None = clock.now()  # a tool can wait without having written a byte
        self._handled_at = 0.0
        self._viewers: list[Viewer] = []
        self._view_at: float | None = None
        self._put_off = 0
        self.lock = threading.RLock()  # protects the detector: one thread at a time
        self._to_hub: Callable[[dict[str, Any]], None] = lambda message: None
        self.when_gone: Callable[[], None] = lambda: None  # called when the open question is gone
        self._typed = TypedBook(lambda message: self._to_hub(message))
        self._open_id = self._open_digest = ""  # of the detector's open prompt
        self._open_idle = False
        self._last_key_at: float | None = None  # by a person; automatic answers of a terminal do not count
        self._heard = b""  # the line that a person types while a secret is asked
        self._typing = False  # an answer of several keys is being typed; intermediate screens are not prompts

    @property
    def screen(self) -> Any:
        return self._detector.screen

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must not leave: from the environment, and typed secrets."""
        return self._detector.secrets

    def tell_hub_by(self, post: Callable[[dict[str, Any]], None]) -> None:
        self._to_hub = post

    # Requests from other modules. A caller that makes several must hold the lock.

    @property
    def opened(self) -> Opened | None:
        """The prompt that can be answered now, with keys for the highlight as it was last seen."""
        prompt = self._detector.open_prompt if self._open_id else None
        return Opened(self._open_id, prompt) if prompt is not None else None

    def known(self, prompt_id: str) -> Outcome | None:
        with self.lock:
            return self._typed.get(prompt_id)

    def outcomes(self) -> list[list[str]]:
        """The outcomes of all answers, for a hub that could have missed some."""
        with self.lock:
            return self._typed.all()

    def answerable(self, prompt_id: str, replaces: bool = False) -> Prompt | Outcome:
        """The prompt, if it is on the screen unchanged and nobody else is answering it; otherwise the reason.

        `replaces`: the answer erases the text in the field, which can be another one than when the prompt was raised.
        """
        self.absorb()
        opened = self.opened
        if opened is None or opened.prompt_id != prompt_id:
            return Outcome("stale", "the tool no longer asks this")
        refilled = self._detector.refilled(opened.prompt.digest)
        if not self._detector.still_shows(opened.prompt.digest) and not refilled:
            return Outcome("stale", "the prompt is no longer on the screen as it was asked")
        if self._detector.begun(self._clock.now()):
            return Outcome("stale", "somebody is typing at the terminal; answer again in 10 seconds if they have left")
        if refilled and not replaces:
            return Outcome("stale", "the text in its field has changed")
        return self._detector.open_prompt or opened.prompt

    @property
    def line_begun(self) -> bool:
        return self._detector.line_begun

    def why(self) -> list[str]:
        return self._detector.explain()

    def took_first_key(self) -> None:
        self._detector.took_first_key()

    def has_left(self, digest: str) -> bool:
        """Whether this prompt is gone from the screen, according to the output so far."""
        return self._detector.has_left(digest)

    def works(self) -> str:
        """Why the tool cannot be waiting for keys; "" if it can."""
        looked = self.look()
        return looked.why or "it works" if looked.state is ProbeState.BUSY and not self._detector.despite_busy else ""

    # Calls of the typist

    def begin_typing(self, prompt_id: str, digest: str, several: bool, detail: str = "") -> None:
        """From here on the answer counts as typed, whatever happens: it is never typed a second time."""
        self._typed.record(prompt_id, Outcome("typed", detail))
        self.handle(ReplyTyped(digest))
        self._typing = several
        self._typed.watch_effect(prompt_id, digest, self._clock.now() + self._settings.effect_timeout_s)

    def end_typing(self, prompt_id: str, outcome: Outcome) -> None:
        with self.lock:
            self._typing = False
            if outcome.outcome == "failed" or outcome.detail == FIRST_KEY:
                self._typed.record(prompt_id, outcome)
            self._typed.watch_until(prompt_id, self._clock.now() + self._settings.effect_timeout_s)
        self.wake()

    def refuse(self, prompt_id: str, why: Outcome) -> Outcome:
        """Nothing is typed, and this id is used up. If the tool still asks, the prompt is raised under a new id."""
        with self.lock:
            self._typed.record(prompt_id, why)
            if self._open_id == prompt_id:
                self._open_id = ""
                self._detector.reconsider()
                self.wakeup_at = self._clock.now()
                self.wake()
        return why

    def renew(self, prompt_id: str) -> None:
        """Raises the open prompt again under a new id; the old id stays used up."""
        with self.lock:
            opened = self.opened
            if opened is not None and opened.prompt_id == prompt_id and self._typed.get(prompt_id) is None:
                self._announce(opened.prompt)

    # Notifications from other modules

    def notice(self) -> None:
        """Something has changed. Wakes the watchdog only if it sleeps; it detects output through the ring."""
        if self._ring.on_output is not None:
            self.wake()

    def wake(self) -> None:
        self._ring.on_output = None
        self._wakeup.set()

    def _tell(self, event: Event | bytes) -> None:
        """Queues an event for the detector; the watchdog's thread handles it."""
        self._events.append(event)
        self.notice()

    def keys_typed(self, data: bytes) -> None:
        self._tell(data)

    def resized(self, rows: int, cols: int) -> None:
        self._tell(Resized(rows, cols))

    def exited(self) -> None:
        """The tool has ended: the last output is analysed, and no prompt is raised any more."""
        with self.lock:
            self.absorb()
            self.handle(ChildExited())

    def add_viewer(self, viewer: Viewer) -> None:
        self._viewers.append(viewer)

    # The thread

    def run(self, beat: Beat) -> None:
        while not beat.retired:
            beat.rest()
            self.rest()
            if beat.retired:
                return
            beat.work()
            with self.lock:
                self.step(self._clock.now())

    def rest(self) -> None:
        self._ring.on_output = self.wake  # set before checking, so that output in between wakes us
        due = self.due(self._clock.now())
        if self._pending_since is not None:
            self._ring.on_output = None  # it checks soon anyway, so it is not woken for every chunk
        while due is None or due > self._clock.now():
            spare_time = not self._ring.size and compile_next()
            if not spare_time and self._wakeup.wait(None if due is None else due - self._clock.now()):
                break
            due = self.due(self._clock.now())
        self._ring.on_output = None

    def due(self, now: float) -> float | None:
        if self._ring.size or self._events:
            if self._pending_since is None:
                self._pending_since = now
            return self._feed_at(now)  # nothing can be decided before the pending output is fed
        self._pending_since = None
        judging = () if self._typing else (self.wakeup_at, self._typed.due_at)
        due = (*judging, self._view_at)
        moments = [at for at in due if at is not None]
        return min(moments, default=None)

    def _feed_at(self, now: float) -> float:
        output, settings = self._output, self._settings
        if output.finished or not self._output.terminal_answers:
            return now
        latest_ms = settings.flood_ms if self._ring.flooded else settings.steady_ms
        quiet_at = output.last_output_at + settings.quiet_ms / 1000
        return min(quiet_at, (self._pending_since or now) + latest_ms / 1000)

    def step(self, now: float) -> None:
        if (self._ring.size or self._events) and self._feed_at(now) <= now:
            self.absorb()
        if self.wakeup_at is not None and now >= self.wakeup_at and not (self._ring.size or self._typing):
            self.wakeup_at = None
            self._handle(WakeupDue(), now)
        if not self._typing:  # half an answer has no effect yet
            self._typed.check(now, self._detector.still_shows)
        self._view_at = min((at for view in self._viewers if (at := view(now, self.screen)) is not None), default=None)

    # The detector

    def absorb(self) -> None:
        """Feeds everything that is available now to the detector. Any thread can call it."""
        with self.lock:
            self._pending_since = None
            while self._events:
                self.handle(self._next_event())
            data, _ = self._ring.take()
            if not data:
                return
            self._handle(OutputReceived(data), self._output.last_output_at)
            answers = self.screen.take_queries()
            if answers and not self._output.terminal_answers:
                self._input_writer.send(b"".join(answers))

    def _next_event(self) -> Event:
        """Combines the keys of a typed line into one event."""
        event = self._events.popleft()
        if not isinstance(event, bytes):
            return event
        while self._events and not event.endswith(_LINE_ENDS) and isinstance(more := self._events[0], bytes):
            event += more
            self._events.popleft()
        self._hear(event)
        self._notice_person(event)
        return KeysTyped(event)

    def _notice_person(self, keys: bytes) -> None:
        if keys.endswith(FOCUS_LOST):
            self._last_key_at = None
        elif keys.endswith(FOCUS_GAINED) or keys_of(keys):
            self._last_key_at = self._clock.now()

    @property
    def typed_age_s(self) -> float | None:
        """How long ago a person typed here or focused this window; None if nobody has, or the window lost focus."""
        at = self._last_key_at
        return None if at is None else round(max(0.0, self._clock.now() - at), 2)

    def _hear(self, keys: bytes) -> None:
        """Records a secret that a person types at the keyboard, like one that we type."""
        opened = self.opened
        asked = opened is not None and opened.prompt.secret
        if asked or self._heard:
            self._heard = (self._heard + keys)[-_LONGEST_SECRET:]
            if self._heard.endswith(_LINE_ENDS):
                self.remember_secret(typed_text(self._heard))
                self._heard = b""

    def remember_secret(self, value: str) -> None:
        """From now on the value is redacted in all output of this session. It is stored only here."""
        self._detector.secrets = with_secret(self._detector.secrets, value)

    @property
    def behind(self) -> bool:
        """Whether there is something that the detector has not seen yet."""
        return self._output.pending or bool(self._ring.size or self._events)

    @property
    def read_at(self) -> float:
        """When output was last read; now, while a terminal that takes no more prevents it."""
        return self._clock.now() if self._output.blocked else self._output.last_output_at

    def handle(self, event: Event) -> None:
        """Handles an event at once in the caller's thread, which holds the lock."""
        self._handle(event, self._clock.now())

    def _handle(self, event: Event, now: float) -> None:
        self._handled_at = now = max(now, self._handled_at)  # the detector's time never goes back
        commands = deque(self._detector.handle(event, now))
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
                self.wakeup_at = at
            case RequestProbe():
                return self._ask_probe(now)
        return []

    def _ask_probe(self, now: float) -> list[Command]:
        """Postpones the probe while there is unread output, because the tool's current activity says nothing about an
        older screen."""
        answer = self.look()
        if self.behind and self._put_off < _MOST_PUT_OFF:
            self._put_off += 1
            self.wakeup_at = now + self._settings.quiet_ms / 1000
            return []
        self._put_off = 0
        return self._detector.handle(ProbeAnswered(answer), now)

    def look(self) -> ProbeAnswer:
        now = self._clock.now()
        typed_at = self._input_writer.last_input_at
        age_s = None if typed_at is None else now - typed_at
        # checked first, because the tool can read it in the meantime
        unread = age_s is not None and age_s < _UNREAD_S and self._unread() > 0
        answer = self._probe.look(now - self._output.last_output_at, age_s)
        if unread and answer.state is not ProbeState.BUSY:
            # The tool was woken by input but has not run yet: on a busy machine it only seems to wait.
            return replace(answer, state=ProbeState.BUSY, why="it has not read its input yet")
        return answer

    def _raise(self, prompt: Prompt) -> None:
        self._typed.superseded(prompt.digest)
        self._announce(prompt)

    def _announce(self, prompt: Prompt) -> None:
        self._open_id, self._open_digest, self._open_idle = self._make_id(), prompt.digest, prompt.idle
        detect_s = max(0.0, self._clock.now() - self._output.last_output_at)
        about = {"prompt": self.told(prompt), "typed_age_s": self.typed_age_s, "detect_s": round(detect_s, 4)}
        self._to_hub({"m": "raise", "prompt_id": self._open_id, **about})

    def told(self, prompt: Prompt) -> dict[str, Any]:
        """The prompt in the form that is sent to the hub: redacted."""
        return encode_prompt(redact_prompt(prompt, self._detector.secrets))

    def _withdraw(self, digest: str, reason: str) -> None:
        if not self._open_id or self._open_digest != digest:
            return
        prompt_id, self._open_id = self._open_id, ""
        if not self._open_idle:  # after an input box, the next question can already be announced
            self.when_gone()
        if not self._typed.left_the_screen(prompt_id):
            self._to_hub({"m": "withdraw", "prompt_id": prompt_id, "reason": reason})
