"""Types an accepted answer: compares the screen, lets `Walk` type the exact keys, and records the outcome.

This is the only place with access to the terminal, so it ensures that an answer is typed exactly once.
`core.prompt.answer` decides which keys answer a prompt; the hub's gate has decided whether somebody is allowed to
answer it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Literal, Protocol, assert_never

from atlasbridge.core.clock import Clock
from atlasbridge.core.detection.events import StructuredEventReceived
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.host.relay import GateTimeout, InputWriter
from atlasbridge.core.host.typed import AdapterConnection, Outcome
from atlasbridge.core.host.watchdog import StallWatchdog
from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import ENTER, ESC, Only, Reach, Shows, Stands, Step, When, encode_until
from atlasbridge.core.prompt.model import (
    FIRST_KEY,
    Answer,
    AnswerKind,
    Choice,
    Prompt,
    Subject,
    SubjectKind,
    SubjectSource,
    digest_text,
    parse_subject,
)
from atlasbridge.core.recognition.highlight import is_highlighted
from atlasbridge.core.screen.view import View
from atlasbridge.core.session.settings import SessionSettings
from atlasbridge.core.tty import LineFlags, Pty
from atlasbridge.core.values import frozen

BY_HOOK = "hook"  # the detail of an answer that a hook has taken
ALLOW, DENY = "allow", "deny"
_SOURCES = (SubjectSource.HOOK, SubjectSource.EVENT)
_REASON = 500  # maximum length of a reason
_KINDS = (SubjectKind.COMMAND, SubjectKind.EDIT, SubjectKind.FETCH, SubjectKind.TOOL)


class WaitingHook(Protocol):
    def say(self, message: dict[str, Any]) -> None: ...
    def tell(self, message: dict[str, Any]) -> bool: ...


class HookConnection:
    """A hook that has announced a dialog and waits for the decision: an answer that it certainly understands (allow
    once, or deny) is passed to it instead of being typed. If the hook is gone, the answer is typed.

    At most one hook, because a tool asks one thing at a time. Used by the host's main thread and by the typist's
    thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._caller: WaitingHook | None = None
        self._about = ""  # the digest of its request

    def offer(self, caller: WaitingHook, message: dict[str, Any]) -> None:
        """A hook has connected. One that does not wait for an answer only replaces the previous one."""
        subject = parse_subject(message.get("subject"))
        waits = message.get("answers") is True and subject is not None and subject.complete
        with self._lock:
            self._close()
            if waits and subject is not None:
                self._caller, self._about = caller, _digest(subject)

    def leave(self, caller: WaitingHook) -> None:
        with self._lock:
            if self._caller is caller:
                self._caller = None

    def over(self) -> None:
        """The dialog is gone: the waiting hook is released."""
        with self._lock:
            self._close()

    def decision_for(self, prompt: Prompt, answer: Answer) -> str:
        """The decision for the hook; "" if this answer or this prompt must be typed."""
        subject = prompt.subject
        if self._caller is None or subject is None or subject.source not in _SOURCES:
            return ""
        if subject.kind not in _KINDS or _digest(subject) != self._about or answer.kind is not AnswerKind.CHOICE:
            return ""
        chosen = [choice for choice in prompt.choices if choice.value == answer.value]
        once = [choice for choice in prompt.choices if not (choice.refuses or choice.always)]
        if len(chosen) != 1:
            return ""
        return DENY if _only_refuses(chosen[0]) else ALLOW if once == chosen else ""

    def send(self, word: str, reason: str = "") -> bool:
        """Returns False if the hook is gone and nothing was sent. `reason`: why it is denied, for the model."""
        why = {"reason": escape_controls(reason)[:_REASON]} if reason and word == DENY else {}
        with self._lock:
            caller, self._caller = self._caller, None
            return caller is not None and caller.tell({"m": "decide", "behavior": word, **why})

    def _close(self) -> None:
        if self._caller is not None:
            self._caller.say({"m": "over"})
            self._caller = None


def _digest(subject: Subject) -> str:
    """Includes kind and target: the same text for another file or tool is a different request."""
    return digest_text("\0".join((subject.kind.value, subject.target, subject.text)))


def _only_refuses(choice: Choice) -> bool:
    return choice.refuses and not choice.always


_PATIENCE_S = 0.8  # a screen that is not stable by then contains something that moves by itself
_MANY_CHANGES = 4  # a row must have changed this often by then
_DOTS = dict.fromkeys(range(0x2800, 0x2900))


class Rest:
    """Measures how long a screen has been stable after a key. Rows that keep changing by themselves, such as a spinner
    beside a dialog, are ignored after a while; Braille dots, of which animations consist, always."""

    def __init__(self, now: float) -> None:
        self._began = self._since = now
        self._version = -1
        self._rows: list[str] = []
        self._changes: dict[int, int] = {}

    def stable_s(self, screen: Any, now: float) -> float:
        """Seconds since the last change that counts."""
        if screen.version != self._version:
            self._version = screen.version
            if self._notice(list(screen.lines()), now):
                self._since = now
        return now - self._since

    def _notice(self, rows: list[str], now: float) -> bool:
        """Whether something has changed that does not move by itself. At first, a cursor or a colour also counts; later
        not, because some cursors blink all the time."""
        before, self._rows = self._rows, rows
        if len(before) != len(rows):
            return True
        drawn = [at for at, row in enumerate(rows) if row != before[at]]
        changed = [at for at in drawn if _words(rows[at]) != _words(before[at])]
        if drawn and not changed:
            return False
        for at in changed:
            self._changes[at] = self._changes.get(at, 0) + 1
        late = now - self._began >= _PATIENCE_S
        return not late or any(self._changes[at] < _MANY_CHANGES for at in changed)


def _words(row: str) -> str:
    return "".join(row.translate(_DOTS).split())


LOOK_S = 0.003
_MOST_MOVES = 60
_HIDDEN_S = 0.6  # for a tool to draw what was typed, if it ever does
_TAKEN_S = 0.4  # for a waiting tool to take a single key without Enter; a busy tool gets the full timeout
_RESTS_S = 0.5  # after a paste: some programs treat an earlier Enter as a part of it
_ARRIVES_S = 1.0  # for a screen that appears only in some cases
_HELD_S = 0.08  # how long a new highlight must last: some programs still act on the previous one until they are stable
_SWITCH_S = 0.2  # for a tool that leaves raw mode after every key to enter it again
_TAIL = 6  # characters by which a text that was just typed is recognised
# Conditions that would also be true for another prompt.
_UNSEEN = (When.AT_ONCE, When.DRAINED, When.REDRAWN, When.SETTLED, When.MAY_LEAVE)
# Conditions that the screen alone can fulfil; the others decide what is typed next.
Awaited = Literal[When.AT_ONCE, When.DRAINED, When.SETTLED, When.RESTED, When.CHANGED, When.REDRAWN] | Stands | Shows
GONE = Outcome("failed", "the terminal is gone")


@frozen
class Typing:
    """The state that was compared just before the first key."""

    prompt: Prompt
    flags: LineFlags
    version: int  # of the screen
    rows: tuple[str, ...]
    row: int  # of the cursor
    line: str  # left of the cursor


class Walk:
    """Types the keys of one answer step by step, each when the screen shows the effect of the one before. It stops as
    soon as the next key would no longer go to the answered prompt."""

    def __init__(
        self,
        watch: StallWatchdog,
        input_writer: InputWriter,
        pty: Pty,
        clock: Clock,
        settings: SessionSettings,
        pause: Callable[[float], object] | None = None,
    ) -> None:
        self.watch = watch
        self.input_writer = input_writer
        self.pty = pty
        self.clock = clock
        self.settings = settings
        self.pause = pause or threading.Event().wait
        self._among: tuple[str, ...] = ()  # the choices of the prompt that is being answered

    def go(self, steps: tuple[Step, ...], typing: Typing) -> Outcome:
        """Runs the steps. The keys of the first step are already typed."""
        before = typing.version
        self._among = tuple(choice.label for choice in typing.prompt.choices)
        for number, step in enumerate(steps, 1):
            if number > 1:
                why = self._why_another_prompt(steps[: number - 1], typing)
                if why and _decides(steps[number - 2].keys):
                    return Outcome("typed", FIRST_KEY if _has_text(steps[number - 1 :]) else "")
                if why:
                    return Outcome("failed", f"stopped after key {number - 1} of {len(steps)}: {why}")
                before = self.watch.screen.version
                if not self.input_writer.send(step.keys):
                    return GONE
            ended = self._await_step(step, before, typing, number, steps)
            if ended is not None:
                return ended
        return Outcome("typed")

    def _await_step(
        self, step: Step, before: int, typing: Typing, number: int, steps: tuple[Step, ...]
    ) -> Outcome | None:
        """Waits for the condition of the step. A returned outcome ends the walk."""
        count = len(steps)
        match step.until:
            case When.MAY_LEAVE:
                return self._leaves(typing, number, steps)
            case Only(text):
                return (
                    None
                    if self._text_appeared(text, before, typing) and self._closed(step, typing)
                    else Outcome("typed")
                )
            case Reach(text):
                reached = self._reach(step.keys, text, before)
            case until:
                reached = self._await(until, before)
        if reached:
            return None
        wanted = encode_until(step.until)
        if number == count:
            return Outcome("typed", f"typed, but the screen did not come to {wanted!r}")
        return Outcome("failed", f"stopped after key {number} of {count}: no {wanted!r} in time")

    # Is the next key still for this prompt?

    def _why_another_prompt(self, typed: tuple[Step, ...], typing: Typing) -> str:
        """Why the next key would not reach the same prompt as the first; "" if it would."""
        if not self._same_reader(typing):
            return "another program reads the terminal now"
        said = typing.prompt.constraints
        boxed = said.get("idle") and not said.get("commands")  # the input box of an AI CLI
        guarded = typed[-1].until in _UNSEEN and not (boxed or typing.prompt.text_steps)
        here = not guarded or self._wait_for(lambda: not self._gone(typed, typing), _HELD_S)
        return "" if here else "the tool moved on"

    def _gone(self, typed: tuple[Step, ...], typing: Typing) -> bool:
        """Whether the prompt is gone, perhaps only for the moment in which the tool draws it again."""
        with self.watch.lock:
            self.watch.absorb()
            drawn = self._ends_at_cursor(typed[-1].keys) or self._only_echoed(typed, typing)
            return self.watch.has_left(typing.prompt.digest) and not (drawn and self.watch.opened is not None)

    def _same_reader(self, typing: Typing) -> bool:
        """Whether the terminal's mode is still the same; many programs change it for a moment after every key."""
        deadline = self.clock.now() + _SWITCH_S
        while not is_same_mode(self.pty.flags(), typing.flags):
            if self.clock.now() >= deadline:
                return False
            self.pause(LOOK_S)
        return True

    def _ends_at_cursor(self, keys: bytes) -> bool:
        """Whether the typed text ends at the cursor: then it was drawn, however the line wrapped or scrolled."""
        tail = _dense(keys.decode("utf-8", "replace"))[-_TAIL:]
        return bool(tail) and self._left_of_cursor().endswith(tail)

    def _left_of_cursor(self) -> str:
        screen = self.watch.screen
        row, col = screen.cursor
        return _dense((screen.line(row - 1) if row else "") + screen.line(row)[:col])

    def _only_echoed(self, typed: tuple[Step, ...], typing: Typing) -> bool:
        """Whether the tool has only drawn the typed text: at the cursor, behind the text that was there before, or in
        a field whose row is the only one that changed. Such a prompt has not ended, however it looks now."""
        text = _dense(b"".join(step.keys for step in typed if _decides(step.keys)).decode("utf-8", "replace"))
        if not text:
            return False
        if typing.line and self._left_of_cursor().endswith(typing.line + text):
            return True
        rows = _dense_rows(self.watch.screen)
        changed = [at for at, (old, now) in enumerate(zip(typing.rows, rows, strict=False)) if old != now]
        if len(changed) != 1:
            return False
        old, now = typing.rows[changed[0]], rows[changed[0]]
        hidden = typing.prompt.secret and changed[0] == typing.row  # as signs in its place, or in that of a placeholder
        return hidden or now.replace(text, "", 1) == old

    def _leaves(self, typing: Typing, number: int, steps: tuple[Step, ...]) -> Outcome | None:
        """Checks whether the tool takes the key by itself: then the following keys would answer the next prompt. If
        more of a word follows, a line that shows its first letter is an input line."""
        drained = self._drained()
        rest = _has_text(steps[number:])
        typed = steps[:number]
        shown = self._lasting(lambda: rest and self._ends_at_cursor(steps[number - 1].keys))
        gone = self._lasting(lambda: self.watch.has_left(typing.prompt.digest) and not self._only_echoed(typed, typing))
        give_up_at = self.clock.now() + self.settings.step_timeout_s
        wait_until: float | None = None  # starts when the tool has read the key
        while self.clock.now() < give_up_at:
            self.pause(LOOK_S)
            with self.watch.lock:
                self.watch.absorb()
                if gone():  # not only for the moment in which the tool draws it again
                    self.watch.took_first_key()
                    return Outcome("typed", FIRST_KEY if rest else "")
                if shown():
                    return None
            if wait_until is None and drained():
                wait_until = self.clock.now() + _TAKEN_S
            if wait_until is not None and self.clock.now() >= wait_until:
                if not self._same_reader(typing):
                    return Outcome("typed", FIRST_KEY if rest else "")  # it reads no more keys, so this one was taken
                if not self.watch.works():
                    return None
        if wait_until is None:
            return Outcome("failed", f"stopped after key {number} of {len(steps)}: the tool does not read it")
        return Outcome("typed", "the tool works on it; no Enter was added")

    # Conditions

    def _text_appeared(self, text: str, before: int, typing: Typing) -> bool:
        """Whether the text is on the screen that the key has led to; the current screen can still be from the previous
        key. If the question itself contained the text (a command can), one more occurrence is needed."""
        self._await(When.REDRAWN, before)
        had = typing.prompt.screen.count(text)
        return self._wait_for(lambda: sum(line.count(text) for line in self.watch.screen.lines()) > had, _ARRIVES_S)

    def _closed(self, step: Step, typing: Typing) -> bool:
        """Whether Esc has closed the dialog: while it is open, the text that follows would be keys of its menu."""
        with self.watch.lock:
            self.watch.absorb()
            return step.keys != ESC or self.watch.has_left(typing.prompt.digest)

    def _reach(self, keys: bytes, text: str, before: int) -> bool:
        """Repeats the key until the text is highlighted, because the length of a scrolling list is unknown. The effect
        of each key is awaited, because an extra key would move past the text."""
        for _ in range(_MOST_MOVES):
            if not (self._await(When.CHANGED, before) and self._await(When.SETTLED, 0)):
                return False
            if self._shows(text) and self._wait_for(self._lasting(lambda: self._shows(text)), 2 * _HELD_S):
                return True
            before = self.watch.screen.version
            if not self.input_writer.send(keys):
                return False
        return False

    def _await(self, until: Awaited, before: int) -> bool:
        return self._wait_for(self._condition(until, before), self.settings.step_timeout_s)

    def _wait_for(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        deadline = self.clock.now() + timeout_s
        while not condition():
            if self.clock.now() >= deadline:
                return False
            self.pause(LOOK_S)
            with self.watch.lock:
                self.watch.absorb()
        return True

    def _condition(self, until: Awaited, before: int) -> Callable[[], bool]:
        match until:
            case When.AT_ONCE:
                return lambda: True
            case When.DRAINED:
                return self._drained()
            case When.SETTLED:
                return self._settled()
            case When.RESTED:
                return self._settled(_RESTS_S)
            case When.CHANGED:
                return lambda: bool(self.watch.screen.version != before)
            case When.REDRAWN:
                return self._redrawn(before)
            case Stands(text):
                wide = self.watch.screen.cols + 1  # spaces after the end of a line count as well
                return lambda: any(text in line.ljust(wide) for line in self.watch.screen.lines())
            case Shows(text):
                return self._lasting(lambda: self._shows(text))
        assert_never(until)

    def _lasting(self, condition: Callable[[], bool]) -> Callable[[], bool]:
        """Returns a condition that is true once `condition` has been true for a moment without interruption."""
        since: float | None = None

        def look() -> bool:
            nonlocal since
            now = self.clock.now()
            since = (now if since is None else since) if condition() else None
            return since is not None and now - since >= _HELD_S

        return look

    def _redrawn(self, before: int) -> Callable[[], bool]:
        """The tool has drawn the typed text. A tool that hides it has read it and draws nothing for a while."""
        settled, drained = self._settled(), self._drained()
        hidden_at = self.clock.now() + _HIDDEN_S

        def look() -> bool:
            if self.watch.screen.version != before:
                return settled() and drained()  # changes before the tool has read it have another cause
            return self.clock.now() >= hidden_at and drained()

        return look

    def _drained(self) -> Callable[[], bool]:
        """The tool has read the keys. If the system cannot tell, a short time has passed."""
        blind_until = self.clock.now() + self.settings.inject_settle_ms / 1000

        def look() -> bool:
            if self.input_writer.waiting:
                return False
            unread = self.pty.unread()
            return unread == 0 or (unread < 0 and self.clock.now() >= blind_until)

        return look

    def _settled(self, rest_s: float = 0.0) -> Callable[[], bool]:
        rest_s = max(rest_s, self.settings.inject_settle_ms / 1000)
        rest = Rest(self.clock.now())
        return lambda: rest.stable_s(self.watch.screen, self.clock.now()) >= rest_s

    def _shows(self, text: str) -> bool:
        with self.watch.lock:
            return is_highlighted(View.of(self.watch.screen), text, self._among)


def typing_at(prompt: Prompt, flags: LineFlags, screen: Any) -> Typing:
    row, col = screen.cursor
    return Typing(prompt, flags, screen.version, _dense_rows(screen), row, _dense(screen.line(row)[:col]))


def _dense(text: str) -> str:
    return "".join(text.split())


def _dense_rows(screen: Any) -> tuple[str, ...]:
    return tuple(_dense(line) for line in screen.lines())


def _has_text(steps: tuple[Step, ...]) -> bool:
    return any(step.keys != ENTER for step in steps)


def _decides(keys: bytes) -> bool:
    """Whether the key can decide, like a letter or Enter; a key that clears a line or moves a highlight cannot."""
    return (keys[:1] >= b" " and keys[:1] != b"\x7f") or keys == ENTER


def is_same_mode(one: LineFlags, other: LineFlags) -> bool:
    return (one.canonical, one.echo) == (other.canonical, other.echo)


_BUSY_LOOKS, _BUSY_PAUSE_S = 4, 0.03
_FRESH_READS, _READS_S = 5, 0.5
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
            word = self._hook.decision_for(prompt, answer)
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
                self._watch.handle(StructuredEventReceived("prompt", self._adapter.last_report, ""))
            for kind, text in self._adapter.release():
                self._watch.handle(StructuredEventReceived(kind, text, ""))
        return outcome

    def _compare_freshly(self, prompt_id: str, answer: Answer) -> Compared | Outcome:
        """Repeats the comparison while there is unread output. A tool that never stops writing is compared with its
        last known screen; on a crowded machine the reader is waited for."""
        reads, read_at, until = 0, -1.0, self.walk.clock.now() + _READS_S
        while reads < _FRESH_READS:
            compared = self._compare(prompt_id, answer)
            if isinstance(compared, Outcome) or not self._watch.behind:
                return compared
            if self.walk.clock.now() > until:
                return _AtWork("stale", "what the tool has just written was not read in time")
            reads, read_at = reads + (self._watch.read_at != read_at), self._watch.read_at
            self.walk.pause(LOOK_S)
        return compared

    def _compare(self, prompt_id: str, answer: Answer) -> Compared | Outcome:
        """Returns what to type, or why nothing can be typed."""
        prompt = self._watch.answerable(prompt_id, answer.kind not in (AnswerKind.ENTER, AnswerKind.KEYS))
        if isinstance(prompt, Outcome):
            return prompt
        working = self._watch.works()
        if working:
            return _AtWork("stale", f"the tool is no longer waiting ({working})")
        steps = tuple(self._encode(prompt, answer))
        if not steps:
            return Outcome("failed", "this answer has no keys")
        return _fit(prompt, self._pty.flags(), steps, self._watch.line_begun)

    def type_keys(self, data: bytes) -> bool:
        """Types keys outside any prompt, unchanged. Returns False if the gate stayed closed."""
        try:
            with self._input_writer.injection(self._settings.injection_timeout_seconds):
                self._input_writer.send(data)
        except GateTimeout:
            return False
        self._watch.keys_typed(data)
        return True


def _fit(prompt: Prompt, flags: LineFlags, steps: tuple[Step, ...], begun: bool) -> Compared | Outcome:
    """Adapts the steps to the terminal's current mode; its flags are newer than any screen. A line that a person has
    begun and left is erased first, because the terminal would add the answer to it."""
    if not flags.canonical:
        return prompt, flags, steps
    if not flags.echo and not prompt.secret:
        return Outcome("stale", "the terminal hides what is typed now")
    if _longest_line(steps) >= flags.line_limit:
        return Outcome("failed", f"a line of this terminal can have at most {flags.line_limit - 1} bytes")
    if begun and not flags.kill:
        return Outcome("stale", "somebody has typed a part of a line at the terminal")
    first = Step((flags.kill if begun else b"") + steps[0].keys, steps[0].until)
    return prompt, flags, _joined((first, *steps[1:]))


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
    return max(len(line) + 1 for line in _LINE_END.split(b"".join(step.keys for step in steps)))
