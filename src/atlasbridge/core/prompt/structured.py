"""What the tool says about itself: OSC 7501 program status, desktop notifications, hooks and event APIs.

None of these covers every dialog and all can be late or lost, so they raise confidence and enrich a prompt; they are
never the only way to raise it or to withdraw it.
"""

from __future__ import annotations

import base64
import binascii

from atlasbridge.core.prompt.events import StructuredEventReceived

_STATES = {"permission": "blocked", "question": "blocked", "idle": "idle", "done": "idle", "working": "working"}


class ToolSays:
    """The newest word of the tool."""

    def __init__(self) -> None:
        self.state = ""  # "blocked", "idle", "working" or ""
        self.text = ""
        self.source = ""

    def hear(self, event: StructuredEventReceived) -> None:
        self.state = _STATES.get(event.kind, "")
        self.text = event.text
        self.source = event.source or event.kind

    def notice(self, kind: str, payload: str) -> None:
        """A notice in the stream: `7501`, `9`, `99`, `777` or a bell; titles are the dialect's business."""
        if kind.endswith("7501") or kind == "status":
            self._status(payload)
        elif kind.removeprefix("osc") in ("9", "99", "777") and not payload.startswith("4;"):
            self.source = f"notification: {payload[:60]}"

    def asks(self) -> str:
        """The evidence that the tool waits, or ""."""
        return f"{self.source} says that it waits" if self.state == "blocked" else ""

    def forget(self) -> None:
        """The prompt is gone; what was said about it is old."""
        self.text = ""
        if self.state == "blocked":
            self.state = ""

    def _status(self, payload: str) -> None:
        parts = dict(part.split("=", 1) for part in payload.split(":") if "=" in part)
        state = parts.get("state", "")
        if not state:
            return
        self.state = {"blocked": "blocked", "working": "working", "idle": "idle", "done": "idle"}.get(state, "")
        self.source = f"{parts.get('app', 'the tool')} (program status)"
        self.text = _decoded(parts.get("msg", "")) if self.state == "blocked" else ""


def _decoded(message: str) -> str:
    try:
        return base64.b64decode(message + "=" * (-len(message) % 4), validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""
