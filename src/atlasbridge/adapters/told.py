"""The detector of a session whose adapter comes from another package: it raises what that adapter detected.

It judges nothing by itself; the screen is kept for those who want to see it.
"""

from __future__ import annotations

import json

from atlasbridge.adapters.event import prompt_of_event
from atlasbridge.core.detection.commands import Command, RaisePrompt, WithdrawPrompt
from atlasbridge.core.detection.events import ChildExited, Event, OutputReceived, Resized, StructuredEventReceived
from atlasbridge.core.prompt.model import Prompt
from atlasbridge.core.screen.screen import Screen


class ToldDetector:
    def __init__(self, rows: int, cols: int, secrets: tuple[str, ...] = ()) -> None:
        self.secrets = secrets
        self.screen = Screen(rows, cols)
        self.open_prompt: Prompt | None = None
        self.despite_busy = True  # what its process does is the adapter's business

    def handle(self, event: Event, now: float) -> list[Command]:
        match event:
            case OutputReceived(data):
                self.screen.feed(data)
            case Resized(rows, cols):
                self.screen.resize(rows, cols)
            case StructuredEventReceived("prompt", text):
                return self._raise(text)
            case StructuredEventReceived("resolved"):
                return self._withdraw("answered")
            case ChildExited():
                return self._withdraw("exited")
        return []

    def still_shows(self, digest: str) -> bool:
        return self.open_prompt is not None and self.open_prompt.digest == digest

    def has_left(self, digest: str) -> bool:
        return not self.still_shows(digest)

    def begun(self, now: float) -> bool:
        return False  # whether half a line was typed is not visible here

    def reconsider(self) -> None:
        self.open_prompt = None

    def _raise(self, text: str) -> list[Command]:
        try:
            prompt = prompt_of_event(json.loads(text))
        except (ValueError, KeyError, TypeError):
            return []  # not an event of the frozen interface
        gone = self._withdraw("moved_on")
        self.open_prompt = prompt
        return [*gone, RaisePrompt(prompt)]

    def _withdraw(self, reason: str) -> list[Command]:
        prompt, self.open_prompt = self.open_prompt, None
        return [WithdrawPrompt(prompt.digest, reason)] if prompt else []
