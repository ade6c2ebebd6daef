"""Decides whether the tool waits for a person: events in, commands out, and the time is an argument.

The detector judges the settled screen, never a chunk of output. `core.recognition` says what the screen asks,
`verdict` says whether the signals suffice, and `prompt_builder` makes the prompt. The host executes the commands and
sends `ReplyTyped` just before it types.
"""

from __future__ import annotations

from collections import deque

from atlasbridge.core.detection import events
from atlasbridge.core.detection.events import Command, ProbeAnswer, ProbeState, RaisePrompt, RequestWakeup
from atlasbridge.core.detection.prompt_builder import digest_of, prompt_of, rewrapped, rows_left_out
from atlasbridge.core.detection.screen_history import ScreenHistory, facts_of, uncounted
from atlasbridge.core.detection.structured import ShownDialog, ToolSays
from atlasbridge.core.detection.verdict import (
    OVERRIDES_BUSY,
    DetectorSettings,
    Moment,
    Situation,
    decide_verdict,
    gather,
)
from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.model import Evidence, Prompt, SubjectKind, SubjectSource
from atlasbridge.core.prompt.redact import typed_text
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.recognition.finding import DRAWN_SCREEN, PASSING, Facts, Finding
from atlasbridge.core.screen.queries import keys_of
from atlasbridge.core.screen.view import View, begins_with
from atlasbridge.core.values import frozen, replace

LEAST_LEFT = 40  # characters that identify a question after its first rows have scrolled away


@frozen
class JustAnswered:
    """The prompt that was just answered. Only this one is not raised again, and only until something has changed."""

    at: float
    key: str  # the key of the screen on which it was answered
    left: bool = False  # the prompt disappeared, at least for a moment
    worked: frozenset[str] = frozenset()  # rows of that screen that look like a busy mark


@frozen
class OpenPrompt:
    """The open prompt as it was when it was raised, and the comparison with the current screen."""

    prompt: Prompt
    found: Finding
    place: int  # its line number, counted from the first line that was ever on the screen
    facts: Facts  # about the terminal, when the prompt was raised
    wrap: str  # its digest without line breaks, which is the same at any window width
    behind: str  # the text right after the cursor
    turns: tuple[int, int]  # the process that waits, and how often it had run; 0: unknown

    def holds(self, probe: ProbeAnswer, found: Finding) -> bool:
        """Whether the program has not run since it asked. Then what was written below is another's, unless it asks
        more clearly than the prompt did.
        """
        same = self.turns[1] > 0 and (probe.pid, probe.turns) == self.turns
        return same and (found.detached or found.score <= self.found.score)

    def is_untouched(self, found: Finding, view: View) -> bool:
        """Whether nobody has typed. Dialogs and input boxes change their hints, so only typed text counts there."""
        drawn = found.structural or found.idle
        return found.filled == self.found.filled and bool(drawn or view.behind_cursor() == self.behind)

    def is_answered_in(self, found: Finding) -> bool:
        """Whether the tool's own dialog shows our answer in one of its choices and has not accepted it yet."""
        now, then = _question(found.core), _question(self.found.core)
        shorter, longer = sorted((now, then), key=len)  # a dialog that grows pushes its first rows off the screen
        return found.own and (now == then or (len(shorter) >= LEAST_LEFT and longer.endswith(shorter)))


def _question(core: str) -> str:
    """The words of the question. Blank rows do not count, because the tool removes some when an answer needs room."""
    return " ".join(core.partition("\0")[0].split())


_LATER = 0.1  # after a long silence, looks are rarer: the delay is a tenth of the silence
RAW_LIMIT = 8192
_REACTS_S = 0.5
STARTS_S = 2.0  # a program that comes up this soon after a key of a person was started by that person
LEAVES_S = 10.0  # somebody who has typed a part of a line and nothing more for this long has left
_ENDS_LINE = lazy(rb"[\r\n\x03\x04\x1a\x1c]")
NOTHING = ("silent", DRAWN_SCREEN, PASSING)  # rules of findings that ask nothing by themselves
BLINK_S = 1.2  # a prompt that vanished and was back at once: a part of it blinks
REDRAW_S = 0.3  # a tool that redraws its whole screen can show nothing for a moment
ON_TIME_S, LATEST_S = 0.03, 1.0  # a look this late is in time; longer than this it was put off, for a typed answer
RETURNS_S, LINGERS_S = 0.6, 1.0  # some tools redraw a dialog after its answer: how soon after it left, and for how long


class Detector:
    def __init__(self, dialect: Dialect, rows: int, cols: int, settings: DetectorSettings | None = None) -> None:
        self.dialect = dialect
        self.settings = settings or DetectorSettings()
        self.secrets = self.settings.secrets  # also includes secrets that are typed later
        self.screen_history = ScreenHistory(dialect, rows, cols, self.settings.patience.threshold)
        self.screen = self.screen_history.screen
        self._open: OpenPrompt | None = None
        self.despite_busy = False  # the open prompt was raised although no reader was found
        self.tool = ToolSays()
        self._resized = False  # since the open prompt was raised: the tool can have wrapped it differently
        self._lines_since = 0  # line feeds since it was raised
        self._sent = False  # Enter was typed since the prompt was raised, by a person or by the host
        self._answered: JustAnswered | None = None
        self._done, self._done_at = "", float("-inf")  # the dialog that was answered last, and when it left
        self._gone: dict[str, float] = {}  # the prompts that left without any keys, and when
        self._returned, self._shown_at = False, 0.0  # the open prompt left and was back at once; when it was last seen
        self._raw = bytearray()
        self._held = False  # the program has not run since it asked
        self._unsure = False  # the open prompt is possibly gone; look again soon
        self._votes: deque[ProbeState] = deque(maxlen=3)
        self._dirty_since: float | None = None
        self._typed_at: float | None = None  # last key of a person except Enter
        self._keys_at = float("-inf")  # last key of a person
        self._line = b""  # keys of a person in a line that is not sent
        self._keys_since_raise = False
        self._attended = ""  # the line that a person at the terminal has just sent; "" if the host typed last
        self._reader, self._by_person = 0, True  # the process that reads; a person has started it or types into it
        self._busy_looks = 0
        self._exited = False
        self._now = 0.0
        self._due, self._late_s = float("inf"), 0.0  # when the next look was wanted; how late all looks were together
        self._facts = Facts()
        self._single: set[str] = set()  # programs that accept an answer at its first key, without Enter
        self._why: list[str] = ["nothing has been judged yet"]

    def handle(self, event: events.Event, now: float) -> list[Command]:
        """Judge the event at the time `now`, less the time by which looks were late so far. A machine that is too busy
        to look in time is too busy to run the tool in time, and an event loop's late step must not pass for rest.
        """
        loops = self._votes and self._votes[-1] in (ProbeState.POLLING, ProbeState.UNKNOWN)
        if isinstance(event, events.WakeupDue) and loops:
            self._late_s += min(max(0.0, now - self._due - ON_TIME_S), LATEST_S)
        commands = self._handle(event, now - self._late_s)
        for at, command in enumerate(commands):
            if isinstance(command, RequestWakeup):
                self._due = command.at + self._late_s
                commands[at] = RequestWakeup(self._due)
        return commands

    def _handle(self, event: events.Event, now: float) -> list[Command]:
        self.screen_history.open(now)
        self._now = now
        match event:
            case events.OutputReceived(data):
                return self._output(data, now)
            case events.WakeupDue():
                return [] if self._exited else [events.RequestProbe()]
            case events.ProbeAnswered(answer):
                return [] if self._exited else self._judge(answer, now)
            case events.KeysTyped(data):
                return self._keys(data, now)
            case events.ReplyTyped(digest):
                return self._reply(digest, now)
            case events.StructuredEventReceived():
                self.tool.hear(event, now)
                return self._look_soon(now)
            case events.Resized(rows, cols):
                self.screen.resize(rows, cols)
                self._resized = True
                return self._look_soon(now)
            case events.ChildExited():
                self._exited = True
                return self._withdraw("exited")

    @property
    def open_prompt(self) -> Prompt | None:
        """The open prompt with the keys for its choices, starting at the current highlight."""
        found = self._untouched(refilled=True) if self._open else None
        if self._open is None or found is None:
            return self._open.prompt if self._open else None
        return replace(self._open.prompt, choices=found.choices, text_steps=found.text_steps, fields=found.fields)

    def still_shows(self, digest: str) -> bool:
        """Whether this prompt is on the screen now, without any typed text."""
        return self._is_open(digest) and self._untouched() is not None

    def refilled(self, digest: str) -> bool:
        """Whether this prompt is on the screen, and only the text in its field is another one."""
        found = self._untouched(refilled=True) if self._is_open(digest) else None
        return found is not None and self._open is not None and found.filled != self._open.found.filled

    def has_left(self, digest: str) -> bool:
        """Whether the prompt is gone. Unlike in `still_shows`, a partly typed answer does not make it gone."""
        found = self._recognise_open() if self._is_open(digest) else None
        return found is None or not self._is_same(found)

    def took_first_key(self) -> None:
        """Record that the program accepted an answer before its Enter: from now on it gets none."""
        if self._open is not None and self._open.facts.command and not self.dialect.idles:
            self._single.add(self._open.facts.command)

    def _is_open(self, digest: str) -> bool:
        return self._open is not None and self._open.prompt.digest == digest and not self._exited

    def _untouched(self, refilled: bool = False) -> Finding | None:
        opened, found = self._open, self._recognise_open()
        if opened is not None and self._held and not self._keys_since_raise:
            return opened.found
        if opened is None or not self._has_its_text(found):
            return None
        if found.idle and self._tool_works(found):
            return None
        filled = opened.found.filled if refilled else found.filled
        untouched = opened.is_untouched(replace(found, filled=filled), self.screen_history.look())
        return found if untouched and not self._asks_of_another(found) else None

    def _has_its_text(self, found: Finding) -> bool:
        """Whether the text is that of the open prompt, except for rows that tick by themselves. After a resize of the
        window, line breaks can differ, too.
        """
        opened = self._open
        if opened is None:
            return False
        wrapped = self._resized and rewrapped(found) == opened.wrap
        same = digest_of(found) == opened.prompt.digest or wrapped
        return same or self.screen_history.differs_by_ticks(opened.found, found, 2, self._now)

    def _asks_of_another(self, found: Finding) -> bool:
        """Whether the same words are about something else than the person saw: the text above has changed, the
        question was asked a second time, or a whole screen of output went by. A dialog says what it is about.
        """
        opened = self._open
        if opened is None or self._held or found.structural or found.idle:
            return False
        history = self.screen_history
        rewritten = found.question != opened.found.question and not self._has_its_text(found)
        if rewritten and not (self._resized and rewrapped(found) == opened.wrap):
            return True
        once_more = history.place(found) != opened.place and history.stands_at(opened.place, found.core)
        return once_more or self._lines_since > self.screen.rows

    def _recognise_open(self) -> Finding:
        """Recognise the screen for the program that reads now, or that read when the prompt was raised."""
        found = self.screen_history.recognise(self._facts)
        if self._open is None or self._is_same(found):
            return found
        return self.screen_history.recognise(self._open.facts)

    @property
    def line_begun(self) -> bool:
        """Whether the terminal keeps a part of a line that a person has typed: an answer would be added to it."""
        return bool(self._facts.canonical and typed_text(self._line))

    def begun(self, now: float) -> bool:
        """Whether a person has typed keys to which the tool has not responded with any output, or a part of a line
        just now. A program that reads single keys has discarded them after a moment.
        """
        if self.line_begun or (self._open is not None and self.refilled(self._open.prompt.digest)):
            return now - self._keys_at < LEAVES_S
        if self._keys_at <= self.screen_history.last_output:
            return False
        return bool(self._facts.canonical) or now - self._late_s - self._keys_at < _REACTS_S

    def reconsider(self) -> None:
        """Drop the open prompt, which nobody can answer any more, and judge the screen as if it were new."""
        self._open, self._answered, self.despite_busy, self._held = None, None, False, False

    def explain(self) -> list[str]:
        return list(self._why)

    def _output(self, data: bytes, now: float) -> list[Command]:
        for drawn in self.screen_history.drawings(data) if self._answered else (data,):
            self.screen_history.feed(drawn, now)
            own = self._answered and self._open and self._open.found.own
            if self._answered and own and self.screen_history.work_rows() - self._answered.worked:
                self._answered = replace(self._answered, left=True)  # one that looks the same is a new dialog
        self._lines_since += data.count(b"\n")
        self._raw += data[-RAW_LIMIT:]
        if len(self._raw) > 2 * RAW_LIMIT:
            del self._raw[:-RAW_LIMIT]
        for notice in self.screen.take_notices():
            self.tool.notice(notice.kind, notice.payload)
        return self._look_soon(now)

    def _look_soon(self, now: float) -> list[Command]:
        """Look shortly after output stops. If it never stops, look at the usual interval."""
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
        self._line = _ENDS_LINE.split(self._line + typed)[-1]
        if sends:
            self._attended = self.screen.cursor_text().strip()
        if sends and self._open is None:
            self.screen_history.remember_answered(self._attended)
        self.screen_history.forget_rhythm()
        return self._look_soon(now)

    def _reply(self, digest: str, now: float) -> list[Command]:
        if self._open is not None and self._open.prompt.digest == digest:
            self._sent, self._held = True, False
            self._answered = JustAnswered(now, self.screen_history.key, worked=self.screen_history.work_rows())
        self._typed_at = None
        self._attended, self._line = "", b""
        self.screen_history.forget_rhythm(keys=False)
        return self._look_soon(now)

    # judging the screen

    def _judge(self, probe: ProbeAnswer, now: float) -> list[Command]:
        dirty_s = 0.0 if self._dirty_since is None else now - self._dirty_since
        self._dirty_since = None
        self._line = b"" if probe.canonical is False else self._line
        self.screen_history.begun, self.screen_history.sees_work = typed_text(self._line), probe.turns > 0
        view = self.screen_history.look()
        if self.screen_history.notice_change(unseen=dirty_s > 2 * self.settings.look_every_s):
            self._votes.clear()
        self._votes.append(probe.state)
        if probe.pid != self._reader:
            self._reader, self._by_person = probe.pid, False
        self._by_person |= now - self._keys_at < STARTS_S
        self._facts = replace(facts_of(probe, view.row), single=probe.command in self._single)
        found = self.screen_history.recognise(self._facts)
        self.screen_history.notice_finding(found, now)
        self._busy_looks = self._busy_looks + 1 if probe.state is ProbeState.BUSY else 0
        untouched = self._answered is None and not self._keys_since_raise
        # Another thread of the program can draw a full screen while this one waits.
        self._held = self._open is not None and untouched and not view.alternate and self._open.holds(probe, found)
        out = self._check_open(found, probe, now)
        if self._open is None:  # the answered prompt is now history: recognise without it
            out += self._consider(self.screen_history.recognise(self._facts), self.screen_history.look(), probe, now)
        return [*out, RequestWakeup(self._next_look(probe, now))]

    def _check_open(self, found: Finding, probe: ProbeAnswer, now: float) -> list[Command]:
        """Withdraw the open prompt, with the reason, if it is no longer there."""
        self._unsure = False
        if self._open is None:
            return []
        if self._answered is not None and self._answered.left:
            return self._withdraw("answered")
        if not self._is_same(found):
            found = self.screen_history.recognise(self._open.facts)
        if self._is_same(found) and not self._tool_works(found):
            untouched = self._answered is None and not self._keys_since_raise
            if not (untouched and self._asks_of_another(found)):
                self._shown_at = now
                return self._still_there(found, probe, now)
        if self._answered is None and not self._keys_since_raise:
            history, held_s = self.screen_history, BLINK_S if self._returned else 0.0
            if now - self._shown_at < held_s or history.differs_by_ticks(self._open.found, found, 1, now):
                self._unsure = True  # it ticks or blinks by itself: the next change will tell
                return []
        steady_s = REDRAW_S if self.despite_busy and found.rule in NOTHING else self.settings.patience.settle_s
        if self._answered is not None and probe.canonical:
            steady_s = 0.0  # a line that was sent is over, whatever follows
        if (probe.state is not ProbeState.BUSY or self.despite_busy) and now - self.screen_history.key_since < steady_s:
            self._unsure = True
            return []
        return self._withdraw()

    def _still_there(self, found: Finding, probe: ProbeAnswer, now: float) -> list[Command]:
        if probe.state is not ProbeState.BUSY or self.despite_busy or found.idle:
            return self._asked_again(found, now)
        if self._busy_looks >= 3 and (self._answered is None or self._answered.key != self.screen_history.key):
            return self._withdraw()
        self._unsure = True
        return []

    def _tool_works(self, found: Finding) -> bool:
        """Whether the tool says that it is working: in an event, in its title or on its screen, in this order."""
        if found.priority >= OVERRIDES_BUSY:
            return False
        busy = bool(self._votes) and self._votes[-1] is ProbeState.BUSY
        works = ("working", "blocked") if found.idle else ("working",) if not found.structural else ()
        if self.tool.state in works and (busy or self.screen_history.stirred(found, self._now)):
            return True
        if found.own and not found.idle and self.tool.asks(_dialog(found, self.screen_history.look()), self._now):
            return False
        return self.screen_history.stated(found, self._now, busy) == "busy"

    def _own_word(self, found: Finding) -> bool:
        """Whether this is a dialog of the tool's own without a sign of work. Then the tool waits for the person,
        whatever its process does meanwhile (timers, background requests).
        """
        return found.priority >= OVERRIDES_BUSY or (found.own and not self._tool_works(found))

    def _is_same(self, found: Finding) -> bool:
        """Whether this is the open prompt, including while a person or the host types an answer after it."""
        opened, answered = self._open, self._answered is not None
        if opened is None or self._held:
            return opened is not None
        touched, in_place = answered or self._keys_since_raise, self.screen_history.place(found) == opened.place
        if found.idle and self._sent and found.excerpt != opened.found.excerpt:
            return False  # the tool worked between two looks: there is something new to show
        if self._has_its_text(found):
            return found.structural or in_place or not touched
        if answered and opened.is_answered_in(found):
            return True
        more = found.core.removeprefix(opened.found.core)  # typed behind it; new rows are the tool's own words
        typed = (answered or self._typed_at is not None) and in_place and found.core.startswith(opened.found.core)
        return typed and "\n" not in more

    def _asked_again(self, found: Finding, now: float) -> list[Command]:
        """Handle a prompt that is still there after its answer: nothing has happened, or it asks again."""
        answered, opened = self._answered, self._open
        if answered is None or opened is None:
            return [] if opened is None else self._told_late(found, opened, now)
        echoed = bool(self._facts.canonical and self._facts.echo) and self.screen_history.last_output > answered.at
        history = self.screen_history
        since = history.last_output if echoed else history.key_since  # only a redrawn line removes an echo
        its_line = found.core == opened.found.core and opened.is_untouched(found, history.look())
        anew = its_line and not found.structural and (echoed or history.key != answered.key)
        if anew and now - since >= self.settings.patience.settle_s:
            return self._withdraw("answered")
        if now - answered.at >= self.settings.effect_s:
            self.screen_history.remember_rejected(opened.behind)
            self._single.discard(opened.facts.command)  # this program needs Enter
            self._open, self._answered = None, None
        return []

    def _consider(self, found: Finding, view: View, probe: ProbeAnswer, now: float) -> list[Command]:
        attended = bool(self._attended) and begins_with(uncounted(self._attended), uncounted(found.core))
        moment = self.screen_history.moment(found, now, self._typed_at, attended)
        keyed = 0 <= self.screen_history.key_since - self._keys_at < _REACTS_S
        verdict, why = self._verdict(found, view, probe, replace(moment, keyed=keyed), now)
        if verdict:
            why_not = self._too_soon(found, view, moment, now)
            verdict, why = not why_not, why_not or why
        self._why = [f"the probe says {probe.state.value}" + (f": {probe.why}" if probe.why else ""), why]
        self._why.insert(1, f"rule {found.rule} sees {found.type.value}: {found.excerpt!r}")
        if not verdict:
            return []
        if probe.serves and found.detached:
            found = replace(found, orders=True)  # it takes lines besides its work: it is idle and asks nothing
        if probe.called and not self._by_person and probe.command in self.dialect.screen_programs:
            found = replace(found, orders=False)  # an editor or pager that a program has opened waits for a person
        shown = _dialog(found, view)
        evidence = gather(found, probe, moment, self.tool.asks(shown, now), self.settings.patience)
        found, prompt = self._build(found, view, shown, evidence, now)
        said_idle = found.idle and (self.tool.state == "idle" or self.dialect.says_busy)
        self.despite_busy |= said_idle or self._own_word(found)
        self.tool.raised(shown, now)
        place, behind = self.screen_history.place(found), view.behind_cursor()
        self._open = OpenPrompt(prompt, found, place, self._facts, rewrapped(found), behind, (probe.pid, probe.turns))
        self._returned = now - self._gone.get(prompt.digest, float("-inf")) < 2 * BLINK_S
        self._lines_since, self._answered, self._shown_at = 0, None, now
        self._sent = self._resized = self._keys_since_raise = False
        return [RaisePrompt(prompt)]

    def _build(
        self, found: Finding, view: View, shown: ShownDialog, evidence: list[Evidence], now: float
    ) -> tuple[Finding, Prompt]:
        """Build the prompt with the subject that a hook sent, and adjust the finding to it."""
        event = self.tool.announced(shown, now) if found.own else None
        if found.own and not found.idle and self.tool.contradicts(shown, now):
            seen = found.subject and replace(found.subject, complete=False)
            found = replace(found, subject=seen, whole=False)
            if found.permission:  # it is unknown what would be allowed, so it can only be refused
                found = replace(found, constraints={**found.constraints, "disagrees": True})
        if event and event.missing_lines:
            found = replace(found, constraints={**found.constraints, "missing_lines": event.missing_lines})
        raw, told, folder = bytes(self._raw[-RAW_LIMIT:]), event.subject if event else None, self.settings.folder
        return found, prompt_of(found, view, evidence, raw, self.secrets, told, folder, self.tool.hint)

    def _told_late(self, found: Finding, opened: OpenPrompt, now: float) -> list[Command]:
        """Handle a hook event that arrives after its dialog was raised. The prompt is raised again with the hook's
        subject, because the first message showed less; an answer to that one is refused.
        """
        if found.idle or self._keys_since_raise or not self.tool.spoke_late(now):
            return []
        view = self.screen_history.look()
        shown = _dialog(found, view)
        found, prompt = self._build(found, view, shown, list(opened.prompt.evidence), now)
        self.tool.raised(shown, now)
        if not (prompt.constraints.get("disagrees") or _says_more(prompt, opened.prompt)):
            return []
        self._open = replace(opened, prompt=prompt)
        return [RaisePrompt(prompt)]

    def _verdict(self, found: Finding, view: View, probe: ProbeAnswer, moment: Moment, now: float) -> tuple[bool, str]:
        own_word = self._own_word(found)
        case = Situation(found, probe, moment, self.dialect, self.settings.patience)
        case = replace(case, structured=self.tool.asks(_dialog(found, view), now), looks=tuple(self._votes))
        verdict, why = decide_verdict(replace(case, own_word=own_word, works=self._tool_works(found)))
        if probe.state is ProbeState.BUSY and not own_word:
            self.despite_busy = verdict
        return verdict, why

    def _too_soon(self, found: Finding, view: View, moment: Moment, now: float) -> str:
        """Why a prompt that waits is not raised yet, or ""."""
        hooked = found.own and (found.permission or self.tool.state == "blocked")
        if hooked and moment.settled_s < self.settings.hook_s and not self.tool.announced(_dialog(found, view), now):
            return "its hook may still say what it wants"
        if found.idle and self.tool.announces(now):
            return "its hook has announced a dialog"
        back = found.own and now - moment.settled_s - self._done_at < RETURNS_S and moment.settled_s < LINGERS_S
        if back and digest_of(found) == self._done:
            return "it was answered just now, and may only be drawn once more"
        if moment.settled_s < found.deaf_s:
            return "the tool ignores keys that come so soon"
        typed = self._keys_at > self.screen_history.last_output and now - self._keys_at < _REACTS_S
        return "somebody has typed, and the tool has not answered yet" if typed else ""

    def _withdraw(self, reason: str = "") -> list[Command]:
        gone = "answered" if self._answered else "answered_at_terminal" if self._keys_since_raise else "moved_on"
        reason, opened, self._open, self._answered = reason or gone, self._open, None, None
        self.despite_busy = self._held = False
        self.tool.forget()
        if opened is not None and reason.startswith("answered"):
            self.screen_history.close_dialog(opened.found.excerpt.rpartition("\n")[2], opened.place)
            self._done, self._done_at = opened.prompt.digest, self.screen_history.last_output
        if opened is not None and reason == "moved_on":
            near = {digest: at for digest, at in self._gone.items() if self._now - at < 2 * BLINK_S}
            self._gone = {**near, opened.prompt.digest: self._now}
        return [events.WithdrawPrompt(opened.prompt.digest, reason)] if opened else []

    def _next_look(self, probe: ProbeAnswer, now: float) -> float:
        """When to look again: soon while the screen can settle, rarely when nothing changes."""
        settings, patience = self.settings, self.settings.patience
        if self._open is not None and self._answered is None and not self._unsure:
            return now + settings.watch_s
        since = self.screen_history.last_output if self._answered else self.screen_history.key_since
        settled = now - since + 1e-4
        turned = len(self._votes) < 2 or self._votes[-2] is ProbeState.BUSY  # waiting now, but not at the last look
        if probe.state is not ProbeState.BUSY and (turned or settled < patience.polling_s + 0.1):
            between = patience.settle_s - settings.first_look_s
            due = patience.settle_s if settled < patience.settle_s else patience.polling_s
            step = due - settled if settled < due else between
            return now + max(min(step, between), 0.002)
        if self._answered:
            return now + settings.look_every_s
        return now + max(settings.look_every_s, min(settled * _LATER, settings.slow_look_s))


def _says_more(prompt: Prompt, shown: Prompt) -> bool:
    """Whether the hook's subject contains more than the person could read before."""
    told = prompt.subject
    if told is None or told.source is SubjectSource.SCREEN:
        return False
    return not shown.whole or "".join(told.text.split()) not in "".join(shown.question.split())


def _dialog(found: Finding, view: View) -> ShownDialog:
    """The text that a hook event must match: the dialog if its beginning is known, otherwise the whole screen."""
    about = found.subject
    if found.idle:
        return ShownDialog("")  # it waits for the next instruction, which no hook announces
    if about is not None and about.kind is SubjectKind.EDIT and about.text == about.target:  # named only
        return ShownDialog(found.question, names=about.targets)
    if found.own and (found.whole or found.clipped):
        return ShownDialog(found.question, found.clipped, about=about)
    left_out = rows_left_out(found.question) if found.own and found.permission and about is None else 0
    return ShownDialog(view.text(), about=about if found.own else None, headless=found.own, left_out=left_out)
