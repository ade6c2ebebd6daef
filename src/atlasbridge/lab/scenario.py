"""What a Prompt Lab scenario is, what the detector made of it, and the register of all of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from atlasbridge.core.prompt.model import Prompt
from atlasbridge.lab.livetty import LiveTerminal


@dataclass(slots=True)
class DetectorResult:
    """Everything the detector said during a scenario, in order."""

    raised: list[Prompt] = field(default_factory=list)
    withdrawn: list[str] = field(default_factory=list)
    latency_s: list[float] = field(default_factory=list)  # from the last output to each raising
    virtual_s: list[float] = field(default_factory=list)  # the same on a clock that no busy machine slows down
    explanation: list[str] = field(default_factory=list)

    @property
    def last(self) -> Prompt:
        check(bool(self.raised), "no prompt was raised")
        return self.raised[-1]


class ScenarioFailed(AssertionError):
    """What a scenario expected did not happen."""


def check(holds: bool, expectation: str) -> None:
    """An assertion that also holds its ground under `python -O`: scenarios are shipped, not only tested."""
    if not holds:
        raise ScenarioFailed(expectation)


class BasePromptLabScenario:
    """One behaviour of a terminal program, acted out by a real child on a real pseudo-terminal (`self.terminal`).

    A scenario may also write the output itself: what `run` writes to `master_fd` is what the detector reads from
    `slave_fd`.  `setup` may make a pair of its own, as `self.master, self.slave`.
    """

    qa_id: ClassVar[str]
    name: ClassVar[str]
    description: ClassVar[str]
    platform: ClassVar[list[str]] = ["macos", "linux"]
    within_s: ClassVar[float] = 0.2  # from coming to rest to the prompt, where the system tells who reads
    blind_within_s: ClassVar[float] = 2.5  # where it cannot tell: the silence of the specification, and a look

    def __init__(self, blind: bool = False) -> None:
        """`blind`: as on a system that cannot tell who reads the terminal."""
        self.terminal = LiveTerminal(blind=blind)
        self.master_fd, self.slave_fd = -1, -1

    async def setup(self) -> None:
        """Prepare what the scenario needs before anything runs."""

    async def run(self) -> None:
        """Make a program write, and answer it."""
        raise NotImplementedError(f"{type(self).__name__} says nothing")  # every scenario acts something out

    async def assert_behavior(self, result: DetectorResult) -> None:
        """Check what the detector made of it; raises `ScenarioFailed` with the expectation."""
        raise NotImplementedError(f"{type(self).__name__} expects nothing")  # every scenario expects something

    async def perform(self) -> DetectorResult:
        """The whole scenario; the terminal is closed whatever happens."""
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
    """A scenario of the gating matrix that runs in another suite, because it is about a channel or another system."""

    qa_id: str
    name: str
    description: str
    platform: tuple[str, ...]
    where: str
    test: str  # a file of the source, and the tests in it by a word
    word: str


REGISTER: dict[str, type[BasePromptLabScenario]] = {}
ELSEWHERE: dict[str, Elsewhere] = {}


def register(scenario: type[BasePromptLabScenario]) -> type[BasePromptLabScenario]:
    """Class decorator: a QA id is given once."""
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
    """By QA id or by class name, without regard to case."""
    low = word.lower()
    return [item for item in REGISTER.values() if low in (item.qa_id.lower(), item.name.lower())]


def all_scenarios() -> Iterator[type[BasePromptLabScenario]]:
    yield from (REGISTER[qa_id] for qa_id in sorted(REGISTER))
