"""What the tool says about itself: OSC 7501 program status, desktop notifications, hooks and event APIs.

None of these covers every dialog and all can be late, lost, doubled or wrong, so they raise confidence and enrich a
prompt; they are never the only way to raise it or to withdraw it, and words that do not fit the screen are dropped.
"""

from __future__ import annotations

import base64
import binascii

from atlasbridge.core.detection.events import StructuredEventReceived
from atlasbridge.core.recognition.menu import unframed

FRESH_S = 10.0  # a hook speaks when its dialog appears
CHECKED_CHARACTERS = 60
_STATES = {"idle": "idle", "done": "idle", "working": "working"}


class ToolSays:
    """The newest word of the tool."""

    def __init__(self) -> None:
        self.state = ""  # "blocked", "idle", "working" or "": what program status says
        self.source = ""
        self._text = ""
        self._beside: StructuredEventReceived | None = None
        self._beside_at = float("-inf")

    def hear(self, event: StructuredEventReceived, now: float) -> None:
        """Beside the stream.  A dialog that is announced there says nothing about the state: it may be over already."""
        if event.kind in _STATES:
            self.state, self.source = _STATES[event.kind], event.source or event.kind
        else:
            self._beside, self._beside_at = event, now

    def notice(self, kind: str, payload: str) -> None:
        """A notice in the stream: `7501`, `9`, `99`, `777` or a bell; titles are the dialect's business."""
        if kind.endswith("7501") or kind == "status":
            self._status(payload)
        elif kind.removeprefix("osc") in ("9", "99", "777") and not payload.startswith("4;"):
            self.source = f"notification: {payload[:60]}"

    def asks(self, shown: str, now: float) -> str:
        """The evidence that the tool waits at the dialog which is shown, or ""."""
        if self.state == "blocked":
            return f"{self.source} says that it waits"
        if self._beside is not None and self.hooked(shown, now):
            return f"{self._beside.source} says that it waits"
        return ""

    def hooked(self, shown: str, now: float) -> bool:
        """Whether a hook has announced the dialog that is shown."""
        beside = self._beside
        return beside is not None and now - self._beside_at < FRESH_S and fits(beside.text, shown)

    def words(self, shown: str, now: float) -> str:
        """What the tool said about the dialog that is shown: the hook's words, else the status message's."""
        if self._beside is not None and self.hooked(shown, now):
            return self._beside.text
        return self._text if self.state == "blocked" and fits(self._text, shown) else ""

    def forget(self) -> None:
        """The prompt is gone; what was said about it is old."""
        self._text = ""
        self._beside = None
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


def fits(words: str, shown: str) -> bool:
    """Whether what was said stands on the screen: the first line behind its label, however it is wrapped or framed."""
    first = words.strip().partition("\n")[0]
    wanted = "".join((first.partition(": ")[2] or first).split())[:CHECKED_CHARACTERS]
    return bool(wanted) and wanted in "".join(unframed(shown).split())


def _decoded(message: str) -> str:
    try:
        return base64.b64decode(message + "=" * (-len(message) % 4), validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""
