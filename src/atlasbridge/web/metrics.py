"""Counters in the text format of Prometheus.  Labels come from closed sets only, never from a prompt or a tool."""

from __future__ import annotations

from collections import Counter
from typing import Any

BUCKETS = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0)


class Counters:
    def __init__(self) -> None:
        self.events: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.refusals: Counter[str] = Counter()
        self.waits: Counter[float] = Counter()
        self.wait_sum = 0.0
        self.wait_count = 0

    def count_event(self, event: dict[str, Any]) -> None:
        self.events[str(event.get("event", ""))] += 1

    def count_status(self, status: int) -> None:
        self.statuses[status] += 1

    def count_wait(self, seconds: float) -> None:
        """Count how long a prompt waited for its answer."""
        self.wait_sum += seconds
        self.wait_count += 1
        for bucket in BUCKETS:
            self.waits[bucket] += seconds <= bucket

    def render(self, gauges: dict[str, tuple[str, float]]) -> str:
        lines: list[str] = []
        for name, (about, value) in gauges.items():
            lines += [f"# HELP atlasbridge_{name} {about}", f"# TYPE atlasbridge_{name} gauge"]
            lines.append(f"atlasbridge_{name} {value:g}")
        lines += _family("events_total", "Events of the hub since it started", "event", self.events)
        lines += _family("http_responses_total", "HTTP responses by status", "status", self.statuses)
        lines += _family("replies_refused_total", "Refused replies of this channel by reason", "reason", self.refusals)
        return "\n".join([*lines, *self._histogram(), ""])

    def _histogram(self) -> list[str]:
        name = "atlasbridge_answer_wait_seconds"
        lines = [f"# HELP {name} Time from a prompt to its accepted answer", f"# TYPE {name} histogram"]
        lines += [f'{name}_bucket{{le="{bucket:g}"}} {self.waits[bucket]}' for bucket in BUCKETS]
        lines.append(f'{name}_bucket{{le="+Inf"}} {self.wait_count}')
        return [*lines, f"{name}_sum {self.wait_sum:g}", f"{name}_count {self.wait_count}"]


def _family(name: str, about: str, label: str, counter: Counter[Any]) -> list[str]:
    full = f"atlasbridge_{name}"
    lines = [f"# HELP {full} {about}", f"# TYPE {full} counter"]
    return lines + [f'{full}{{{label}="{key}"}} {counter[key]}' for key in sorted(counter, key=str)]
