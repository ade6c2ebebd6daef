"""The waiting probe of a system that cannot tell: it says `unknown`, which is a valid answer."""

from __future__ import annotations

from atlasbridge.core.detection.events import ProbeAnswer, ProbeState


class NoProbe:
    def look(self, quiet_s: float, input_age_s: float | None) -> ProbeAnswer:
        return ProbeAnswer(ProbeState.UNKNOWN, "this system cannot tell")
