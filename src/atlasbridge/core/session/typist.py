"""Types an accepted answer: compares before, types the exact keys step by step, remembers what it did.

Exactly once is decided here, because only here is the terminal.  Which keys answer a prompt is decided in
`core.prompt.answer`; whether somebody may answer it was decided by the hub's gate.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

from atlasbridge.core.clock import Clock
from atlasbridge.core.prompt.events import ProbeState, ReplyTyped
from atlasbridge.core.prompt.highlight import is_highlighted
from atlasbridge.core.prompt.model import Answer, Prompt, Step
from atlasbridge.core.prompt.view import View
from atlasbridge.core.session.inlet import GateTimeout, Inlet
from atlasbridge.core.session.settings import SessionSettings
from atlasbridge.core.session.tty import Pty
from atlasbridge.core.session.typed import Outcome
from atlasbridge.core.session.watch import StallWatchdog

_LOOK_S = 0.003
_MOST_MOVES = 30
_HIDDEN_S = 0.6  # for a tool to draw what was typed, if it ever does
_TAKEN_S = 0.4  # for a tool to take a single key without Enter
_BUSY_LOOKS, _BUSY_PAUSE_S = 4, 0.03
_FRESH_LOOKS = 5
_LINE_END = re.compile(rb"[\r\n]")

Encode = Callable[[Prompt, Answer, object], tuple[Step, ...]]


class Typist:
    def __init__(
        self,
        watch: StallWatchdog,
        inlet: Inlet,
        pty: Pty,
        clock: Clock,
        settings: SessionSettings,
        encode: Encode,
        pause: Callable[[float], object] | None = None,
    ) -> None:
        self._watch = watch
        self._inlet = inlet
        self._pty = pty
        self._clock = clock
        self._settings = settings
        self._encode = encode
        self._pause = pause or threading.Event().wait

    def type(self, prompt_id: str, answer: Answer) -> Outcome:
        """Answer the open prompt.  The same id again returns what is remembered and types nothing."""
        with self._watch.lock:
            known = self._watch.typed.get(prompt_id)
        if known is not None:
            return known
        try:
            with self._inlet.injection(self._settings.injection_timeout_seconds):
                return self._type_once(prompt_id, answer)
        except GateTimeout:
            with self._watch.lock:
                late = Outcome("failed", "another answer was being typed for too long")
                return self._watch.typed.get(prompt_id) or self._refuse(prompt_id, late)

    def _type_once(self, prompt_id: str, answer: Answer) -> Outcome:
        for _ in range(_BUSY_LOOKS):
            if self._look() is not ProbeState.BUSY:
                break
            self._pause(_BUSY_PAUSE_S)  # an event loop may be caught in the middle of a turn
        with self._watch.lock:
            known = self._watch.typed.get(prompt_id)
            if known is not None:  # typed by another thread while this one waited for the gate
                return known
            steps = self._compare_freshly(prompt_id, answer)
            if isinstance(steps, Outcome):
                return self._refuse(prompt_id, steps)
            # From here on the answer counts as typed, whatever happens: it is never typed a second time.
            self._watch.typed.record(prompt_id, Outcome("typed"))
            digest = self._digest()
            before = self._watch.screen.version
            self._watch.handle(ReplyTyped(digest))
            self._watch.typing = len(steps) > 1
            self._inlet.send(steps[0].keys)
            self._watch.typed.watch_effect(prompt_id, digest, self._clock.now() + self._settings.effect_timeout_s)
        try:
            outcome = self._walk(steps, before, digest)
        finally:
            self._watch.typing = False
        with self._watch.lock:
            if outcome.outcome == "failed":
                self._watch.typed.record(prompt_id, outcome)
            self._watch.typed.watch_until(prompt_id, self._clock.now() + self._settings.effect_timeout_s)
        self._watch.wake()
        return outcome

    def _look(self) -> ProbeState:
        with self._watch.lock:
            self._watch.absorb()
            return self._watch.look().state

    def _digest(self) -> str:
        return "" if self._watch.open is None else self._watch.open[1].digest

    def _refuse(self, prompt_id: str, why: Outcome) -> Outcome:
        """Nothing is typed and this id is spent.  Should the tool ask all the same, it is raised under a new id."""
        self._watch.typed.record(prompt_id, why)
        self._watch.let_go(prompt_id)
        return why

    def _compare_freshly(self, prompt_id: str, answer: Answer) -> tuple[Step, ...] | Outcome:
        """Again while there is something to be seen that was not compared; a tool that never stops to write is taken
        as it was last seen."""
        for _ in range(_FRESH_LOOKS):
            steps = self._compare(prompt_id, answer)
            if isinstance(steps, Outcome) or not self._watch.behind:
                return steps
            self._pause(_LOOK_S)
        return steps

    def _compare(self, prompt_id: str, answer: Answer) -> tuple[Step, ...] | Outcome:
        """The steps to type, or why nothing may be typed."""
        watch = self._watch
        watch.absorb()
        if watch.open is None or watch.open[0] != prompt_id:
            return Outcome("stale", "the tool no longer asks this")
        if not watch.detector.still_shows(watch.open[1].digest):
            return Outcome("stale", "the prompt is no longer on the screen")
        if watch.detector.begun(self._clock.now()):
            return Outcome("stale", "somebody is answering at the terminal")
        prompt = watch.detector.open_prompt or watch.open[1]  # with keys that fit the highlight as it is now
        looked = watch.look()
        if looked.state is ProbeState.BUSY and not watch.detector.despite_busy:
            return Outcome("stale", f"the tool does not wait any more ({looked.why})")
        steps = tuple(self._encode(prompt, answer, watch.screen))
        if not steps:
            return Outcome("failed", "this answer has no keys")
        flags = self._pty.flags()
        if flags.canonical and _longest_line(steps) >= flags.line_limit:
            return Outcome("failed", f"a line of this terminal holds at most {flags.line_limit - 1} bytes")
        return steps

    def _leaves(self, digest: str) -> bool:
        """Whether the tool takes the key by itself: then what was to follow would answer the next prompt."""
        deadline = self._clock.now() + _TAKEN_S
        while self._clock.now() < deadline:
            self._pause(_LOOK_S)
            with self._watch.lock:
                self._watch.absorb()
                if self._watch.detector.has_left(digest):
                    return True
        return False

    def _walk(self, steps: tuple[Step, ...], before: int, digest: str) -> Outcome:
        for number, step in enumerate(steps):
            if number:
                before = self._watch.screen.version
                self._inlet.send(step.keys)
            if step.until == "left?":
                if self._leaves(digest):
                    return Outcome("typed")
                continue
            done = self._reach(step) if step.until.startswith("reach:") else self._await(step.until, before)
            if not done:
                if number == len(steps) - 1:
                    return Outcome("typed", f"typed, but the screen did not come to {step.until!r}")
                return Outcome("failed", f"stopped after key {number + 1} of {len(steps)}: no {step.until!r} in time")
        return Outcome("typed")

    def _reach(self, step: Step) -> bool:
        """The same key until TEXT is highlighted: a list that scrolls does not tell how far it is."""
        for _ in range(_MOST_MOVES):
            if not self._await("settled", 0):
                return False
            if self._shows(step.until.removeprefix("reach:")):
                return True
            self._inlet.send(step.keys)
        return False

    def _await(self, until: str, before: int) -> bool:
        """Wait for a step's condition; False when its time is over."""
        if not until:
            return True
        deadline = self._clock.now() + self._settings.step_timeout_s
        condition = self._condition(until, before)
        while not condition():
            if self._clock.now() >= deadline:
                return False
            self._pause(_LOOK_S)
            with self._watch.lock:
                self._watch.absorb()
        return True

    def _condition(self, until: str, before: int) -> Callable[[], bool]:
        if until == "drained":
            return self._drained()
        if until == "settled":
            return self._settled()
        if until == "changed":
            return lambda: bool(self._watch.screen.version != before)
        if until == "redrawn":
            return self._redrawn(before)
        if until.startswith("stands:"):
            return lambda: any(until[len("stands:") :] in line for line in self._watch.screen.lines())
        if until.startswith("shows:"):
            return lambda: self._shows(until[len("shows:") :])
        raise ValueError(f"a step cannot wait for {until!r}")

    def _redrawn(self, before: int) -> Callable[[], bool]:
        """The tool has drawn what was typed; one that hides it has read it, and draws nothing for a while."""
        settled, drained = self._settled(), self._drained()
        hidden_at = self._clock.now() + _HIDDEN_S

        def look() -> bool:
            if self._watch.screen.version != before:
                return settled()
            return self._clock.now() >= hidden_at and drained()

        return look

    def _drained(self) -> Callable[[], bool]:
        """The tool has read the keys; where the system cannot tell, a short while has passed."""
        blind_until = self._clock.now() + self._settings.inject_settle_ms / 1000

        def look() -> bool:
            if self._inlet.waiting:
                return False
            unread = self._pty.unread()
            return unread == 0 or (unread < 0 and self._clock.now() >= blind_until)

        return look

    def _settled(self) -> Callable[[], bool]:
        """The screen has not changed for a while."""
        seen = -1
        since = self._clock.now()

        def look() -> bool:
            nonlocal seen, since
            version = self._watch.screen.version
            if version != seen:
                seen, since = version, self._clock.now()
            return self._clock.now() - since >= self._settings.inject_settle_ms / 1000

        return look

    def _shows(self, text: str) -> bool:
        """TEXT is the choice that is highlighted now."""
        with self._watch.lock:
            return is_highlighted(View.of(self._watch.screen), text)

    def type_keys(self, data: bytes) -> bool:
        """Keys outside any prompt, as they are.  False: the gate stayed shut."""
        try:
            with self._inlet.injection(self._settings.injection_timeout_seconds):
                self._inlet.send(data)
        except GateTimeout:
            return False
        self._watch.keys_typed(data)
        return True


def _longest_line(steps: tuple[Step, ...]) -> int:
    """Bytes of the longest line, its end included."""
    return max(len(line) + 1 for line in _LINE_END.split(b"".join(step.keys for step in steps)))
