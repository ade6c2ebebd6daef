"""What the page plots agrees with what is in the store."""

from __future__ import annotations

import sqlite3

from atlasbridge.core.store.ledger import read_figures, summarise_waits


def test_every_wait_falls_into_one_bucket() -> None:
    waits = [0.0, 5.0, 5.1, 15.0, 60.0, 61.0, 4000.0]
    summary = summarise_waits(waits)
    assert summary["buckets"] == [[5, 2], [15, 2], [60, 1], [300, 1], [900, 0], [3600, 0], [None, 1]]
    assert (summary["count"], summary["median"], summary["p90"]) == (7, 15.0, 4000.0)


def test_nothing_yet_gives_no_figures() -> None:
    assert summarise_waits([]) == {"count": 0, "median": None, "p90": None, "buckets": []}


def test_days_and_people_are_counted_from_the_rows() -> None:
    store = sqlite3.connect(":memory:")
    store.execute("CREATE TABLE prompts (created_at TEXT, decided_at TEXT, decided_by TEXT)")
    first, second = "2026-01-01T10:00:00.000000+00:00", "2026-01-02T10:00:00.000000+00:00"
    rows = [(first, "2026-01-01T10:00:07.500000+00:00", "web:page"), (first, None, None)]
    rows += [(second, "2026-01-02T10:00:07.500000+00:00", "web:page"), (second, None, "")]
    store.executemany("INSERT INTO prompts VALUES (?, ?, ?)", rows)
    figures = read_figures(lambda sql: store.execute(sql).fetchall())
    store.close()
    assert figures["days"] == [
        {"day": "2026-01-01", "raised": 2, "answered": 1},
        {"day": "2026-01-02", "raised": 2, "answered": 1},
    ]
    assert figures["answered_by"] == {"web:page": 2}
    assert figures["answer_s"]["median"] == 7.5
