"""The events that the detector receives and the commands that it returns. Time is an argument of `handle`, never a
field.
"""

from __future__ import annotations

from enum import StrEnum

from atlasbridge.core.prompt.model import Prompt, Subject
from atlasbridge.core.values import frozen


class ProbeState(StrEnum):
    """What the terminal's foreground process group does."""

    READING = "reading"  # a thread blocks in read on this terminal, or in poll on this terminal alone
    POLLING = "polling"  # an event loop watches the terminal among other things, and nothing else is in progress
    BUSY = "busy"  # it runs, sleeps or waits for something else: no prompt
    UNKNOWN = "unknown"


@frozen
class ProbeAnswer:
    state: ProbeState
    why: str = ""
    echo: bool | None = None
    canonical: bool | None = None
    pid: int = 0
    timer: bool = False  # polling with a finite timeout: it possibly animates
    period_s: float = 0.0  # that timeout, if it is known
    command: str = ""  # name of the process that waits
    others: bool = False  # polling more than the terminal: other input can arrive
    serves: bool = False  # it also waits for connections or file changes: work that arrives without a person
    certain: bool = False  # busy, and no reader can have been missed
    sleeps: bool = False  # busy only because it sleeps in short turns; it can look at its keys in between
    runs: bool = False  # busy only because it runs: no request, no child process, no inner terminal
    turns: int = 0  # how often it has run so far: while this is equal, it asks the same; 0: unknown
    called: bool = False  # not the session's own program: that one, or its shell, has started it
    rows: int = 0  # height of the inner terminal, if there is one: the program around it draws below


@frozen
class OutputReceived:
    data: bytes


@frozen
class WakeupDue:
    """The time of the last `RequestWakeup` has come."""


@frozen
class ProbeAnswered:
    answer: ProbeAnswer


@frozen
class StructuredEventReceived:
    """The tool reported something outside its output stream: through a hook or an event API."""

    kind: str  # "permission", "question", "idle", "working", "done"
    text: str = ""
    source: str = ""
    subject: Subject | None = None  # the whole command, edit, page, plan or question
    note: str = ""  # the text of the dialog below its subject
    missing_lines: int = 0  # lines that were left out because the subject was too long


@frozen
class KeysTyped:
    data: bytes


@frozen
class ReplyTyped:
    """The host is about to type the answer to the open prompt."""

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


# The commands of the detector.


@frozen
class RaisePrompt:
    prompt: Prompt


@frozen
class WithdrawPrompt:
    """The open prompt is gone. `reason` is "answered_at_terminal", "moved_on", "answered" or "exited"."""

    digest: str
    reason: str


@frozen
class RequestWakeup:
    """Call `handle(WakeupDue(), now)` at `at`, on the clock of `now`. Only the newest request counts."""

    at: float


@frozen
class RequestProbe:
    """Look at the foreground process group now and answer with `ProbeAnswered`."""


Command = RaisePrompt | WithdrawPrompt | RequestWakeup | RequestProbe
