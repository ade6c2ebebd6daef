"""`stall_watchdog`: the session's analysis thread.  Feeds output to the detector when it pauses, asks the probe,
tells the
hub what is raised and withdrawn, and answers the tool's queries while no terminal is there to answer them.

The detector decides; this module only executes its commands and keeps its time.
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
from atlasbridge.core.host.ports import DetectorLike, Opened, Outflow
from atlasbridge.core.host.supervisor import Beat
from atlasbridge.core.host.terminal.input_writer import InputWriter
from atlasbridge.core.host.terminal.ring import Ring
from atlasbridge.core.host.terminal.wakeup import Wakeup
from atlasbridge.core.host.typing.typed import Outcome, TypedBook
from atlasbridge.core.ids import new_id
from atlasbridge.core.patterns import compile_next
from atlasbridge.core.ports import WaitingProbe
from atlasbridge.core.prompt.codec import encode_prompt
from atlasbridge.core.prompt.model import FIRST_KEY, Prompt
from atlasbridge.core.prompt.redact import redact_prompt, remembered, typed_text
from atlasbridge.core.screen.queries import FOCUS_GAINED, FOCUS_LOST, keys_of
from atlasbridge.core.session.settings import SessionSettings
from atlasbridge.core.values import replace

_UNREAD_S = 10.0  # input that is left unread for so long says nothing of what the tool does now
_MOST_PUT_OFF = 5  # judgements in a row; a tool that never stops to write is judged all the same
_LONGEST_SECRET = 4096
_LINE_ENDS = (b"\r", b"\n")
_MAX_COMMANDS = 64  # of one event: a detector that keeps asking is cut short until the next event


Viewer = Callable[[float, Any], float | None]
"""Called with the time and the screen after every turn; says when it wants to be called again at the latest."""


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
        self._unread = unread  # bytes that were typed and that the tool has not read; below 0: nobody knows
        self._probe = probe
        self._output = output
        self._ring = ring
        self._input_writer = input_writer
        self._clock = clock
        self._settings = settings
        self._wakeup = Wakeup()
        self._events = events  # bytes are keys of a person; others may append, and call `notice`
        self._pending_since: float | None = None
        self.wakeup_at: float | None = clock.now()  # a tool may wait without ever having written a byte
        self._handled_at = 0.0
        self._viewers: list[Viewer] = []
        self._view_at: float | None = None
        self._put_off = 0
        self.lock = threading.RLock()  # the detector's: one thread at a time
        self._to_hub: Callable[[dict[str, Any]], None] = lambda message: None
        self.when_gone: Callable[[], None] = lambda: None  # the question that was open is not any more
        self._typed = TypedBook(lambda message: self._to_hub(message))
        self._open_id = self._open_digest = ""  # of the prompt that the detector has open
        self._open_idle = False
        self._last_key_at: float | None = None  # by a person; what a terminal answers by itself does not count
        self._heard = b""  # of a line that a person types while a secret is asked
        self._typing = False  # an answer of several keys is on its way: what shows up in between is no prompt

    @property
    def screen(self) -> Any:
        return self._detector.screen

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must not leave: of the environment, and what was typed as a secret."""
        return self._detector.secrets

    def tell_hub_by(self, post: Callable[[dict[str, Any]], None]) -> None:
        self._to_hub = post

    # What others ask of it; who asks twice holds the lock

    @property
    def opened(self) -> Opened | None:
        """The prompt that may be answered now, with keys that fit the highlight as it was last seen."""
        prompt = self._detector.open_prompt if self._open_id else None
        return Opened(self._open_id, prompt) if prompt is not None else None

    def known(self, prompt_id: str) -> Outcome | None:
        """What became of the answer to this prompt; None: there was none."""
        with self.lock:
            return self._typed.get(prompt_id)

    def outcomes(self) -> list[list[str]]:
        """Of all answers, for a hub that may have missed some."""
        with self.lock:
            return self._typed.all()

    def answerable(self, prompt_id: str) -> Prompt | Outcome:
        """The prompt, if it stands on the screen as it was shown and nobody else is answering it; or why not."""
        self.absorb()
        opened = self.opened
        if opened is None or opened.prompt_id != prompt_id:
            return Outcome("stale", "the tool no longer asks this")
        if not self._detector.still_shows(opened.prompt.digest):
            return Outcome("stale", "the prompt is no longer on the screen")
        if self._detector.begun(self._clock.now()):
            return Outcome("stale", "somebody is answering at the terminal")
        return self._detector.open_prompt or opened.prompt

    def why(self) -> list[str]:
        """Why something is asked now, or nothing: the last judgement."""
        return self._detector.explain()

    def took_first_key(self) -> None:
        self._detector.took_first_key()

    def has_left(self, digest: str) -> bool:
        """Is this prompt gone from the screen, as far as output was taken in?"""
        return self._detector.has_left(digest)

    def works(self) -> str:
        """Why the tool cannot be waiting for keys; "": it may be."""
        looked = self.look()
        return looked.why or "it works" if looked.state is ProbeState.BUSY and not self._detector.despite_busy else ""

    # What the typist does

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
        """Nothing is typed and this id is spent.  Should the tool ask all the same, it is raised under a new id."""
        with self.lock:
            self._typed.record(prompt_id, why)
            if self._open_id == prompt_id:
                self._open_id = ""
                self._detector.reconsider()
                self.wakeup_at = self._clock.now()
                self.wake()
        return why

    def renew(self, prompt_id: str) -> None:
        """The prompt that is still here is asked once more; the old id stays spent."""
        with self.lock:
            opened = self.opened
            if opened is not None and opened.prompt_id == prompt_id and self._typed.get(prompt_id) is None:
                self._announce(opened.prompt)

    # What others tell it

    def notice(self) -> None:
        """Something has changed.  Only a sleeping watchdog is woken; of output it knows by the ring."""
        if self._ring.on_output is not None:
            self.wake()

    def wake(self) -> None:
        self._ring.on_output = None
        self._wakeup.set()

    def _tell(self, event: Event | bytes) -> None:
        """The detector must know; it is handled in the watchdog's own time."""
        self._events.append(event)
        self.notice()

    def keys_typed(self, data: bytes) -> None:
        self._tell(data)

    def resized(self, rows: int, cols: int) -> None:
        self._tell(Resized(rows, cols))

    def exited(self) -> None:
        """The tool has ended: the last output is looked at, nothing is raised any more."""
        with self.lock:
            self.absorb()
            self.handle(ChildExited())

    def add_viewer(self, viewer: Viewer) -> None:
        self._viewers.append(viewer)

    # The task

    def run(self, beat: Beat) -> None:
        while not beat.retired:
            beat.rest()
            self.rest()
            if beat.retired:
                return
            beat.work()
            with self.lock:
                self.turn(self._clock.now())

    def rest(self) -> None:
        self._ring.on_output = self.wake  # before looking: output that comes in between wakes us
        due = self.due(self._clock.now())
        if self._pending_since is not None:
            self._ring.on_output = None  # it will look soon anyway: no need to be woken for every chunk
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
            return self._feed_at(now)  # nothing can be judged before the output that waits is fed
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

    def turn(self, now: float) -> None:
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
        """Feed everything that is known now.  Callable by any thread."""
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
        """A line that was typed since is one event, however many keys it took."""
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
        """How long ago a person typed here, or turned to this window; None: nobody has, or they turned away."""
        at = self._last_key_at
        return None if at is None else round(max(0.0, self._clock.now() - at), 2)

    def _hear(self, keys: bytes) -> None:
        """A secret that is typed at the keyboard is one as much as one that is typed by us."""
        opened = self.opened
        asked = opened is not None and opened.prompt.secret
        if asked or self._heard:
            self._heard = (self._heard + keys)[-_LONGEST_SECRET:]
            if self._heard.endswith(_LINE_ENDS):
                self.remember_secret(typed_text(self._heard))
                self._heard = b""

    def remember_secret(self, value: str) -> None:
        """Looked for from now on in all that leaves this session; kept nowhere but here."""
        self._detector.secrets = remembered(self._detector.secrets, value)

    @property
    def behind(self) -> bool:
        """Is there something that the detector has not seen yet?"""
        return self._output.pending or bool(self._ring.size or self._events)

    def handle(self, event: Event) -> None:
        """At once, by the caller's thread, which holds the lock."""
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
        """What the tool does now says nothing of a screen that is older: what it wrote last must be seen first."""
        answer = self.look()
        if self.behind and self._put_off < _MOST_PUT_OFF:
            self._put_off += 1
            self.wakeup_at = now + self._settings.quiet_ms / 1000
            return []
        self._put_off = 0
        return self._detector.handle(ProbeAnswered(answer), now)

    def look(self) -> ProbeAnswer:
        """Ask the operating system what the tool does."""
        now = self._clock.now()
        typed_at = self._input_writer.last_input_at
        age_s = None if typed_at is None else now - typed_at
        unread = age_s is not None and age_s < _UNREAD_S and self._unread() > 0  # first: it may be read meanwhile
        answer = self._probe.look(now - self._output.last_output_at, age_s)
        if unread and answer.state is not ProbeState.BUSY:
            # Woken by what was typed, but not yet run: on a busy machine it only seems to wait.
            return replace(answer, state=ProbeState.BUSY, why="it has not read its input yet")
        return answer

    def _raise(self, prompt: Prompt) -> None:
        self._typed.superseded(prompt.digest)
        self._announce(prompt)

    def _announce(self, prompt: Prompt) -> None:
        self._open_id, self._open_digest, self._open_idle = self._make_id(), prompt.digest, prompt.idle
        about = {"prompt": self.told(prompt), "typed_age_s": self.typed_age_s}
        self._to_hub({"m": "raise", "prompt_id": self._open_id, **about})

    def told(self, prompt: Prompt) -> dict[str, Any]:
        """What the hub, and through it everybody, is told of a prompt."""
        return encode_prompt(redact_prompt(prompt, self._detector.secrets))

    def _withdraw(self, digest: str, reason: str) -> None:
        if not self._open_id or self._open_digest != digest:
            return
        prompt_id, self._open_id = self._open_id, ""
        if not self._open_idle:  # behind an input box the next question may have been announced already
            self.when_gone()
        if not self._typed.left_the_screen(prompt_id):
            self._to_hub({"m": "withdraw", "prompt_id": prompt_id, "reason": reason})
