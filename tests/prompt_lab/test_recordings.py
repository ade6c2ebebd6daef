"""The corpus: recordings of real tools, each with what must be raised in it, and what must not."""

from __future__ import annotations

from pathlib import Path

import pytest

from atlasbridge.lab.replay import read_recording
from tests.figures.accuracy import Moment, corpus_cases, gating_matrix, judge_case, judge_moment, render_page, spans

CORPUS = Path(__file__).parents[1] / "corpus"
CASES = corpus_cases(CORPUS)
KINDS = {"none", "idle", "multiple_choice", "yes_no", "free_text"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parts[-3]}-{case.parts[-1]}")
def test_recording(case: Path) -> None:
    moments = list(judge_case(case))
    assert moments
    assert [moment.wrong for moment in moments if not moment.right] == []


# What a tool with no dialect of its own does not get yet.  A list that only shrinks.
STRANGE = {("openhands", "walk"), ("kilo", "walk")}  # raised as unknown: a list or buttons above an input box


@pytest.mark.parametrize(
    "case", [one for one in CASES if one.parts[-3] != "generic"], ids=lambda case: f"{case.parts[-3]}-{case.parts[-1]}"
)
def test_a_tool_that_nobody_knows_raises_no_false_alarm_and_is_not_missed(case: Path) -> None:
    wrong = [moment.wrong for moment in judge_case(case, stranger=True) if not moment.right]
    assert bool(wrong) is ((case.parts[-3], case.name) in STRANGE), wrong


def test_a_menu_is_never_answered_by_a_timer_with_consent() -> None:
    case = next(case for case in CASES if case.parts[-3] == "claude" and case.name == "bash")
    menus = [prompt for _, _, prompt in spans(read_recording(case / "session.cast"), "claude") if prompt.choices]
    assert menus
    for prompt in menus:
        assert prompt.safe_default in [choice.value for choice in prompt.choices if choice.refuses]


def test_a_dialog_that_is_drawn_in_steps_is_asked_once_and_never_without_what_it_is_about() -> None:
    """Kilo names what it would fetch a quarter of a second after it has drawn the buttons."""
    opened = spans(read_recording(CORPUS / "kilo" / "7.7.9" / "walk" / "session.cast"), "kilo")
    asked = [prompt.excerpt for _, _, prompt in opened if prompt.choices]
    about = ["$ touch made-by-bash.txt", "URL: http://127.0.0.1", "1 + written by the lab", "$ touch made-by-bash.txt"]
    assert len(asked) == len(about)
    assert [part in excerpt for part, excerpt in zip(about, asked, strict=True)] == [True] * len(about)


def test_the_corpus_has_every_tool_and_silence_too() -> None:
    assert {case.parts[-3] for case in CASES} >= {"aider", "claude", "codex", "gemini", "opencode"}


def test_a_miss_and_a_false_alarm_are_told_apart() -> None:
    waiting = {"type": "yes_no", "from_s": 1.0, "to_s": 4.0, "choices": []}
    assert judge_moment([], waiting) == "missed"
    case = next(case for case in CASES if case.parts[-3] == "claude" and case.name == "idle")
    opened = spans(read_recording(case / "session.cast"), "claude")
    assert judge_moment(opened, {"type": "none", "from_s": 4.75, "to_s": 9.0, "choices": []}).startswith("false alarm")


def test_the_page_counts_what_is_right() -> None:
    moments = [Moment("codex", "1", "a", "idle"), Moment("codex", "1", "b", "none", "false alarm: 'x'")]
    zoo = [
        {"group": "shell", "wait": True, "right": True, "latency_s": 0.2},
        {"group": "live", "wait": False, "right": True},
    ]
    page = render_page(moments, [Moment("codex", "1", "c", "yes_no", "missed")], zoo)
    assert "| codex | 1 | 1 | 0 | - | - |" in page and "- codex, c: missed" in page
    assert "| codex | 1 | 1 | 1 | 1 | 0 |" in page
    assert "| **all** | 1 | 1 | 1 | 1 |" in page


def test_the_page_in_the_repository_has_the_gating_matrix_of_the_register() -> None:
    page = (CORPUS.parents[1] / "docs" / "detection.md").read_text("utf-8")
    assert gating_matrix() in page


def test_the_page_in_the_repository_counts_the_recordings_that_are_there() -> None:
    page = (CORPUS.parents[1] / "docs" / "detection.md").read_text("utf-8")
    for tool in {case.parts[-3] for case in CASES}:
        assert f"| {tool} |" in page
