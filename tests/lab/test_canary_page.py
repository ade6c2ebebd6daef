"""The page of the tools says what happened: a failure with its reason, and a reply that had to be given twice."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.real_tools import canary
from tests.real_tools.__main__ import BEFORE, TITLE, render_page, render_sizes, render_truth, truth_section, with_truth
from tests.real_tools.canary import Result, draft_change, hidden_lines, of_prompt, version_of
from tests.real_tools.dialogs import WALKS, Dialog
from tests.real_tools.mockmodel.scene import ALL, Nasty, Request, play
from tests.real_tools.sizes import SIZES, sized_walk
from tests.real_tools.truth import Agreement, Truth, compare

STALE = "This prompt is no longer on the screen; nothing was typed."


def test_a_reply_that_was_stale_at_first_is_told_and_counted() -> None:
    results = [
        Result("codex", "main", "bash: y", True, ways=("hook",)),
        Result("codex", "main", "bash: n", True, again=(STALE,), ways=("keys", "keys")),
        Result("codex", "main", "write: y", False, "written.txt was not made\nthe screen"),
    ]
    page = render_page({"codex": ("0.166.0", results)})
    assert "| codex | 0.166.0 | 3 | 2 | 1 | 2 | 1 |" in page
    assert "| codex 0.166.0 | bash: y |" in page
    assert f"- codex 0.166.0, bash: n: asked twice: {STALE}" in page
    assert "- codex 0.166.0, write: y: failed: written.txt was not made" in page
    assert results[1].to_json()["again"] == (STALE,)


def test_what_was_shown_and_then_run_has_its_own_section_that_other_runs_keep() -> None:
    page = render_page({"codex": ("0.166.0", [Result("codex", "main", "bash: y", True)])})
    results = [Truth("codex", "a pipe", Agreement.WHOLE), Truth("codex", "a tab", Agreement.UNSEEN)]
    with_section = with_truth(page, render_truth({"codex": ("0.166.0", results)}))
    assert "| codex | 0.166.0 | 1 | 0 | 0 | 1 | 0 | 0 | 0 |" in with_section
    assert "| a tab | invisible |" in with_section
    assert with_section.index(TITLE) < with_section.index(BEFORE)
    noted = with_section + "\nWhat a person wrote below.\n"
    assert render_page({}, noted).endswith(f"{BEFORE}\n\nWhat a person wrote below.\n")
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


def test_a_version_in_which_nothing_has_changed_can_be_added() -> None:
    draft = draft_change("codex", "0.167.0", ("0.166.0",), [Result("codex", "main", "bash: y", True)])
    assert tomllib.loads(draft) == {"versions": ["0.166.0", "0.167.0"]}
    assert "1 of 1 dialogs" in draft


def test_a_dialog_that_has_changed_is_drafted_with_what_was_seen_of_it_and_claims_nothing() -> None:
    results = [
        Result("codex", "main", "bash: y", True),
        Result("codex", "main", "bash: n", False, "waited for a prompt in vain\n  Run this?\n  > Yes\n    No"),
    ]
    draft = draft_change("codex", "0.167.0", ("0.166.0",), results)
    assert "# bash: n: waited for a prompt in vain" in draft and "#     Run this?" in draft
    assert '# id = "codex-bash-n"' in draft
    assert tomllib.loads(draft) == {}  # nothing of it counts before a person has looked at it


def test_the_page_of_sizes_counts_by_kind_and_names_each_failure() -> None:
    rows = [
        Result("codex", "sizes", "bash: y", True, size="40x15", kind="answered", raised=True),
        Result("codex", "sizes", "bash: n", False, "no | choice\nscreen", size="40x15", kind="refused", raised=True),
        Result("codex", "sizes", "bait: silent", True, size="40x15", kind="silent", raised=True),
        Result("codex", "sizes", "bash: n", True, size="120x40", kind="refused", raised=True),
    ]
    page = render_sizes([{**row.to_json(), "version": "0.166.0"} for row in rows])
    assert "| codex | 0.166.0 | 40x15 | 2 of 2 | 1 of 1 | 0 of 1 | 1 of 1 |" in page
    assert "| codex | 0.166.0 | 120x40 | 1 of 1 | none | 1 of 1 | none |" in page
    assert "- codex 40x15, bash: n: no \\| choice" in page
    mended = render_sizes([{**row.to_json(), "version": "0.166.0"} for row in (*rows, replace(rows[1], ok=True))])
    assert "0 of 1" not in mended and "## Failures\n\nNone.\n" in mended  # of several walks the newest counts


def test_the_page_of_sizes_says_what_was_not_walked_and_that_it_comes_of_several_runs() -> None:
    failed = Result("goose", "sizes", "start", False, "in vain", size="200x60")
    row = {**failed.to_json(), "version": "1.52.0", "run": "one"}
    later = {**replace(failed, dialog="bash: y", ok=True, kind="answered", raised=True).to_json(), "version": "1.52.0"}
    page = render_sizes([row])
    assert "- goose 200x60, start: in vain" in page and "Collected from" not in page
    assert "- goose: 40x15, 60x20, 80x24, 120x40\n" in page and "- aider: 40x15, 60x20, 80x24, 120x40, 200x60\n" in page
    page = render_sizes([row, {**later, "run": "two"}])
    assert "Collected from 2 runs" in page
    assert "| goose | 1.52.0 | 200x60 | 1 of 1 | 1 of 1 | none | none |" in page and "in vain" not in page


@pytest.mark.parametrize("tool", WALKS)
@pytest.mark.parametrize("size", SIZES)
def test_every_tool_has_a_walk_for_every_size(tool: str, size: tuple[int, int]) -> None:
    walk = sized_walk(tool, size)
    assert {dialog.kind for dialog in walk.dialogs} == {"answered", "refused", "silent"}
    assert any(dialog.resize != (0, 0) for dialog in walk.dialogs)


def test_a_tool_that_asks_for_edits_is_asked_for_one_that_is_longer_than_the_screen() -> None:
    for tool, walks in WALKS.items():
        asks = any(dialog.name == "edit: n" for dialog in walks[0].dialogs)
        for size in SIZES:
            long = [dialog for dialog in sized_walk(tool, size).dialogs if dialog.scene == "longedit"]
            assert bool(long) is asks and all(dialog.unmade == ("blue",) and len(dialog.lines) == 60 for dialog in long)
    offered = {"apply_patch": "custom", "view": "function"}
    turn = play(Request("please lab:longedit now", 1, offered), "/w", "")
    assert turn.call is not None and str(turn.call.arguments).count("\n+") == 61
    assert "-colour = red\n+colour = blue\n+line 1 of sixty" in str(turn.call.arguments)


def test_only_the_last_prompt_of_a_dialog_must_show_all_of_what_is_asked() -> None:
    both = Dialog("edit", "longedit", ("y", "n"), asks="seed.txt", lines=("the end",))
    assert (of_prompt(both, 0).lines, of_prompt(both, 0).asks) == ((), "seed.txt")
    assert (of_prompt(both, 1).lines, of_prompt(both, 1).asks) == (("the end",), "")
    one = replace(both, replies=("n",))
    assert of_prompt(one, 0) == one


def test_what_is_not_shown_and_not_said_to_be_missing_is_a_failure() -> None:
    told = {"question": "Run it?", "whole": True, "subject": {"text": "cat\nthe end", "complete": True}}
    asked = ("cat", "the end")
    assert hidden_lines(told, asked) == []
    assert hidden_lines({**told, "subject": {"text": "cat", "complete": True}}, asked) == ["the end"]
    assert hidden_lines({**told, "subject": {"text": "the end", "complete": True}}, asked) == ["cat"]
    seen = {"question": "Write this?\n  1  the\n     end", "whole": True, "subject": None}
    assert hidden_lines(seen, ("the end",)) == []  # the tool broke the row
    assert hidden_lines({**seen, "question": "Write this?\n  1  a row"}, ("the end",)) == ["the end"]
    assert hidden_lines({**seen, "question": "Write this?\n  1  a row", "whole": False}, ("the end",)) == []


def test_a_tool_that_does_not_say_its_version_in_time_has_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "hermes" / "bin" / "hermes"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 1.2.3\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("ATLASBRIDGE_TOOLS", str(tmp_path))
    monkeypatch.setattr(canary, "VERSION_S", 0.2)
    assert version_of("hermes") == ""


def test_in_every_size_a_tool_is_asked_its_own_first_questions_and_nothing_that_has_to_be_typed_for() -> None:
    for tool in WALKS:
        for size in SIZES:
            assert not [dialog.name for dialog in sized_walk(tool, size).dialogs if not dialog.scene and dialog.says]
