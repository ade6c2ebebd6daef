"""The page of the tools says what happened: a failure with its reason, and a reply that had to be given twice."""

from __future__ import annotations

from collections.abc import Mapping

from atlasbridge.cli.lab_canary import render_page
from atlasbridge.cli.lab_truth import TITLE, render_truth, truth_section, with_truth
from atlasbridge.lab.canary import Result
from atlasbridge.lab.mockmodel.nasty import ALL, Nasty
from atlasbridge.lab.mockmodel.scene import Request, play
from atlasbridge.lab.truth import Agreement, Truth, compare

STALE = "This prompt is no longer on the screen; nothing was typed."


def test_a_reply_that_was_stale_at_first_is_told_and_counted() -> None:
    results = [
        Result("codex", "main", "bash: y", True, ways=("hook",)),
        Result("codex", "main", "bash: n", True, again=(STALE,), ways=("keys", "keys")),
        Result("codex", "main", "write: y", False, "written.txt was not made\nthe screen"),
    ]
    page = render_page({"codex": ("0.166.0", results)})
    assert "| codex | 0.166.0 | 3 | 2 | 1 | 2 | 1 |" in page
    assert "| bash: y | ok |" in page
    assert f"| bash: n | ok, asked twice: {STALE} |" in page
    assert "| write: y | failed: written.txt was not made |" in page
    assert results[1].to_json()["again"] == (STALE,)


def test_what_was_shown_and_then_run_has_its_own_section_that_other_runs_keep() -> None:
    page = render_page({"codex": ("0.166.0", [Result("codex", "main", "bash: y", True)])})
    results = [Truth("codex", "a pipe", Agreement.WHOLE), Truth("codex", "a tab", Agreement.UNSEEN)]
    with_section = with_truth(page, render_truth({"codex": ("0.166.0", results)}))
    assert "| codex | 0.166.0 | 1 | 0 | 0 | 1 | 0 | 0 | 0 |" in with_section
    assert "| a tab | invisible |" in with_section
    assert with_section.index(TITLE) < with_section.index("## What the tools say beside")
    again = with_truth(with_section, render_truth({"codex": ("0.167.0", results)}))
    assert again.count(TITLE) == 1 and "0.167.0" in again
    assert truth_section(with_section) and with_truth(page, truth_section(with_section)) == with_section


def test_something_else_than_was_shown_is_wrong() -> None:
    shown = {"subject": {"text": "ls", "complete": True}, "question": "Run ls?", "whole": True}
    assert compare(Nasty("", "ls"), shown, "ls")[0] is Agreement.WHOLE
    assert compare(Nasty("", "ls"), shown, "ls -l")[0] is Agreement.WRONG
    drawn = {"subject": {"text": "", "complete": False}, "question": "Run a b?", "whole": True}
    assert compare(Nasty("", "a\tb"), drawn, "a\tb")[0] is Agreement.UNSEEN
    assert compare(Nasty("", "a b"), drawn, "a b")[0] is Agreement.ROWS
    assert compare(Nasty("", "a c"), drawn, "a c")[0] is Agreement.WRONG
    assert compare(Nasty("", "a c"), {**drawn, "whole": False}, "a c")[0] is Agreement.CUT
    assert compare(Nasty("", "a c"), drawn, None)[0] is Agreement.UNRUN


def test_the_mock_model_asks_for_at_least_thirty_nasty_things() -> None:
    assert len(ALL) >= 30 and len({item.name for item in ALL}) == len(ALL)
    for number, item in enumerate(ALL):
        turn = play(Request(f"please lab:truth={number} now", 0, {"Bash": "function", "Write": "function"}), "/w", "")
        assert turn.call is not None and isinstance(turn.call.arguments, Mapping)
        assert item.text in turn.call.arguments.values()
