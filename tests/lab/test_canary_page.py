"""The page of the tools says what happened: a failure with its reason, and a reply that had to be given twice."""

from __future__ import annotations

from atlasbridge.cli.lab_canary import render_page
from atlasbridge.lab.canary import Result

STALE = "This prompt is no longer on the screen; nothing was typed."


def test_a_reply_that_was_stale_at_first_is_told_and_counted() -> None:
    results = [
        Result("codex", "main", "bash: y", True),
        Result("codex", "main", "bash: n", True, again=(STALE,)),
        Result("codex", "main", "write: y", False, "written.txt was not made\nthe screen"),
    ]
    page = render_page({"codex": ("0.166.0", results)})
    assert "| codex | 0.166.0 | 3 | 2 | 1 |" in page
    assert "| bash: y | ok |" in page
    assert f"| bash: n | ok, asked twice: {STALE} |" in page
    assert "| write: y | failed: written.txt was not made |" in page
    assert results[1].to_json()["again"] == (STALE,)
