"""What the page plots: prompts per day, how long answers took, and who gave them.  It only reads."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from typing import Any

DAYS = 30
SAMPLES = 5000
NEWEST = 20_000  # entries of the audit log that are looked at
BUCKETS_S = (5, 15, 60, 300, 900, 3600)

Rows = Callable[[str], list[tuple[Any, ...]]]


def read_figures(rows: Rows) -> dict[str, Any]:
    days = rows(
        "SELECT substr(created_at, 1, 10) AS day, count(*), count(decided_at) FROM prompts"
        f" GROUP BY day ORDER BY day DESC LIMIT {DAYS}"
    )
    waits = rows(
        "SELECT (julianday(decided_at) - julianday(created_at)) * 86400 FROM prompts"
        f" WHERE decided_at IS NOT NULL ORDER BY rowid DESC LIMIT {SAMPLES}"
    )
    people = rows(
        "SELECT decided_by, count(*) FROM prompts WHERE decided_by IS NOT NULL AND decided_by != ''"
        " GROUP BY decided_by ORDER BY count(*) DESC LIMIT 20"
    )
    return {
        "days": [{"day": day, "raised": raised, "answered": answered} for day, raised, answered in reversed(days)],
        "answer_s": summarise_waits([max(0.0, seconds) for (seconds,) in waits]),
        "answered_by": dict(people),
    }


def read_ways(rows: Rows) -> dict[str, int]:
    """How answers came to their tools of late: typed, or taken by a hook or plugin."""
    return dict(
        rows(
            "SELECT coalesce(json_extract(entry, '$.way'), 'keys') AS way, count(*) FROM audit_events"
            f" WHERE event = 'REPLY_INJECTED' AND seq > (SELECT coalesce(max(seq), 0) - {NEWEST} FROM audit_events)"
            " GROUP BY way ORDER BY count(*) DESC"
        )
    )


def summarise_waits(waits: list[float]) -> dict[str, Any]:
    """Median, ninth decile, and counts by how long it took; the last bucket has no upper end."""
    waits = sorted(waits)
    counts = Counter(bisect_left(BUCKETS_S, wait) for wait in waits)
    buckets = [[upper, counts[at]] for at, upper in enumerate((*BUCKETS_S, None))]
    return {
        "count": len(waits),
        "median": round((waits[(len(waits) - 1) // 2] + waits[len(waits) // 2]) / 2, 1) if waits else None,
        "p90": round(waits[min(len(waits) - 1, len(waits) * 9 // 10)], 1) if waits else None,
        "buckets": buckets if waits else [],
    }
