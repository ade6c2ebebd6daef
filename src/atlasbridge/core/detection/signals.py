"""The four signals and what each is worth: structured, pattern, waiting probe, silence.

How sure a prompt is follows from them; whether it is raised is left to the table in `verdict`.
"""

from __future__ import annotations

from atlasbridge.core.detection.events import ProbeAnswer, ProbeState
from atlasbridge.core.prompt.model import Evidence
from atlasbridge.core.recognition.finding import Finding
from atlasbridge.core.values import field, frozen

MEDIUM = 0.60
CAP = 0.99
MORE = 0.05  # for every further signal that agrees
KNOWN = 0.8  # a pattern this sure is no accident
SURE = 0.9
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
    row_s: float = 60.0  # since the row of what asks changed


@frozen
class Patience:
    """How long to wait before each kind of certainty is good enough."""

    settle_s: float = 0.05
    threshold: float = 0.65  # the least score of a line that is believed while nothing says that the tool reads
    polling_s: float = 0.15
    silence_s: float = 2.0
    timer_s: float = 10.0  # an event loop with a timer, and nothing on the screen that asks
    typing_s: float = 1.0
    attended_s: float = 0.6  # the same prompt for a command again, while somebody sits there and types them
    idle_s: float = 0.5  # "what next?" is in no hurry, and boxes flicker between two steps of work
    stranger_s: float = 10.0  # a screen that a tool's own dialect does not know
    wordless_s: float = 4.0  # nobody can tell, and nothing was ever written
    pause_s: float = 30.0  # nobody can tell, and the last line was ended: most such programs work


@frozen
class DetectorSettings:
    """How often the detector looks, how long it waits, and what it must keep to itself."""

    patience: Patience = field(default_factory=Patience)
    first_look_s: float = 0.02
    look_every_s: float = 0.25
    slow_look_s: float = 0.5  # at most, after some seconds of nothing
    watch_s: float = 1.0  # while a prompt is open
    effect_s: float = 3.0  # an answered prompt that is still there after this is asked again
    hook_s: float = 0.0  # how long a dialog may wait for the hook of a tool that was started with one
    folder: str = ""  # where the tool works, for dialogs that do not say it
    secrets: tuple[str, ...] = ()  # values that must never leave, such as the child's secret environment


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
