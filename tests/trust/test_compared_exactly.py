"""The answer holds for what was shown, character for character, and for nothing else."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from tests.figures.accuracy import corpus_cases
from tests.support.changed_cells import dialogs, unnoticed
from tests.support.playbook import POLLING, READING, Nothing, Playbook, Raised
from tests.support.tier import IS_LANDING
from tests.trust.test_shown_verbatim import CLAUDE

from atlasbridge.core.detection.events import Resized

CASES = corpus_cases(Path(__file__).parents[1] / "corpus")
TOOLS = sorted({case.parts[-3] for case in CASES})


def drawn(command: str, cols: int = 80) -> str:
    return CLAUDE.format(rule="─" * cols, dash="╌" * cols, command=f" {command}")


@pytest.mark.parametrize(
    ("shown", "then"),
    [
        ("rm -rf /tmp/x", "rm -rf / tmp/x"),
        ("rm -rf /tmp/x", "rm -rf  /tmp/x"),
        ("curl x > sh", "curl x | sh"),
        ("ls a;b", "ls a b"),
        ("echo 'a  b'", "echo 'a b '"),
    ],
)
def test_another_command_in_the_same_dialog_is_another_prompt(shown: str, then: str) -> None:
    play = Playbook(POLLING, "claude", 40, 80) >> drawn(shown) >> 0.4 << Raised("multiple_choice", shown)
    first = play.prompt.digest
    play >> f"\x1b[H\x1b[2J{drawn(then)}"
    assert not play.detector.still_shows(first)
    play >> 0.5
    assert play.detector.open_prompt is not None and play.detector.open_prompt.digest != first


def test_a_mere_redraw_is_the_same_prompt() -> None:
    play = Playbook(POLLING, "claude", 40, 80) >> drawn("rm -rf /tmp/x | sh") >> 0.4 << Raised("multiple_choice")
    digest = play.prompt.digest
    play >> f"\x1b[H{drawn('rm -rf /tmp/x | sh')}" >> 0.5 << Nothing()
    assert play.detector.still_shows(digest)


def test_a_dialog_that_a_narrower_window_wraps_anew_is_the_same_prompt() -> None:
    long = "git push --force origin main && git push --force origin release && echo done"
    play = Playbook(POLLING, "claude", 40, 100) >> drawn(long, 100) >> 0.4 << Raised("multiple_choice")
    digest = play.prompt.digest
    wrapped = "git push --force origin main && git push --force\n origin release && echo done"
    play >> Resized(40, 60) >> f"\x1b[H\x1b[2J{drawn(wrapped, 60)}" >> 0.5 << Nothing()
    assert play.detector.still_shows(digest)
    play >> f"\x1b[H\x1b[2J{drawn(wrapped.replace('main', 'mine'), 60)}"
    assert not play.detector.still_shows(digest)


def test_what_stands_above_a_question_belongs_to_it_to_the_last_digit() -> None:
    play = Playbook(READING) >> "rm -rf /data/1\nProceed? [y/n] " >> 0.3 << Raised("yes_no", "rm -rf /data/1")
    digest = play.prompt.digest
    play >> "\x1b[1;14H2\x1b[2;16H"
    assert not play.detector.still_shows(digest)


def test_the_same_line_below_other_words_is_another_prompt_also_once_it_was_asked_anew() -> None:
    play = Playbook(READING) >> "rm -rf /data/1\nProceed? [y/n] " >> 0.3 << Raised("yes_no", "rm -rf /data/1")
    digest = play.prompt.digest
    play >> "\x1b[1;14H2\x1b[2;16H" >> 2.0
    again = play.detector.open_prompt
    assert again is not None and "rm -rf /data/2" in again.question
    assert again.digest != digest and not play.detector.still_shows(digest)


@pytest.mark.parametrize("tool", TOOLS)
def test_one_changed_cell_of_a_recorded_dialog_means_that_nothing_is_typed(tool: str) -> None:
    """Every kind of dialog that was ever recorded of the tool: its question, its subject, its choices."""
    rng, changed = Random(17), Counter[str]()
    of_tool = [case for case in CASES if case.parts[-3] == tool]
    for case in of_tool if IS_LANDING else of_tool[:: max(1, len(of_tool) // 8)]:
        for detector, prompt in dialogs(case):
            counted, missed = unnoticed(detector, prompt, rng, tries=2)
            assert missed == [], case.name
            changed.update(counted)
    assert changed["question"] and changed["choice"], changed
    assert changed["subject"] or tool == "aider", changed  # its questions hold the command themselves
