"""Decides whether to raise a prompt now, with one table: the probe's answer, the evidence, the time, and the reason.

The first matching row decides. docs/detection.md is generated from these rows, and a test checks them all.
`core/recognition` says what is on the screen, `screen_history` how long it has been there.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from operator import attrgetter

from atlasbridge.core.detection.events import ProbeAnswer, ProbeState
from atlasbridge.core.prompt.model import Evidence, PromptType
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.recognition.finding import DRAWN_FIELD, DRAWN_SCREEN, FOOTER, PASSING, Finding
from atlasbridge.core.values import field, frozen, replace

# The scores of the four signals (structured event, pattern, probe, silence) give the confidence of a prompt.

MEDIUM = 0.60
CAP = 0.99
MORE = 0.05  # for each further signal that agrees
KNOWN = 0.8  # a pattern with this score is not a coincidence
SURE = 0.9
OVERRIDES_BUSY = 100  # a rule with this priority counts as the tool's own statement

PROBE_SCORE = {ProbeState.READING: 0.95, ProbeState.POLLING: 0.65, ProbeState.UNKNOWN: 0.0, ProbeState.BUSY: 0.0}


@frozen
class Moment:
    """How long things have been unchanged, in seconds."""

    settled_s: float  # since the last relevant change of a cell
    rest_s: float  # how long it must be settled, because it changed at regular intervals
    typed_s: float | None  # since a person typed something other than Enter
    calm_s: float = 60.0  # since any cell changed, including blinking ones
    attended: bool = False  # a person at the terminal has just sent a line at this prompt
    rewritten: int = 0  # how often the cursor's line was rewritten, as a progress display does
    row_s: float = 60.0  # since the row that asks changed
    keyed: bool = False  # the screen is the answer to a key of a person


@frozen
class Patience:
    settle_s: float = 0.05
    threshold: float = 0.65  # the lowest score of a line that counts without a sign that the tool reads
    polling_s: float = 0.15
    silence_s: float = 2.0
    timer_s: float = 10.0  # an event loop with a timer, and nothing on the screen that asks
    typing_s: float = 1.0
    attended_s: float = 0.6  # the same command prompt again, while a person at the terminal types commands
    idle_s: float = 0.5  # an input box is not urgent, and boxes flicker between two steps of work
    stranger_s: float = 10.0  # a screen that the tool's own dialect does not know
    wordless_s: float = 4.0  # the probe knows nothing, and the program has written nothing
    pause_s: float = 30.0  # the probe knows nothing, and the last line is complete: most such programs work
    unseen_s: float = 1.5  # without a visible reader: longer than most programs work without output
    around_s: float = 0.5  # a multiplexer draws its own line and its content one after the other
    tick_s: float = 1.5  # a clock that shows seconds has changed by then
    rests_s: float = 10.0  # an input box that was unchanged for this long waits, also on a busy machine
    hidden_s: float = 0.2  # only a program that waits for a person hides what is typed
    display_s: float = 60.0  # a program that displays, serves or continues by itself is listed as idle after this time


@frozen
class DetectorSettings:
    """How often the detector looks, how long it waits, and which values it must not reveal."""

    patience: Patience = field(default_factory=Patience)
    first_look_s: float = 0.02
    look_every_s: float = 0.25
    slow_look_s: float = 0.5  # the longest interval, after some seconds without change
    watch_s: float = 1.0  # while a prompt is open
    effect_s: float = 3.0  # after this time, an answered prompt that is still there is asked again
    hook_s: float = 0.0  # how long a dialog waits for the tool's hook event
    folder: str = ""  # the tool's working folder, for dialogs that do not name it
    secrets: tuple[str, ...] = ()  # values that must not leave this machine, such as secrets in the child's environment


def combine(evidence: list[Evidence]) -> float:
    """The strongest signal, plus a little for each other one that is at least medium."""
    first, *others = sorted((item.score for item in evidence), reverse=True)
    return min(CAP, first + MORE * sum(score >= MEDIUM for score in others))


def gather(found: Finding, probe: ProbeAnswer, moment: Moment, structured: str, patience: Patience) -> list[Evidence]:
    out = []
    if structured:
        out.append(Evidence("structured", 1.0, structured))
    out.append(Evidence("pattern", found.score, found.rule))
    if PROBE_SCORE[probe.state]:
        out.append(Evidence("probe", PROBE_SCORE[probe.state], probe.why or probe.state.value))
    if probe.state is not ProbeState.READING and moment.settled_s >= patience.silence_s:
        out.append(Evidence("silence", 0.60 if found.score >= MEDIUM else 0.45, f"{moment.settled_s:.1f} s"))
    return out


_ASKS = ("?", ":", "？", "：")
BRISK_S = 2.0  # a timer this fast possibly draws progress
FIRED_S = 0.3  # a timer's output is on the screen this long after it fired
SLOWEST_S = 30.0  # slowest timer that possibly draws
REWRITTEN = 2  # a line that was rewritten this often looks like progress


class Who(StrEnum):
    """What is known of the program that draws: the probe's answer, or the tool's own statement, which counts more."""

    OWN = "own statement"  # a dialog of the tool's own is shown: it waits, whatever its process does
    READING = "reading"
    POLLING = "polling"
    BUSY = "busy"
    UNKNOWN = "unknown"


@frozen
class Situation:
    found: Finding
    probe: ProbeAnswer
    moment: Moment
    dialect: Dialect
    patience: Patience
    structured: str = ""  # what the tool reported outside its output stream
    own_word: bool = False
    works: bool = False  # the tool says that it works, and it is busy or has changed in the last ten seconds
    looks: tuple[ProbeState, ...] = (ProbeState.UNKNOWN,)  # the last answers of the probe, newest last

    @property
    def who(self) -> Who:
        return Who.OWN if self.own_word else Who(self.probe.state.value)

    @property
    def unclear(self) -> bool:
        return self.found.type is PromptType.TYPE_UNKNOWN

    @property
    def hidden(self) -> bool:
        return self.probe.canonical is True and self.probe.echo is False

    @property
    def shows(self) -> bool:
        """Whether it is a live display, which redraws and waits for nobody."""
        return self.probe.command in self.dialect.quiet_programs


Holds = Callable[[Situation], bool]
Seconds = Callable[[Situation], float]


@frozen
class Row:
    """A row of the table: it applies until the screen has been unchanged for `until_s`, and from `after_s` on."""

    who: tuple[Who, ...]
    seen: str  # one of EVIDENCE
    raises: bool
    why: str
    until_s: str = ""  # one of PATIENCE
    after_s: str = ""


def decide_verdict(case: Situation) -> tuple[bool, str]:
    case = replace(case, probe=of_its_own(case.probe)) if case.own_word else case
    row = next(row for row in TABLE if fits(row, case))
    if not row.until_s:
        return row.raises, row.why
    needed = PATIENCE[row.until_s](case)
    return row.raises, f"{row.why}: {case.moment.settled_s:.2f} s, {needed:.2f} s are needed"


def of_its_own(probe: ProbeAnswer) -> ProbeAnswer:
    """The probe answer for a tool that says itself that it asks: only the terminal's mode counts."""
    return ProbeAnswer(ProbeState.POLLING, echo=probe.echo, canonical=probe.canonical)


def fits(row: Row, case: Situation) -> bool:
    if case.who not in row.who or not EVIDENCE[row.seen](case):
        return False
    still_s = case.moment.settled_s
    if row.until_s and still_s >= PATIENCE[row.until_s](case):
        return False
    return not row.after_s or still_s >= PATIENCE[row.after_s](case)


def _is_around(case: Situation) -> bool:
    """Whether a multiplexer asks: below the inner terminal, or in a bar over its last line."""
    found, rows = case.found, case.probe.rows
    return rows > 0 and (found.row >= rows or (found.barred and found.score >= SURE))


def _reads_unseen(case: Situation) -> bool:
    """Whether a program reads although no reader is visible (a loop that sleeps, a process of another session): the
    terminal is in a mode that only a reader of keys needs, and the screen shows a certain question.
    """
    secret = case.hidden and bool(case.found.constraints.get("secret"))
    may_read = (case.probe.canonical is False or secret) and not (
        case.probe.certain or case.dialect.idles or case.shows
    )
    sure = case.found.score >= (KNOWN if case.probe.sleeps else SURE) and not case.found.idle
    decides = any(choice.refuses or choice.always for choice in case.found.choices)
    still_s = case.moment.settled_s if decides else case.moment.calm_s  # a spinner can turn beside what decides
    rows = (case.found.question or case.found.core).split("\n")  # a pointed row can be a step of what the program does
    asks = not case.found.structural or decides or any(row.rstrip().endswith(_ASKS) for row in rows)
    return may_read and sure and asks and still_s >= case.patience.unseen_s


def _may_look_at_keys(case: Situation) -> bool:
    raw = case.probe.sleeps and case.probe.canonical is False and not case.shows and not case.dialect.idles
    return raw and case.found.rule != PASSING and case.moment.calm_s >= case.patience.stranger_s


def _may_count_down(case: Situation) -> bool:
    """Whether a timer runs and a row of the dialog contains only a number."""
    rows = case.found.excerpt.split("\n")
    number = case.found.structural and any(row.strip(" │┃║|").isdecimal() for row in rows)
    return case.probe.timer and not case.structured and number and case.moment.calm_s < case.patience.tick_s


def _is_first_look(case: Situation) -> bool:
    """Whether this is the first look, or an event loop was busy at all looks before."""
    last, busy = case.looks[-1], case.looks.count(ProbeState.BUSY)
    first = busy + 1 >= len(case.looks) if last is ProbeState.POLLING else len(case.looks) < 2
    return first and last is not ProbeState.UNKNOWN


def _moves(case: Situation) -> bool:
    stirs = bool(case.moment.rest_s) or case.moment.calm_s < case.patience.polling_s
    sure = case.found.score >= SURE and case.moment.settled_s >= case.patience.stranger_s  # a clock beside a question
    foot = (
        case.found.rule == FOOTER and min(case.moment.row_s, case.moment.settled_s) >= case.patience.tick_s
    )  # or above it
    return stirs and not case.found.structural and not sure and not foot


def _only_shows(case: Situation) -> bool:
    """Whether it is a display, or a server that also takes lines, and nothing on its screen asks for one."""
    visibly = not case.moment.keyed and case.found.detached and (case.probe.serves or case.probe.canonical is not False)
    return visibly and (case.found.score < MEDIUM or case.probe.serves)


def _silence(case: Situation) -> float:
    """How long nothing must change if the probe knows nothing and nothing asks: short only after an unfinished line."""
    if case.found.rule == "silent":
        return case.patience.wordless_s
    below = case.found.detached or case.dialect.idles or case.moment.rewritten >= REWRITTEN
    return case.patience.pause_s if below else case.patience.silence_s


_DISPLAY = "a list without a question, while something changes"
_MOVES = "a line while something changes, or a dialog with a number that may count down"
_GOES_ON = "nothing that is recognised in a live display, or a question that continues by itself"
_SHOWS = "a live display without a line at its foot, or a line above the cursor of a program that serves others"
_SAYS_NOTHING = "no output, a drawn screen without a question, or a line above the cursor that asks nothing"

EVIDENCE: dict[str, Holds] = {
    "anything": lambda case: True,
    "a question of the multiplexer around it": _is_around,
    "a certain question, on a terminal in a mode that only a reader of keys needs": _reads_unseen,
    "an idle input box, and the program does nothing but run": lambda case: (
        case.found.idle and case.probe.runs and case.dialect.says_busy
    ),
    "nothing changes, and it can read keys between sleeps": _may_look_at_keys,
    "the tool says that it works": lambda case: case.works,
    "this is the first look since it was busy": _is_first_look,
    "nothing that is recognised, while someone types": lambda case: (
        case.unclear and case.moment.typed_s is not None and case.moment.typed_s < case.patience.typing_s
    ),
    "the next command prompt of someone at the terminal": lambda case: (
        case.moment.attended and case.found.score < KNOWN
    ),
    "no output yet": lambda case: case.found.rule == "silent",
    _GOES_ON: lambda case: (case.unclear and case.shows) or case.found.rule == PASSING,
    _MOVES: lambda case: _moves(case) or _may_count_down(case),
    _DISPLAY: lambda case: (
        case.found.foot >= 0
        and not case.found.structural
        and case.found.score < SURE
        and case.moment.calm_s < case.patience.tick_s
    ),
    "a dialog, or the tool's own statement": lambda case: (
        bool(case.structured) or (case.found.structural and case.found.score >= case.patience.threshold)
    ),
    "a screen that this tool's dialect does not know": lambda case: (
        case.dialect.idles and (case.found.score < KNOWN or case.found.detached)
    ),
    _SHOWS: lambda case: (case.shows and case.found.rule != FOOTER) or _only_shows(case),
    _SAYS_NOTHING: lambda case: (
        case.found.rule in (DRAWN_SCREEN, "silent") or (case.found.detached and case.found.score < MEDIUM)
    ),
    "an uncertain line, and a fast timer": lambda case: case.found.score < KNOWN and 0 < case.probe.period_s <= BRISK_S,
    "a line that asks": lambda case: case.found.score >= case.patience.threshold and not case.unclear,
    "nothing that is recognised, and the program also waits for others": lambda case: (
        case.probe.others and case.unclear
    ),
    "no timer, or a full-screen program": lambda case: (
        not case.probe.timer or case.probe.command in case.dialect.screen_programs
    ),
    "a field to type into": lambda case: case.found.rule == DRAWN_FIELD,
    "something that asks": lambda case: (
        bool(case.structured) or case.hidden or case.found.structural or case.found.score >= case.patience.threshold
    ),
    "something that has changed meanwhile": lambda case: case.moment.calm_s < _silence(case),
}

_PLAIN = "unseen around rests display settle attended stranger silence"
PATIENCE: dict[str, Seconds] = {
    **{name: attrgetter(f"patience.{name}_s") for name in _PLAIN.split()},
    "rest": lambda case: case.patience.idle_s if case.found.idle else case.patience.polling_s,
    "blind": lambda case: case.patience.hidden_s if case.hidden else case.patience.silence_s,
    "long silence": _silence,
    "begun": lambda case: case.patience.polling_s if case.probe.canonical else case.patience.silence_s,
    "timer fired": lambda case: max(
        case.probe.period_s + FIRED_S, case.patience.tick_s if case.moment.rewritten >= REWRITTEN else 0.0
    ),
    "timer": lambda case: max(case.patience.timer_s, min(case.probe.period_s, SLOWEST_S) + case.patience.tick_s),
}

_BUSY = (Who.BUSY,)
_LOOP = (Who.POLLING, Who.OWN)
_BLIND = (Who.UNKNOWN,)
_ANY = tuple(Who)
_WAITS = (Who.OWN, Who.READING, Who.POLLING, Who.UNKNOWN)
_AROUND = "a question of the multiplexer around it"
_UNSEEN = "a certain question, on a terminal in a mode that only a reader of keys needs"
_RESTS = "an idle input box, and the program does nothing but run"
_SLEEPS = "nothing changes, and it can read keys between sleeps"
_WORKS = "the tool says that it works"
_STRANGE = "a screen that this tool's dialect does not know"
_ELSEWHERE = "nothing that is recognised, and the program also waits for others"

TABLE: tuple[Row, ...] = (
    Row(_ANY, _WORKS, False, "the tool says that it works, and it is busy or has changed recently"),
    Row(_BUSY, _AROUND, True, "it is busy, but the multiplexer around it asks", after_s="around"),
    Row(_BUSY, _UNSEEN, True, "it is busy, but its terminal takes keys and shows a question", after_s="unseen"),
    Row(_BUSY, _RESTS, True, "it runs, but its input box has not changed for a long time", after_s="rests"),
    Row(_BUSY, _SLEEPS, True, "it sleeps in short intervals, its terminal takes keys, nothing changes", "", "stranger"),
    Row(_BUSY, "anything", False, "it is busy: no prompt"),
    Row(_WAITS, "this is the first look since it was busy", False, "one look is not enough"),
    Row(_WAITS, "anything", False, "the screen has just changed", until_s="settle"),
    Row(_WAITS, "nothing that is recognised, while someone types", False, "someone is typing"),
    Row(_WAITS, "the next command prompt of someone at the terminal", False, "commands are typed", until_s="attended"),
    Row(_WAITS, "no output yet", False, "it has only started, or asked the terminal something", "begun"),
    Row(_WAITS, _GOES_ON, False, "it displays, or says that it continues by itself", until_s="display"),
    Row((Who.READING, *_LOOP), _DISPLAY, False, "it may be a display that keeps drawing"),
    Row((Who.READING,), "anything", True, "a process blocks in read on the terminal"),
    Row(_LOOP, "anything", False, "an event loop that has only come to rest", until_s="rest"),
    Row(_LOOP, _MOVES, False, "something changes, or a number may count down"),
    Row(_LOOP, "a dialog, or the tool's own statement", True, "an event loop watches the terminal; a dialog is shown"),
    Row(_LOOP, _STRANGE, False, "a screen that the dialect does not know", until_s="stranger"),
    Row(_LOOP, _STRANGE, True, "a screen that the dialect does not know has not changed for a long time"),
    Row(_LOOP, _SAYS_NOTHING, False, "it reads keys, and nothing asks", until_s="stranger"),
    Row(_LOOP, _SHOWS, False, "it displays, or serves others, and does not ask", until_s="display"),
    Row(_LOOP, "an uncertain line, and a fast timer", False, "it may only show progress", until_s="timer fired"),
    Row(_LOOP, "a line that asks", True, "an event loop watches the terminal, and a line asks"),
    Row(_LOOP, _ELSEWHERE, False, "a screen that asks nothing; the program also waits for others", until_s="silence"),
    Row(_LOOP, "no timer, or a full-screen program", True, "an event loop that has come to rest"),
    Row(_LOOP, "a field to type into", True, "a field is shown, and nothing changes", after_s="silence"),
    Row(_LOOP, "anything", True, "an event loop with a timer that changes nothing", after_s="timer"),
    Row(_LOOP, "anything", False, "an event loop with a timer, and nothing asks"),
    Row(_BLIND, "anything", False, "the system cannot tell who reads", until_s="blind"),
    Row(_BLIND, "something that asks", True, "the system cannot tell, but something asks in silence"),
    Row(_BLIND, "something that has changed meanwhile", False, "the system cannot tell, and something changes"),
    Row(_BLIND, "anything", True, "the system cannot tell; a long silence", after_s="long silence"),
    Row(_BLIND, "anything", False, "the system cannot tell, and nothing asks"),
)  # fmt: skip
