"""What the detector asks for."""

from __future__ import annotations

from dataclasses import dataclass

from atlasbridge.core.prompt.model import Prompt


@dataclass(frozen=True, slots=True)
class RaisePrompt:
    prompt: Prompt


@dataclass(frozen=True, slots=True)
class WithdrawPrompt:
    """The open prompt is no longer there.  `reason` is "answered_at_terminal", "moved_on", "answered" or "exited"."""

    digest: str
    reason: str


@dataclass(frozen=True, slots=True)
class RequestWakeup:
    """Call `handle(WakeupDue(), now)` at `at`, on the clock of `now`.  Only the newest request counts."""

    at: float


@dataclass(frozen=True, slots=True)
class RequestProbe:
    """Look at the foreground process group now and answer with `ProbeAnswered`."""


Command = RaisePrompt | WithdrawPrompt | RequestWakeup | RequestProbe
