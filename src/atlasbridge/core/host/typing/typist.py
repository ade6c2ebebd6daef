"""Types an accepted answer: compares the screen, lets `Walk` type the exact keys, and records the outcome.

This is the only place with access to the terminal, so it ensures that an answer is typed exactly once.
`core.prompt.answer` decides which keys answer a prompt; the hub's gate has decided whether somebody is allowed to
answer it.
"""

from __future__ import annotations

from collections.abc import Callable

from atlasbridge.core.detection.events import StructuredEventReceived
from atlasbridge.core.host.terminal.input_writer import GateTimeout
from atlasbridge.core.host.typing.hook_connection import BY_HOOK, HookConnection
from atlasbridge.core.host.typing.steps import GONE, LOOK_S, Walk, typing_at
from atlasbridge.core.host.typing.typed import AdapterConnection, Outcome
from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import Step, When
from atlasbridge.core.prompt.model import Answer, Prompt
from atlasbridge.core.tty import LineFlags

_BUSY_LOOKS, _BUSY_PAUSE_S = 4, 0.03
_FRESH_LOOKS = 5
BY_ADAPTER = "adapter_prompt"  # a key of a prompt's constraints: the id under which its adapter knows it
INJECT_S = 10.0
_LINE_END = lazy(rb"[\r\n]")

Encode = Callable[[Prompt, Answer], tuple[Step, ...]]
Compared = tuple[Prompt, LineFlags, tuple[Step, ...]]


class _AtWork(Outcome):
    """Refused because the tool is busy, possibly only for a moment."""


class Typist:
    def __init__(
        self, walk: Walk, encode: Encode, hook: HookConnection | None = None, adapter: AdapterConnection | None = None
    ) -> None:
        self.walk = walk
        self._encode = encode
        self._hook = hook or HookConnection()
        self._adapter = adapter or AdapterConnection()
        self._watch, self._input_writer, self._pty = walk.watch, walk.input_writer, walk.pty
        self._settings = walk.settings
        self._by = self._nonce = ""

    def type(self, prompt_id: str, answer: Answer, by: str = "", nonce: str = "") -> Outcome:
        """Answers the open prompt. A repeated id returns the recorded outcome and types nothing.

        `by` and `nonce` identify the decider and the prompt for an adapter that types by itself.
        """
        known = self._watch.known(prompt_id)
        if known is not None:
            return known
        try:
            with self._input_writer.injection(self._settings.injection_timeout_seconds):
                self._by, self._nonce = by, nonce
                return self._type_once(prompt_id, answer)
        except GateTimeout:
            with self._watch.lock:
                late = Outcome("failed", "another answer was being typed for too long")
                return self._watch.known(prompt_id) or self._watch.refuse(prompt_id, late)

    def _type_once(self, prompt_id: str, answer: Answer) -> Outcome:
        for _ in range(_BUSY_LOOKS):
            outcome = self._type_now(prompt_id, answer)
            if not isinstance(outcome, _AtWork):
                return outcome
            self.walk.pause(_BUSY_PAUSE_S)  # an event loop can be in the middle of an iteration
        return self._watch.refuse(prompt_id, outcome)

    def _type_now(self, prompt_id: str, answer: Answer) -> Outcome:
        with self._watch.lock:
            known = self._watch.known(prompt_id)
            if known is not None:  # typed by another thread while this one waited for the gate
                return known
            compared = self._compare_freshly(prompt_id, answer)
            if isinstance(compared, _AtWork):
                return compared
            if isinstance(compared, Outcome):
                return self._watch.refuse(prompt_id, compared)
            prompt, flags, steps = compared
            if prompt.secret:
                # before it is typed, because its echo can be analysed at once
                self._watch.remember_secret(answer.value)
            typing = typing_at(prompt, flags, self._watch.screen)
            by_adapter = bool(prompt.constraints.get(BY_ADAPTER)) and self._adapter.injects
        if by_adapter:
            return self._inject(prompt_id, prompt, b"".join(step.keys for step in steps))
        with self._watch.lock:
            word = self._hook.word_for(prompt, answer)
            if word and self._hook.send(word, answer.reason):
                self._watch.begin_typing(prompt_id, prompt.digest, several=False, detail=BY_HOOK)
                return Outcome("typed", BY_HOOK)
            self._watch.begin_typing(prompt_id, prompt.digest, several=len(steps) > 1)
            reached = self._input_writer.send(steps[0].keys)
        outcome = Outcome("failed", "the typing broke off")
        try:
            outcome = self.walk.go(steps, typing) if reached else GONE
        finally:
            self._watch.end_typing(prompt_id, outcome)
        return outcome

    def _inject(self, prompt_id: str, prompt: Prompt, keys: bytes) -> Outcome:
        """Has the adapter type the reply. If it reports an error, the prompt is asked again."""
        outcome = self._adapter.inject(keys, self._by, self._nonce, INJECT_S)
        with self._watch.lock:
            if outcome.outcome == "typed":
                self._watch.begin_typing(prompt_id, prompt.digest, several=False)
                self._watch.handle(StructuredEventReceived("resolved", "", ""))
            else:
                self._watch.refuse(prompt_id, outcome)
                self._watch.handle(StructuredEventReceived("prompt", self._adapter.last_told, ""))
            for kind, text in self._adapter.release():
                self._watch.handle(StructuredEventReceived(kind, text, ""))
        return outcome

    def _compare_freshly(self, prompt_id: str, answer: Answer) -> Compared | Outcome:
        """Repeats the comparison while there is unread output. A tool that never stops writing is compared with its
        last known screen."""
        for _ in range(_FRESH_LOOKS):
            compared = self._compare(prompt_id, answer)
            if isinstance(compared, Outcome) or not self._watch.behind:
                return compared
            self.walk.pause(LOOK_S)
        return compared

    def _compare(self, prompt_id: str, answer: Answer) -> Compared | Outcome:
        """Returns what to type, or why nothing can be typed."""
        prompt = self._watch.answerable(prompt_id)
        if isinstance(prompt, Outcome):
            return prompt
        working = self._watch.works()
        if working:
            return _AtWork("stale", f"the tool is no longer waiting ({working})")
        steps = tuple(self._encode(prompt, answer))
        if not steps:
            return Outcome("failed", "this answer has no keys")
        return _fit(prompt, self._pty.flags(), steps)

    def type_keys(self, data: bytes) -> bool:
        """Types keys outside any prompt, unchanged. Returns False if the gate stayed closed."""
        try:
            with self._input_writer.injection(self._settings.injection_timeout_seconds):
                self._input_writer.send(data)
        except GateTimeout:
            return False
        self._watch.keys_typed(data)
        return True


def _fit(prompt: Prompt, flags: LineFlags, steps: tuple[Step, ...]) -> Compared | Outcome:
    """Adapts the steps to the terminal's current mode; its flags are newer than any screen."""
    if not flags.canonical:
        return prompt, flags, steps
    if not flags.echo and not prompt.secret:
        return Outcome("stale", "the terminal hides what is typed now")
    if _longest_line(steps) >= flags.line_limit:
        return Outcome("failed", f"a line of this terminal can have at most {flags.line_limit - 1} bytes")
    return prompt, flags, _joined(steps)


def _joined(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """In line mode, text and its Enter are sent in one write, so that nothing can come between them."""
    joined = [steps[0]]
    for step in steps[1:]:
        if joined[-1].until in (When.AT_ONCE, When.DRAINED):
            joined[-1] = Step(joined[-1].keys + step.keys, step.until)
        else:
            joined.append(step)
    return tuple(joined)


def _longest_line(steps: tuple[Step, ...]) -> int:
    """Length of the longest line in bytes, including its end."""
    return max(len(line) + 1 for line in _LINE_END.split(b"".join(step.keys for step in steps)))
