"""What a session needs of a detector and of the tool's output, and the prompt that it has open."""

from __future__ import annotations

from typing import Any, Protocol

from atlasbridge.core.detection.commands import Command
from atlasbridge.core.detection.events import Event
from atlasbridge.core.prompt.model import Prompt
from atlasbridge.core.values import frozen


class DetectorLike(Protocol):
    """What the session needs of `core.detection.detector.Detector`."""

    screen: Any
    secrets: tuple[str, ...]

    @property
    def open_prompt(self) -> Prompt | None: ...
    @property
    def despite_busy(self) -> bool: ...
    def handle(self, event: Event, now: float) -> list[Command]: ...
    def still_shows(self, digest: str) -> bool: ...
    def begun(self, now: float) -> bool: ...
    def reconsider(self) -> None: ...
    def has_left(self, digest: str) -> bool: ...
    def explain(self) -> list[str]: ...


class Outflow(Protocol):
    """What the session must know of the way that the tool's output takes."""

    last_output_at: float
    finished: bool

    @property
    def pending(self) -> bool: ...
    @property
    def terminal_answers(self) -> bool: ...


@frozen
class Opened:
    """The prompt that is open, and the id under which it can be answered."""

    prompt_id: str
    prompt: Prompt
