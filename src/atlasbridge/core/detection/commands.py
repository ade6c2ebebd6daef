"""What the detector asks for."""

from __future__ import annotations

from atlasbridge.core.prompt.model import Prompt
from atlasbridge.core.values import frozen


@frozen
class RaisePrompt:
    prompt: Prompt


@frozen
class WithdrawPrompt:
    """The open prompt is no longer there.  `reason` is "answered_at_terminal", "moved_on", "answered" or "exited"."""

    digest: str
    reason: str


@frozen
class RequestWakeup:
    """Call `handle(WakeupDue(), now)` at `at`, on the clock of `now`.  Only the newest request counts."""

    at: float


@frozen
class RequestProbe:
    """Look at the foreground process group now and answer with `ProbeAnswered`."""


Command = RaisePrompt | WithdrawPrompt | RequestWakeup | RequestProbe
