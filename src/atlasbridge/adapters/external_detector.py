"""The detector of a session whose adapter somebody else wrote: that adapter's word comes first, and the usual detector
raises what it leaves out.

While a prompt of the adapter's is open, the usual detector only keeps watching.  What it alone has seen is raised after
a moment in which the adapter could have spoken.
"""

from __future__ import annotations

import json

from atlasbridge.adapters.event import prompt_of_event
from atlasbridge.core.detection.events import (
    ChildExited,
    Command,
    Event,
    OutputReceived,
    RaisePrompt,
    ReplyTyped,
    RequestWakeup,
    StructuredEventReceived,
    WithdrawPrompt,
)
from atlasbridge.core.host.ports import DetectorLike
from atlasbridge.core.prompt.model import Prompt

GRACE_S = 3.0  # after the last output; an adapter that goes by silence needs more than two seconds


class ExternalDetector:
    def __init__(self, usual: DetectorLike) -> None:
        self._usual = usual
        self.screen = usual.screen
        self._told: Prompt | None = None
        self._raised = ""  # the digest of what the usual detector was allowed to raise
        self._due: float | None = None  # when it may raise what it has seen
        self._output_at = 0.0
        self._wake_at = 0.0  # the last wake-up that the usual detector asked for

    @property
    def open_prompt(self) -> Prompt | None:
        return self._told or (self._usual.open_prompt if self._raised else None)

    @property
    def despite_busy(self) -> bool:
        """What its process does is the adapter's business."""
        return self._told is not None or self._usual.despite_busy

    @property
    def secrets(self) -> tuple[str, ...]:
        return self._usual.secrets

    @secrets.setter
    def secrets(self, values: tuple[str, ...]) -> None:
        self._usual.secrets = values

    def handle(self, event: Event, now: float) -> list[Command]:
        if isinstance(event, OutputReceived):
            self._output_at = now
        match event:
            case StructuredEventReceived("prompt", text):
                return self._tell(text)
            case StructuredEventReceived("resolved"):
                return self._settle("answered", now)
            case ReplyTyped() if self._told is not None:
                return self._answered(now)
            case ChildExited():
                return [*self._settle("exited", now), *self._passed(self._usual.handle(event, now), now)]
        return self._passed(self._usual.handle(event, now), now)

    def still_shows(self, digest: str) -> bool:
        return self._usual.still_shows(digest) if self._told is None else self._told.digest == digest

    def has_left(self, digest: str) -> bool:
        return self._usual.has_left(digest) if self._told is None else self._told.digest != digest

    def took_first_key(self) -> None:
        self._usual.took_first_key()

    def begun(self, now: float) -> bool:
        """Whether half a line was typed is not visible where an adapter reads it."""
        return self._told is None and self._usual.begun(now)

    def explain(self) -> list[str]:
        return ["its adapter says what it asks"] if self._told is not None else self._usual.explain()

    def reconsider(self) -> None:
        self._told, self._raised, self._due = None, "", None
        self._usual.reconsider()

    def _tell(self, text: str) -> list[Command]:
        try:
            prompt = prompt_of_event(json.loads(text))
        except (ValueError, KeyError, TypeError):
            return []  # not an event of the frozen interface
        gone = self.open_prompt
        self._told, self._raised, self._due = prompt, "", None
        return [*([WithdrawPrompt(gone.digest, "moved_on")] if gone else []), RaisePrompt(prompt)]

    def _settle(self, reason: str, now: float) -> list[Command]:
        """The adapter's prompt is over; should the tool wait all the same, the usual detector sees it."""
        told, self._told = self._told, None
        if told is None:
            return []
        self._due = now + GRACE_S if self._usual.open_prompt is not None else None
        return [WithdrawPrompt(told.digest, reason)]

    def _answered(self, now: float) -> list[Command]:
        seen = self._usual.open_prompt
        return [] if seen is None else self._passed(self._usual.handle(ReplyTyped(seen.digest), now), now)

    def _passed(self, commands: list[Command], now: float) -> list[Command]:
        """What the usual detector says, as far as it is its turn."""
        out: list[Command] = []
        for command in commands:
            match command:
                case RaisePrompt():
                    self._due = max(now, self._output_at + GRACE_S)
                case WithdrawPrompt(digest):
                    out += [command] if digest == self._raised else []
                    self._raised, self._due = "", None
                case RequestWakeup(at):
                    self._wake_at = at
                    out.append(command)
                case _:
                    out.append(command)
        due = self._due is not None and now >= self._due and self._told is None
        seen = self._usual.open_prompt if due else None
        if seen is not None:
            self._raised, self._due = seen.digest, None
            out.append(RaisePrompt(seen))
        if self._due is None:
            return out
        return [*out, RequestWakeup(min(self._due, self._wake_at) if self._wake_at > now else self._due)]
