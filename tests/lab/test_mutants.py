"""Recorded dialogs that were changed in one respect: still read or `unknown`, never missed, never taken for another."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from tests.figures.mutants import MUTATIONS, Dialog, dialogs_of, judge_mutant, judge_words_of_work
from tests.support.tier import times

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core.recognition.dialect import compiled

CORPUS = Path(__file__).parents[1] / "corpus"


@cache
def dialogs() -> list[Dialog]:
    """Not when the file is collected: to read every recording takes seconds."""
    return list(dialogs_of(CORPUS))[:: times(1, quickly=14)]


WORDS_OF_WORK = {
    "claude": ["esc to interrupt", "✻ Thinking… (3s · esc to interrupt)", "Retrying in 5 seconds"],
    "codex": ["(12s • esc to interrupt)", "Reconnecting to server"],
    "gemini": ["⠙ Thinking... (esc to cancel, 2s)", "(esc to cancel)", "Initializing..."],
    "generic": ["esc to interrupt", "(esc to cancel)", "⠙ Thinking..."],
    "kimi": ["⠙ Thinking"],
    "opencode": ["esc interrupt"],
    "qwen": ["⠙ Thinking (2s · esc to cancel)"],
}


@pytest.mark.parametrize("tool", [tool for tool in WORDS_OF_WORK if tool != "generic"])
def test_the_words_of_work_are_the_tool_s_own(tool: str) -> None:
    marks = [mark for mark in load_dialect(tool).marks if mark.state == "busy" and mark.region != "title"]
    for word in WORDS_OF_WORK[tool]:
        assert any(compiled(mark.pattern).search(word) for mark in marks), word


@pytest.mark.parametrize("tool", sorted(path.name for path in CORPUS.iterdir()))
def test_words_of_work_in_a_dialog_or_above_it_hide_no_dialog(tool: str) -> None:
    words = WORDS_OF_WORK.get(tool, ["esc to interrupt", "(esc to cancel)"])
    lost = [
        f"{outcome.case}: {word}"
        for dialog in dialogs()
        if dialog.picture.tool == tool
        for word in words
        for outcome in judge_words_of_work(dialog, [word])
        if outcome.said == "missed"
    ]
    assert lost == []


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_dialog_that_was_changed_is_read_or_shown_and_never_missed_or_misread(mutation: str) -> None:
    outcomes = [
        f"{dialog.picture.case}: {judge_mutant(dialog, mutant)}"
        for dialog in dialogs()
        for mutant in MUTATIONS[mutation](dialog)
    ]
    assert outcomes
    assert [one for one in outcomes if not one.endswith((": read", ": unknown"))] == []
