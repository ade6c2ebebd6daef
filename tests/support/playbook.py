"""A test as a dialogue with the detector: `play >> what happens`, `play << what must come of it`.

Time is a number that only the test advances.  Text is output, a float is seconds that pass, anything else an event.
"""

from __future__ import annotations

from dataclasses import dataclass

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core.detection.detector import Detector
from atlasbridge.core.detection.events import (
    Command,
    Event,
    KeysTyped,
    OutputReceived,
    ProbeAnswer,
    ProbeState,
    RaisePrompt,
    ReplyTyped,
    WithdrawPrompt,
)
from atlasbridge.core.detection.verdict import DetectorSettings
from atlasbridge.core.prompt.model import Prompt
from atlasbridge.lab.replay import Player

READING = ProbeAnswer(ProbeState.READING, "reads", echo=True, canonical=True)
HIDDEN = ProbeAnswer(ProbeState.READING, "reads", echo=False, canonical=True)
RAW = ProbeAnswer(ProbeState.READING, "reads", echo=False, canonical=False)
ONE_KEY = ProbeAnswer(ProbeState.READING, "reads", echo=True, canonical=False)
POLLING = ProbeAnswer(ProbeState.POLLING, "polls", echo=False, canonical=False)
TICKING = ProbeAnswer(ProbeState.POLLING, "polls with a timer", echo=False, canonical=False, timer=True)
BUSY = ProbeAnswer(ProbeState.BUSY, "runs", echo=True, canonical=True)
BLIND = ProbeAnswer(ProbeState.UNKNOWN, "nobody can tell")


@dataclass(frozen=True)
class Raised:
    type: str
    part: str = ""


@dataclass(frozen=True)
class Withdrawn:
    reason: str


@dataclass(frozen=True)
class Nothing:
    pass


@dataclass(frozen=True)
class Keys:
    """Typed by the person at the terminal."""

    text: str


class Playbook:
    def __init__(
        self,
        probe: ProbeAnswer = READING,
        dialect: str = "generic",
        rows: int = 24,
        cols: int = 80,
        settings: DetectorSettings | None = None,
    ) -> None:
        self.detector = Detector(load_dialect(dialect), rows, cols, settings)
        self.player = Player(self.detector, probe)
        self.now = 100.0
        self.heard: list[tuple[float, Command]] = []
        self.last: Prompt | None = None

    def __rshift__(self, what: str | bytes | float | ProbeAnswer | Keys | Event) -> Playbook:
        match what:
            case str():
                self._tell(OutputReceived(what.replace("\n", "\r\n").encode()))
            case bytes():
                self._tell(OutputReceived(what))
            case float() | int():
                self._rest(float(what))
            case ProbeAnswer():
                self.player.probe = what
            case Keys(text):
                self._tell(KeysTyped(text.encode()))
            case _:
                self._tell(what)
        return self

    def __lshift__(self, expected: Raised | Withdrawn | Nothing) -> Playbook:
        if isinstance(expected, Nothing):
            assert not self.heard, f"expected silence, but heard {self._heard()}; {self.detector.explain()}"
            return self
        assert self.heard, f"expected {expected}, but heard nothing; {self.detector.explain()}"
        _, command = self.heard.pop(0)
        match expected, command:
            case Raised(type=kind, part=part), RaisePrompt(prompt):
                assert prompt.type.value == kind, (
                    f"expected {expected}, but it is {prompt.type.value}: {prompt.excerpt!r}"
                )
                assert part in prompt.excerpt, f"expected {part!r} in {prompt.excerpt!r}"
                self.last = prompt
            case Withdrawn(reason=reason), WithdrawPrompt(reason=heard):
                assert heard == reason, f"expected {reason}, but it was {heard}"
            case _:
                raise AssertionError(f"expected {expected}, but heard {command}")
        return self

    @property
    def prompt(self) -> Prompt:
        assert self.last is not None, "no prompt has been raised"
        return self.last

    def reply(self) -> Playbook:
        """The host says that it types the answer to the open prompt."""
        return self >> ReplyTyped(self.prompt.digest)

    def raised_after(self) -> float:
        """Seconds from the last output to the raising that stands next in line."""
        at, command = self.heard[0]
        assert isinstance(command, RaisePrompt), command
        return at - self._output_at

    def _tell(self, event: Event) -> None:
        if isinstance(event, OutputReceived):
            self._output_at = self.now
        self.heard += self.player.tell(event, self.now)

    def _rest(self, seconds: float) -> None:
        self.heard += self.player.pass_time(self.now + seconds)
        self.now += seconds

    def _heard(self) -> list[str]:
        return [type(command).__name__ for _, command in self.heard]
