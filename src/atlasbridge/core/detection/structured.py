"""What the tool says about itself: OSC 7501 program status, desktop notifications, hooks and event APIs.

None of these covers every dialog and all can be late, lost, doubled or wrong, so they raise confidence and enrich a
prompt; they are never the only way to raise it or to withdraw it.  Words in the stream are hints that anything which
is shown could have written: they stand apart.  A hook's subject counts only if it is what the dialog shows.
"""

from __future__ import annotations

import base64
import binascii

from atlasbridge.core.detection.events import StructuredEventReceived
from atlasbridge.core.detection.fitting import covers, fits
from atlasbridge.core.prompt.subject import Subject
from atlasbridge.core.values import frozen

FRESH_S = 10.0  # a hook speaks when its dialog appears
SOON_S = 1.5
MOST_AT_ONCE = 16
_STATES = {"idle": "idle", "done": "idle", "working": "working"}


@frozen
class ShownDialog:
    """What a hook must be about, as it is shown; `clipped`: its end may be missing without a word; `names`: it shows
    no more of an edit than these files.

    `about`: what the dialog itself shows as its subject.  `own`: the tool's dialect knows it.  Of any other question
    nobody can tell where it begins, and a hook would find its words somewhere on the screen."""

    text: str
    clipped: bool = False
    names: tuple[str, ...] = ()
    about: Subject | None = None
    own: bool = True


class ToolSays:
    """The newest word of the tool."""

    def __init__(self) -> None:
        self.state = ""  # "blocked", "idle", "working" or "": what program status says
        self.source = ""
        self._text = ""
        self._beside: list[tuple[float, StructuredEventReceived]] = []  # since the last dialog; a tool may ask at once
        self._raised_at = 0.0
        self._unheard: ShownDialog | None = None  # the dialog that was raised before its hook had come

    def hear(self, event: StructuredEventReceived, now: float) -> None:
        """Beside the stream.  A dialog that is announced there says nothing about the state: it may be over already."""
        if event.kind in _STATES:
            self.state, self.source = _STATES[event.kind], event.source or event.kind
        else:
            self._beside = [*self._beside[1 - MOST_AT_ONCE :], (now, event)]

    def notice(self, kind: str, payload: str) -> None:
        """A notice in the stream: `7501`, `9`, `99`, `777` or a bell; titles are the dialect's business."""
        if kind.endswith("7501") or kind == "status":
            self._status(payload)
        elif kind.removeprefix("osc") in ("9", "99", "777") and not payload.startswith("4;"):
            self.source = f"notification: {payload[:60]}"

    def asks(self, dialog: ShownDialog, now: float) -> str:
        """The evidence that the tool waits at the dialog which is shown, or ""."""
        if self.state == "blocked":
            return f"{self.source} says that it waits"
        beside = self._announced(dialog, now)
        return f"{beside.source} says that it waits" if beside is not None else ""

    def hooked(self, dialog: ShownDialog, now: float) -> bool:
        """Whether a hook has announced the dialog that is shown."""
        return self._announced(dialog, now) is not None

    def announces(self, now: float) -> bool:
        """Whether a hook has spoken of a dialog that must be about to come: some tools take a second to draw it."""
        return any(now - at < SOON_S for at, beside in self._beside if beside.subject is not None)

    def subject(self, dialog: ShownDialog, now: float) -> Subject | None:
        """What a hook said that the dialog which is shown is about."""
        beside = self._announced(dialog, now) if dialog.own else None
        return beside.subject if beside is not None else None

    def contradicts(self, dialog: ShownDialog, now: float) -> bool:
        """A hook has just announced something else than what is shown: then the screen alone is not to be relied on."""
        return bool(self._fresh(now)) and not self.hooked(dialog, now)

    @property
    def hint(self) -> str:
        """What it said in the stream about the moment it waits at: anything that it shows may have written that."""
        return self._text if self.state == "blocked" else ""

    def _announced(self, dialog: ShownDialog, now: float) -> StructuredEventReceived | None:
        """The one that fits.  Of several that differ nobody can tell which it is: what is shown is a part of each."""
        fitting = [(beside.subject, beside) for beside in self._fresh(now) if beside.subject is not None]
        fitting = [(about, beside) for about, beside in fitting if _is_about(about, dialog)]
        alike = {(about.kind, about.text, about.target) for about, _ in fitting}
        return fitting[-1][1] if len(alike) == 1 else None

    def _late(self, beside: StructuredEventReceived) -> bool:
        """Whether it is about the dialog that was raised without it."""
        return self._unheard is not None and (beside.subject is None or _is_about(beside.subject, self._unheard))

    def _fresh(self, now: float) -> list[StructuredEventReceived]:
        return [beside for at, beside in self._beside if now - at < FRESH_S and beside.subject is not None]

    def raised(self, dialog: ShownDialog, now: float) -> None:
        """A person is asked: what was said until now is about this, or older; at an input box, about what may come."""
        self._raised_at = now if dialog.text else self._raised_at
        self._unheard = None if self.hooked(dialog, now) else dialog

    def forget(self) -> None:
        """The prompt is gone; what was said about it is old.  A hook may already have announced the next."""
        self._text = ""
        self._beside = [(at, beside) for at, beside in self._beside if at > self._raised_at and not self._late(beside)]
        if self.state == "blocked":
            self.state = ""

    def _status(self, payload: str) -> None:
        parts = dict(part.split("=", 1) for part in payload.split(":") if "=" in part)
        state = parts.get("state", "")
        if not state:
            return
        self.state = {"blocked": "blocked", "working": "working", "idle": "idle", "done": "idle"}.get(state, "")
        self.source = f"{parts.get('app', 'the tool')} (program status)"
        self._text = _decoded(parts.get("msg", "")) if self.state == "blocked" else ""


def _is_about(told: Subject, dialog: ShownDialog) -> bool:
    if not fits(told, dialog.text, dialog.clipped, dialog.names):
        return False
    return bool(dialog.names) or covers(told, dialog.about, dialog.clipped)


def _decoded(message: str) -> str:
    try:
        return base64.b64decode(message + "=" * (-len(message) % 4), validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""
