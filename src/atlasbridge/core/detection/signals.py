"""The four signals and the one table that combines them: structured, pattern, waiting probe, silence.

Each signal gives evidence with a score.  `decide_raise` answers a single question: is a person awaited here, now?
"""

from __future__ import annotations

from atlasbridge.core.detection.events import ProbeAnswer, ProbeState
from atlasbridge.core.prompt.model import Evidence, PromptType
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.recognition.finding import Finding
from atlasbridge.core.values import frozen

HIGH = 0.85
MEDIUM = 0.60
CAP = 0.99
MORE = 0.05  # for every further signal that agrees
KNOWN = 0.8  # a pattern this sure is no accident
SURE = 0.9
UNSEEN_S = 1.5
AROUND_S = 0.5
BRISK_S = 2.0  # the period of a timer that may well draw how far the work is
FIRED_S = 0.3
TICK_S = 1.5  # a clock that shows seconds has moved on by then
REWRITTEN = 2
OVERRIDES_BUSY = 100  # a rule of this priority is the tool's own word

PROBE_SCORE = {ProbeState.READING: 0.95, ProbeState.POLLING: 0.65, ProbeState.UNKNOWN: 0.0, ProbeState.BUSY: 0.0}


@frozen
class Moment:
    """How long things have been as they are, in seconds."""

    settled_s: float  # since the last cell that counts changed
    rest_s: float  # how long it must be settled because it has been moving in a rhythm
    typed_s: float | None  # since a person typed something that was no Enter
    calm_s: float = 60.0  # since any cell changed, blinking ones included
    attended: bool = False  # a person at the terminal has just sent a line at this very prompt
    rewritten: int = 0  # how often the line of the cursor was begun anew: what shows how far it is does so


@frozen
class Patience:
    """How long to wait before each kind of certainty is good enough."""

    settle_s: float = 0.05
    threshold: float = 0.65  # the least score of a line that is believed while nothing says that the tool reads
    polling_s: float = 0.15
    silence_s: float = 2.0
    timer_s: float = 12.0  # an event loop with a timer, and nothing on the screen that asks
    typing_s: float = 1.0
    attended_s: float = 0.6  # the same prompt for a command again, while somebody sits there and types them
    idle_s: float = 0.5  # "what next?" is in no hurry, and boxes flicker between two steps of work
    stranger_s: float = 10.0  # a screen that a tool's own dialect does not know
    wordless_s: float = 4.0  # nobody can tell, and nothing was ever written
    pause_s: float = 30.0  # nobody can tell, and the last line was ended: most such programs work


def combine(evidence: list[Evidence]) -> float:
    """The strongest signal, a little stronger for each other one that is at least medium."""
    scores = sorted((item.score for item in evidence), reverse=True)
    if not scores:
        return 0.0
    return min(CAP, scores[0] + MORE * sum(1 for score in scores[1:] if score >= MEDIUM))


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


def decide_raise(
    found: Finding, probe: ProbeAnswer, moment: Moment, dialect: Dialect, structured: str, patience: Patience
) -> tuple[bool, str]:
    """Whether to raise now, and why or why not."""
    if moment.settled_s < patience.settle_s:
        return False, f"the screen changed {moment.settled_s * 1000:.0f} ms ago"
    if found.type is PromptType.TYPE_UNKNOWN and moment.typed_s is not None and moment.typed_s < patience.typing_s:
        return False, "somebody is typing"
    if moment.attended and found.score < KNOWN and moment.settled_s < patience.attended_s:
        return False, "a prompt for the next command, and somebody is there"
    if found.rule == "silent" and moment.settled_s < (patience.polling_s if probe.canonical else patience.silence_s):
        return False, "it reads, but it has only begun, or asked the terminal something"
    if found.type is PromptType.TYPE_UNKNOWN and probe.command in dialect.quiet_programs:
        return False, f"{probe.command} shows, it does not ask"
    if probe.state is ProbeState.READING:
        return True, "a process blocks in read on the terminal"
    if probe.state is ProbeState.POLLING:
        return _polling(found, probe, moment, dialect, structured, patience)
    return _unknown(found, probe, moment, dialect, structured, patience)


def reads_unseen(found: Finding, probe: ProbeAnswer, moment: Moment, dialect: Dialect) -> bool:
    """No reader can be seen (a loop that sleeps, a process of another session), yet the terminal was put into a mode
    that only a reader of keys wants, and a question that is beyond doubt has stood there for a while."""
    if probe.rows and _around(found, probe):
        return moment.settled_s >= AROUND_S
    keys = probe.canonical is False
    hidden = probe.canonical is True and probe.echo is False and bool(found.constraints.get("secret"))
    return (
        (keys or hidden)
        and not probe.certain
        and not dialect.idles
        and probe.command not in dialect.quiet_programs
        and found.score >= SURE
        and not found.constraints.get("idle")
        and min(moment.settled_s, moment.calm_s) >= UNSEEN_S
    )


def _around(found: Finding, probe: ProbeAnswer) -> bool:
    """Does the program ask that runs the terminal inside this one (a multiplexer)?  It stands below that terminal, or
    in a bar that covers its last line."""
    return found.row >= probe.rows or (found.barred and found.score >= SURE)


def _may_count_down(found: Finding) -> bool:
    """A row of the dialog is a number and nothing else."""
    return found.structural and any(row.strip(" │┃║|").isdecimal() for row in found.excerpt.split("\n"))


def _polling(
    found: Finding, probe: ProbeAnswer, moment: Moment, dialect: Dialect, structured: str, patience: Patience
) -> tuple[bool, str]:
    idle = bool(found.constraints.get("idle"))
    needed = patience.idle_s if idle else patience.polling_s
    if moment.settled_s < needed:
        return False, f"an event loop: still for {moment.settled_s:.2f} s, {needed:.2f} s are needed"
    if (moment.rest_s or moment.calm_s < patience.polling_s) and not found.structural:
        return (
            False,
            f"something moves: calm for {moment.calm_s:.2f} s, and it has a rhythm of {moment.rest_s / 2:.2f} s",
        )
    if probe.timer and not structured and _may_count_down(found) and moment.settled_s < TICK_S:
        return False, "a number that may count down by itself"
    if structured or (found.structural and found.score >= patience.threshold):
        return True, "an event loop watches the terminal, and a dialog stands on the screen"
    if dialect.idles and (found.score < KNOWN or found.detached):
        enough = moment.settled_s >= patience.stranger_s
        return enough, "a screen that this tool's dialect does not know" + ("" if enough else ": give it time")
    if probe.command in dialect.quiet_programs and found.rule != "footer":
        return False, f"{probe.command} shows, it does not ask"
    if found.detached and (found.score < MEDIUM or probe.serves):
        return False, "an event loop that also takes lines, and nothing asks for one"
    if found.score < KNOWN and 0 < probe.period_s <= BRISK_S and moment.settled_s < probe.period_s + FIRED_S:
        return False, f"it wakes after {probe.period_s:.1f} s, and may only show how far it is"
    if found.score >= patience.threshold and found.type is not PromptType.TYPE_UNKNOWN:
        return True, "an event loop watches the terminal, and a line asks"
    if probe.others and found.type is PromptType.TYPE_UNKNOWN and moment.settled_s < patience.silence_s:
        return False, "a screen that says nothing, and news may come from elsewhere: give it time"
    if not probe.timer or probe.command in dialect.screen_programs:
        return True, "an event loop watches nothing but the terminal, and has come to rest"
    if moment.settled_s >= max(patience.timer_s, probe.period_s + TICK_S):
        return True, "an event loop with a timer that changes nothing"
    return False, "an event loop with a timer, and nothing asks"


def _unknown(
    found: Finding, probe: ProbeAnswer, moment: Moment, dialect: Dialect, structured: str, patience: Patience
) -> tuple[bool, str]:
    hidden = probe.canonical is True and probe.echo is False
    needed = 0.2 if hidden else patience.silence_s
    if moment.settled_s < needed:
        return False, f"nobody can tell; silent for {moment.settled_s:.2f} s, {needed:.1f} s are needed"
    if structured or hidden or found.structural or found.score >= patience.threshold:
        return True, "nobody can tell, but something asks and it is silent"
    return _silence(found, moment, dialect, patience)


def _silence(found: Finding, moment: Moment, dialect: Dialect, patience: Patience) -> tuple[bool, str]:
    """Nobody can tell and nothing asks: silence is all there is.  Never for ever, and the later the less it looks as if
    somebody were awaited: behind a line that was not ended soon, below one that was only after a long time."""
    if found.rule == "silent":
        needed = patience.wordless_s
    elif found.detached or dialect.idles or moment.rewritten >= REWRITTEN:
        needed = patience.pause_s
    else:
        needed = patience.silence_s
    silent_s = min(moment.settled_s, moment.calm_s)
    if silent_s < needed:
        return False, f"nobody can tell, and nothing asks; silent for {silent_s:.2f} s, {needed:.1f} s are needed"
    return True, f"nobody can tell, nothing asks, and it has been silent for {silent_s:.1f} s"
