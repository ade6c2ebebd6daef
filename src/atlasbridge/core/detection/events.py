"""What the detector is told.  Time is an argument of `handle`, never a field."""

from __future__ import annotations

from enum import StrEnum

from atlasbridge.core.prompt.model import Prompt, Subject
from atlasbridge.core.values import frozen


class ProbeState(StrEnum):
    """What the terminal's foreground process group does."""

    READING = "reading"  # a thread blocks in read on this terminal, or in poll on nothing but this terminal
    POLLING = "polling"  # an event loop that watches the terminal among other things, and nothing else is under way
    BUSY = "busy"  # it runs, sleeps, or waits for something else: no prompt
    UNKNOWN = "unknown"


@frozen
class ProbeAnswer:
    state: ProbeState
    why: str = ""
    echo: bool | None = None
    canonical: bool | None = None
    pid: int = 0
    timer: bool = False  # polling with a finite timeout: it may animate
    period_s: float = 0.0  # how long that timeout is, where it can be seen
    command: str = ""  # name of the process that waits
    others: bool = False  # polling, and not the terminal alone: news may come from elsewhere
    serves: bool = False  # it also waits for callers, or for files to change: work that comes by itself
    certain: bool = False  # busy, and no reader can have been overlooked
    runs: bool = False  # busy for no other reason than that it runs: no request, no child, no terminal inside
    rows: int = 0  # height of the terminal inside this one that it is about: below, the program around it draws


@frozen
class OutputReceived:
    """Bytes the tool wrote."""

    data: bytes


@frozen
class WakeupDue:
    """The moment asked for by the last `RequestWakeup` has come."""


@frozen
class ProbeAnswered:
    answer: ProbeAnswer


@frozen
class StructuredEventReceived:
    """The tool said something itself, beside the stream: a hook or an event API."""

    kind: str  # "permission", "question", "idle", "working", "done"
    text: str = ""
    source: str = ""
    subject: Subject | None = None  # the whole command, edit, page, plan or question that is asked about
    note: str = ""  # what the dialog says below its subject
    missing_lines: int = 0  # of a subject that was too long to be told whole


@frozen
class KeysTyped:
    """By the person at the terminal."""

    data: bytes


@frozen
class ReplyTyped:
    """By the host, in answer to the open prompt."""

    prompt_digest: str


@frozen
class Resized:
    rows: int
    cols: int


@frozen
class ChildExited:
    pass


Event = (
    OutputReceived
    | WakeupDue
    | ProbeAnswered
    | StructuredEventReceived
    | KeysTyped
    | ReplyTyped
    | Resized
    | ChildExited
)


# What the detector asks for.


@frozen
class RaisePrompt:
    prompt: Prompt


@frozen
class WithdrawPrompt:
    """The open prompt is no longer there.  `reason` is "answered_at_terminal", "moved_on", "answered" or "exited"."""

    digest: str
    reason: str


@frozen
class RequestWakeup:
    """Call `handle(WakeupDue(), now)` at `at`, on the clock of `now`.  Only the newest request counts."""

    at: float


@frozen
class RequestProbe:
    """Look at the foreground process group now and answer with `ProbeAnswered`."""


Command = RaisePrompt | WithdrawPrompt | RequestWakeup | RequestProbe
