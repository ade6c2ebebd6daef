"""The base class of Prompt Lab scenarios, their results, and their registry."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from atlasbridge.core.prompt.model import Prompt
from atlasbridge.lab.live_terminal import LiveTerminal


@dataclass(slots=True)
class DetectorResult:
    """All commands of the detector during a scenario, in order."""

    raised: list[Prompt] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    latency_s: list[float] = field(default_factory=list)  # from the last output to each prompt
    virtual_s: list[float] = field(default_factory=list)  # the same on a virtual clock, independent of load
    explanation: list[str] = field(default_factory=list)

    @property
    def last(self) -> Prompt:
        check(bool(self.raised), "no prompt was raised")
        return self.raised[-1]


class ScenarioFailed(AssertionError):
    """A scenario's expectation was not met."""


def check(holds: bool, expectation: str) -> None:
    """An assertion that also works under `python -O`, because scenarios are part of the product."""
    if not holds:
        raise ScenarioFailed(expectation)


class BasePromptLabScenario:
    """One behaviour of a terminal program, performed by a real child on a real pseudo-terminal (`self.terminal`).

    A scenario can also write the output itself: `run` writes to `master_fd`, and the detector reads it from `slave_fd`.
    `setup` can create its own pair, as `self.master, self.slave`.
    """

    qa_id: ClassVar[str]
    name: ClassVar[str]
    description: ClassVar[str]
    platform: ClassVar[list[str]] = ["macos", "linux"]
    within_s: ClassVar[float] = 0.2  # from coming to rest to the prompt, if the system tells who reads
    blind_within_s: ClassVar[float] = 2.5  # if it cannot tell: the silence of the specification, and one probe

    def __init__(self, blind: bool = False) -> None:
        """`blind` simulates a system that cannot tell who reads the terminal."""
        self.terminal = LiveTerminal(blind=blind)
        self.master_fd, self.slave_fd = -1, -1

    async def setup(self) -> None:
        """Prepare the scenario before anything runs."""

    async def run(self) -> None:
        """Run a program, and answer it."""
        raise NotImplementedError(f"{type(self).__name__} says nothing")  # every scenario must implement it

    async def assert_behavior(self, result: DetectorResult) -> None:
        """Check the detector's result; raise `ScenarioFailed` with the expectation."""
        raise NotImplementedError(f"{type(self).__name__} expects nothing")  # every scenario must implement it

    async def perform(self) -> DetectorResult:
        """Run the whole scenario; the terminal is closed in any case."""
        own = os.openpty() if hasattr(os, "openpty") else ()
        try:
            if own:
                self.master_fd, self.slave_fd = own
            await self.setup()
            if own:
                slave = getattr(self, "slave", self.slave_fd)
                self.terminal.watch(slave if isinstance(slave, int) else slave.fileno())
            await self.run()
            await self.terminal.rest()
            result = self.terminal_result()
            await self.assert_behavior(result)
            self._check_latency(result)
            return result
        finally:
            await self.terminal.close()
            for fd in own:
                os.close(fd)

    def terminal_result(self) -> DetectorResult:
        live = self.terminal
        return DetectorResult(
            list(live.raised), list(live.withdrawn), list(live.latency_s), live.virtual_latency_s(), live.explain()
        )

    def _check_latency(self, result: DetectorResult) -> None:
        limit = self.blind_within_s if self.terminal.blind else self.within_s
        check(
            len(result.virtual_s) >= len(result.raised),
            f"the same prompts on the virtual clock: {len(result.virtual_s)} of {len(result.raised)}",
        )
        late = [value for value in result.virtual_s if value > limit]
        check(not late, f"raised within {limit * 1000:.0f} ms of coming to rest, not after {late} s (virtual clock)")


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A scenario of the gating matrix that runs in another test suite, because it is about a channel
    or another system."""

    qa_id: str
    name: str
    description: str
    platform: tuple[str, ...]
    where: str
    test: str  # a test file of the source tree; `word` selects its tests
    word: str


REGISTER: dict[str, type[BasePromptLabScenario]] = {}
ELSEWHERE: dict[str, Elsewhere] = {}


def register(scenario: type[BasePromptLabScenario]) -> type[BasePromptLabScenario]:
    """Class decorator; each QA id can be used once."""
    if scenario.qa_id in REGISTER or scenario.qa_id in ELSEWHERE:
        raise ValueError(f"{scenario.qa_id} is taken")
    scenario.name = scenario.__name__
    REGISTER[scenario.qa_id] = scenario
    return scenario


def register_elsewhere(entry: Elsewhere) -> None:
    if entry.qa_id in REGISTER or entry.qa_id in ELSEWHERE:
        raise ValueError(f"{entry.qa_id} is taken")
    ELSEWHERE[entry.qa_id] = entry


def find(word: str) -> list[type[BasePromptLabScenario]]:
    """Find by QA id or by class name, case-insensitive."""
    low = word.lower()
    return [item for item in REGISTER.values() if low in (item.qa_id.lower(), item.name.lower())]


def all_scenarios() -> Iterator[type[BasePromptLabScenario]]:
    yield from (REGISTER[qa_id] for qa_id in sorted(REGISTER))
