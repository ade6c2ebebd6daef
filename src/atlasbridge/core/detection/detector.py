"""Is a person awaited?  Events in, commands out; the clock is an argument, the screen its eye.

Judges the settled screen, never a chunk.  Which text asks what is left to `recognise`, which signals suffice to
`signals`, how to answer to `answer`.  The host executes the commands and tells `ReplyTyped` just before it types.
"""

from __future__ import annotations

import re
from collections import deque

from atlasbridge.core.detection.commands import Command, RaisePrompt, RequestProbe, RequestWakeup, WithdrawPrompt
from atlasbridge.core.detection.events import (
    ChildExited,
    Event,
    KeysTyped,
    OutputReceived,
    ProbeAnswer,
    ProbeAnswered,
    ProbeState,
    ReplyTyped,
    Resized,
    StructuredEventReceived,
    WakeupDue,
)
from atlasbridge.core.detection.eye import Eye
from atlasbridge.core.detection.picture import digest_of, prompt_of, rewrapped
from atlasbridge.core.detection.signals import OVERRIDES_BUSY, Moment, Patience, decide_raise, gather, reads_unseen
from atlasbridge.core.detection.structured import ToolSays
from atlasbridge.core.prompt.model import Prompt
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.recognition.finding import Facts, Finding
from atlasbridge.core.recognition.recognise import stated
from atlasbridge.core.screen.reports import keys_of
from atlasbridge.core.screen.view import View, begins_with
from atlasbridge.core.values import field, frozen, mutable, replace

_LATER = 0.1  # the longer nothing happens, the later it may be noticed: by a tenth of the silence
RAW_LIMIT = 8192
_REACTS_S = 0.5
REDRAW_S = 0.3  # a tool that draws its whole screen anew may show nothing for a moment


@frozen
class DetectorSettings:
    patience: Patience = field(default_factory=Patience)
    first_look_s: float = 0.02
    look_every_s: float = 0.25
    slow_look_s: float = 0.5  # at most, after some seconds of nothing
    watch_s: float = 1.0  # while a prompt is open
    effect_s: float = 3.0  # an answered prompt that is still there after this is asked again
    hook_s: float = 0.0  # how long a dialog may wait for the hook of a tool that was started with one
    folder: str = ""  # where the tool works, for dialogs that do not say it
    secrets: tuple[str, ...] = ()  # values that must never leave, such as the child's secret environment


@mutable
class _Answered:
    """The prompt that was just answered: only this one is not raised again, and only until something moved."""

    at: float
    key: str  # the picture it was answered on


class Detector:
    def __init__(self, dialect: Dialect, rows: int, cols: int, settings: DetectorSettings | None = None) -> None:
        self.dialect = dialect
        self.settings = settings or DetectorSettings()
        self.secrets = self.settings.secrets  # and what is typed as one later
        self.eye = Eye(dialect, rows, cols, self.settings.patience.threshold)
        self.screen = self.eye.screen
        self.open_prompt: Prompt | None = None
        self.despite_busy = False  # the open prompt was raised although no reader could be seen
        self.tool = ToolSays()
        self._open_place = 0
        self._open_core = self._open_excerpt = self._open_question = self._open_wrap = ""
        self._resized = False  # since the open prompt was raised: the tool may have wrapped it anew
        self._lines_since = 0  # written since it was raised
        self._sent = False  # Enter was typed since the prompt was raised, by a person or by us
        self._open_filled = ""
        self._answered: _Answered | None = None
        self._raw = bytearray()
        self._unsure = False  # the open prompt may be gone; the next look must come soon
        self._votes: deque[ProbeState] = deque(maxlen=3)
        self._dirty_since: float | None = None
        self._typed_at: float | None = None  # last key of a person that was no Enter
        self._keys_at = float("-inf")  # last key of a person
        self._keys_since_raise = False
        self._attended = ""  # the line a person at the terminal has just sent; "": the last keys were ours
        self._busy_looks = 0
        self._exited = False
        self._facts = Facts()
        self._open_facts = Facts()
        self._why: list[str] = ["nothing has been judged yet"]

    def handle(self, event: Event, now: float) -> list[Command]:
        self.eye.open(now)
        match event:
            case OutputReceived(data, lost):
                return self._output(data, lost, now)
            case WakeupDue():
                return [] if self._exited else [RequestProbe()]
            case ProbeAnswered(answer):
                return [] if self._exited else self._judge(answer, now)
            case KeysTyped(data):
                return self._keys(data, now)
            case ReplyTyped(digest):
                return self._reply(digest, now)
            case StructuredEventReceived():
                self.tool.hear(event, now)
                return self._look_soon(now)
            case Resized(rows, cols):
                self.screen.resize(rows, cols)
                self._resized = True
                return self._look_soon(now)
            case ChildExited():
                self._exited = True
                return self._withdraw("exited")

    def still_shows(self, digest: str) -> bool:
        """Is this very prompt on the screen now, untouched?  Also brings its keys up to date with the highlight."""
        if self.open_prompt is None or self.open_prompt.digest != digest or self._exited:
            return False
        found = self._recognise_open()
        if found is None or not self._has_digest(found, digest) or found.filled != self._open_filled:
            return False
        if self._asks_of_another(found):
            return False
        if found.choices:
            self.open_prompt = replace(self.open_prompt, choices=found.choices, text_steps=found.text_steps)
        return True

    def _asks_of_another(self, found: Finding) -> bool:
        """The same words, but about something else than the person was shown: what stands above them has changed, the
        question stands there once more, or a whole screen went by.  The words of a dialog say what it is about."""
        if found.structural or found.constraints.get("idle"):
            return False
        if found.question != self._open_question and not (self._resized and rewrapped(found) == self._open_wrap):
            return True
        once_more = self.eye.place(found) != self._open_place and self.eye.stands_at(self._open_place, found.core)
        return once_more or self._lines_since > self.screen.rows

    def _has_digest(self, found: Finding, digest: str) -> bool:
        """The same to the last blank; after the window was resized, also wrapped in another way."""
        return digest_of(found) == digest or (self._resized and rewrapped(found) == self._open_wrap)

    def has_left(self, digest: str) -> bool:
        """Is it gone?  Unlike `still_shows`, half an answer behind it does not make it gone."""
        if self.open_prompt is None or self.open_prompt.digest != digest or self._exited:
            return True
        found = self._recognise_open()
        return found is None or not self._is_same(found, self.open_prompt)

    def _recognise_open(self) -> Finding | None:
        """As it looks to the program that reads now, or else to the one that read when it was raised."""
        found = self.eye.recognise(self._facts)
        if found is not None and self.open_prompt is not None and self._is_same(found, self.open_prompt):
            return found
        return self.eye.recognise(self._open_facts)

    def begun(self, now: float) -> bool:
        """Has a person typed keys that the tool has not answered by a single byte?  An unseen line that was begun stays
        begun; a program that reads single keys has let them fall after a moment."""
        if self._keys_at <= self.eye.last_output:
            return False
        return bool(self._facts.canonical) or now - self._keys_at < _REACTS_S

    def reconsider(self) -> None:
        """Nobody may answer the open prompt any more: judge the screen as if it had just come up."""
        self.open_prompt, self._answered, self.despite_busy = None, None, False

    def explain(self) -> list[str]:
        """Why the last judgement was what it was."""
        return list(self._why)

    def _output(self, data: bytes, lost: int, now: float) -> list[Command]:
        self.eye.feed(data, now)
        self._lines_since += data.count(b"\n")
        self._raw += data[-RAW_LIMIT:]
        if len(self._raw) > 2 * RAW_LIMIT:
            del self._raw[:-RAW_LIMIT]
        for notice in self.screen.take_notices():
            self.tool.notice(notice.kind, notice.payload)
        return self._look_soon(now)

    def _look_soon(self, now: float) -> list[Command]:
        """Shortly after output stops; but no later than the usual round when it never stops."""
        if self._dirty_since is None:
            self._dirty_since = now
        return [RequestWakeup(min(now + self.settings.first_look_s, self._dirty_since + self.settings.look_every_s))]

    def _keys(self, data: bytes, now: float) -> list[Command]:
        typed = keys_of(data)
        if not typed:
            return []
        self._keys_since_raise = True
        self._keys_at = now
        sends = typed[-1:] in b"\r\n"
        self._sent |= sends
        self._typed_at = None if sends else now
        if sends:
            self._attended = self.eye.cursor_line()
        if sends and self.open_prompt is None:
            self.eye.remember_answered(self._attended)
        self.eye.forget_rhythm()
        return self._look_soon(now)

    def _reply(self, digest: str, now: float) -> list[Command]:
        if self.open_prompt and self.open_prompt.digest == digest:
            self._sent = True
            self._answered = _Answered(now, self.eye.key)
        self._typed_at = None
        self._attended = ""
        self.eye.forget_rhythm()
        return self._look_soon(now)

    # ------------------------------------------------------------ judging

    def _judge(self, probe: ProbeAnswer, now: float) -> list[Command]:
        self._dirty_since = None
        view = self.eye.look()
        if self.eye.notice_change():
            self._votes.clear()
        self._votes.append(probe.state)
        self._facts = _facts_of(probe, view.row)
        found = self.eye.recognise(self._facts)
        self.eye.notice_finding(found)
        self._busy_looks = self._busy_looks + 1 if probe.state is ProbeState.BUSY else 0
        out = self._check_open(found, view, probe, now)
        if self.open_prompt is None:  # what was answered just now is history: look again without it
            out += self._consider(self.eye.recognise(self._facts), self.eye.look(), probe, now)
        return [*out, RequestWakeup(self._next_look(probe, now))]

    def _check_open(self, found: Finding | None, view: View, probe: ProbeAnswer, now: float) -> list[Command]:
        """Does the open prompt still stand?  If not, say why it went."""
        prompt, self._unsure = self.open_prompt, False
        if prompt is None:
            return []
        if found is None or not self._is_same(found, prompt):
            found = self.eye.recognise(self._open_facts)
        if found is not None and self._is_same(found, prompt) and not self._tool_works(found, view):
            untouched = self._answered is None and not self._keys_since_raise
            if not (untouched and self._asks_of_another(found)):
                return self._still_there(found, probe, now)
        steady_s = REDRAW_S if self.despite_busy and found is None else self.settings.patience.settle_s
        if self._answered is not None and probe.canonical:
            steady_s = 0.0  # a line that was sent is over, whatever comes next
        if (probe.state is not ProbeState.BUSY or self.despite_busy) and now - self.eye.key_since < steady_s:
            self._unsure = True
            return []
        return self._withdraw(self._reason())

    def _still_there(self, found: Finding, probe: ProbeAnswer, now: float) -> list[Command]:
        if probe.state is not ProbeState.BUSY or self.despite_busy or found.constraints.get("idle"):
            return self._asked_again(found, now)
        if self._busy_looks >= 3 and (self._answered is None or self._answered.key != self.eye.key):
            return self._withdraw(self._reason())
        self._unsure = True
        return []

    def _tool_works(self, found: Finding, view: View) -> bool:
        """The tool itself says that it works: on its screen, in its title, or beside them."""
        if found.priority >= OVERRIDES_BUSY:
            return False
        if found.constraints.get("idle") and self.tool.state in ("working", "blocked"):
            return True
        return stated(view, self.dialect) == "busy" or (self.tool.state == "working" and not found.structural)

    def _own_dialog(self, found: Finding, view: View) -> bool:
        """A dialog of the tool's own, with no sign of work beside it: whatever its process does meanwhile (timers,
        side requests), it waits for the person."""
        return found.own and not self._tool_works(found, view)

    def _is_same(self, found: Finding, prompt: Prompt) -> bool:
        """Also while somebody, or the host, is typing an answer behind it."""
        touched = self._answered is not None or self._keys_since_raise
        if found.constraints.get("idle") and self._sent and found.excerpt != self._open_excerpt:
            return False  # a whole turn went by between two looks: there is something new to tell
        if self._has_digest(found, prompt.digest):
            return found.structural or self.eye.place(found) == self._open_place or not touched
        if self._answered is not None and found.own and _question(found.core) == _question(self._open_core):
            return True  # our own words stand in one of its choices, until the tool takes them
        begun = self._answered is not None or self._typed_at is not None
        return begun and self.eye.place(found) == self._open_place and found.core.startswith(self._open_core)

    def _asked_again(self, found: Finding, now: float) -> list[Command]:
        """The same prompt stands there after its answer: nothing has happened yet, or it is asked once more."""
        answered = self._answered
        if answered is None:
            return []
        same_line = found.core == self._open_core and found.filled == self._open_filled
        echoed = bool(self._facts.canonical and self._facts.echo) and self.eye.last_output > answered.at
        since = self.eye.last_output if echoed else self.eye.key_since  # an echo is gone only from a line drawn anew
        again = not found.structural and same_line and (echoed or self.eye.key != answered.key)
        if again and now - since >= self.settings.patience.settle_s:
            return self._withdraw("answered")
        if now - answered.at >= self.settings.effect_s:
            self.open_prompt, self._answered = None, None
        return []

    def _consider(self, found: Finding | None, view: View, probe: ProbeAnswer, now: float) -> list[Command]:
        moment = self.eye.moment(now, self._typed_at, found is not None and self._next_command(found))
        verdict, why = self._verdict(found, view, probe, moment, now)
        if verdict and self._awaits_hook(found, view, moment, now):
            verdict, why = False, "its hook may still say what it wants"
        self._why = [f"the probe says {probe.state.value}" + (f": {probe.why}" if probe.why else ""), why]
        if found is not None:
            self._why.insert(1, f"rule {found.rule} sees {found.type.value}: {found.excerpt!r}")
        if not verdict or found is None:
            return []
        shown = _dialog(found, view)
        evidence = gather(found, probe, moment, self.tool.asks(shown, now), self.settings.patience)
        told = self.tool.subject(shown, now)
        if found.subject is not None and self.tool.contradicts(shown, now):
            found = replace(found, subject=replace(found.subject, complete=False))
        raw, settings = bytes(self._raw[-RAW_LIMIT:]), self.settings
        prompt = prompt_of(found, view, evidence, raw, self.secrets, told, settings.folder, self.tool.hint)
        self.open_prompt = prompt
        said_idle = bool(found.constraints.get("idle")) and self.tool.state == "idle"
        self.despite_busy |= said_idle or self._own_dialog(found, view)
        self._open_place, self._open_core, self._open_facts = self.eye.place(found), found.core, self._facts
        self._open_filled = found.filled
        self._open_excerpt, self._open_question, self._sent = found.excerpt, found.question, False
        self._open_wrap, self._resized = rewrapped(found), False
        self._lines_since, self._answered, self._keys_since_raise = 0, None, False
        return [RaisePrompt(prompt)]

    def _verdict(
        self, found: Finding | None, view: View, probe: ProbeAnswer, moment: Moment, now: float
    ) -> tuple[bool, str]:
        if found is None:
            return False, "nothing on the screen could be a prompt"
        own_word = found.priority >= OVERRIDES_BUSY or self._own_dialog(found, view)
        if probe.state is ProbeState.BUSY and not own_word:
            self.despite_busy = reads_unseen(found, probe, moment, self.dialect)
            return self.despite_busy, "busy, but its terminal takes single keys and a question stands there" if (
                self.despite_busy
            ) else "it is busy: no prompt"
        if self._tool_works(found, view):
            return False, "the tool says that it works"
        if probe.state is ProbeState.POLLING and self._votes.count(ProbeState.BUSY) + 1 >= len(self._votes) > 1:
            return False, "an event loop: one more look is needed"
        if probe.state is not ProbeState.UNKNOWN and len(self._votes) < 2:
            return False, "one look is not enough"
        probe = ProbeAnswer(ProbeState.POLLING, echo=probe.echo, canonical=probe.canonical) if own_word else probe
        asks = self.tool.asks(_dialog(found, view), now)
        return decide_raise(found, probe, moment, self.dialect, asks, self.settings.patience)

    def _awaits_hook(self, found: Finding | None, view: View, moment: Moment, now: float) -> bool:
        """A tool that was started with a hook gets a moment for it: it knows more than the screen shows."""
        if found is None or not found.own or moment.settled_s >= self.settings.hook_s:
            return False
        return self.tool.state == "blocked" and not self.tool.hooked(_dialog(found, view), now)

    def _next_command(self, found: Finding) -> bool:
        """The same prompt for a command again, while somebody sits in front of it and types them."""
        return begins_with(_uncounted(self._attended), _uncounted(found.core))

    def _reason(self) -> str:
        if self._answered:
            return "answered"
        return "answered_at_terminal" if self._keys_since_raise else "moved_on"

    def _withdraw(self, reason: str) -> list[Command]:
        prompt, self.open_prompt, self._answered = self.open_prompt, None, None
        self.despite_busy = False
        self.tool.forget()
        if prompt is not None and reason.startswith("answered"):
            self.eye.remember_answered(self._open_excerpt.rpartition("\n")[2])
        return [WithdrawPrompt(prompt.digest, reason)] if prompt else []

    def _next_look(self, probe: ProbeAnswer, now: float) -> float:
        """Soon while something may be about to settle, seldom when nothing moves."""
        settings, patience = self.settings, self.settings.patience
        if self.open_prompt is not None and self._answered is None and not self._unsure:
            return now + settings.watch_s
        since = self.eye.last_output if self._answered else self.eye.key_since
        settled = now - since + 1e-4
        turned = len(self._votes) < 2 or self._votes[-2] is ProbeState.BUSY  # it waits, and did not a look ago
        if probe.state is not ProbeState.BUSY and (turned or settled < patience.polling_s + 0.1):
            between = patience.settle_s - settings.first_look_s
            due = patience.settle_s if settled < patience.settle_s else patience.polling_s
            step = due - settled if settled < due else between
            return now + max(min(step, between), 0.002)
        if self._answered:
            return now + settings.look_every_s
        return now + max(settings.look_every_s, min(settled * _LATER, settings.slow_look_s))


def _facts_of(probe: ProbeAnswer, row: int) -> Facts:
    """What is known of the terminal that the cursor's row belongs to: below an inner one, keys go to who draws both."""
    around = 0 < probe.rows <= row
    canonical, echo = (False, False) if around else (probe.canonical, probe.echo)
    state = probe.state
    return Facts(canonical, echo, state is ProbeState.READING, probe.command, state is ProbeState.UNKNOWN)


def _dialog(found: Finding, view: View) -> str:
    """What a hook must be about: the dialog itself, where its beginning is known; else all that is shown."""
    return found.question if found.own and found.whole else view.text()


def _question(core: str) -> str:
    return core.partition("\0")[0]


def _uncounted(line: str) -> str:
    """`In [2]:` is `In [1]:` again."""
    return re.sub(r"\d+", "0", line)
