"""A tool asks for the same thing twice: the second dialog, which looks like the first, is another one."""

from __future__ import annotations

import pytest
from tests.support.playbook import POLLING, Nothing, Playbook, Raised, Withdrawn

ROWS = [
    "Permission for the file_system.bash tool",
    "touch x",
    "",
    "  1. Allow once",
    "  2. Always allow",
    "  3. Deny",
    "",
]
ASKS = "\n".join(["┌" + "─" * 58 + "┐", *(f"│ {row.ljust(56)} │" for row in ROWS), "└" + "─" * 58 + "┘", "/tmp/work"])
RUNS = "─" * 40 + " default ─\n>\n" + "─" * 60 + "\n/tmp/work"
WHEELS = ["⠇⠂ Running… (0s Esc/Ctrl+C to interrupt)", "⢀⣠ Running… (4s Esc/Ctrl+C to interrupt)"]


def drawn(foot: str, *above: str) -> str:
    return "\x1b[2J\x1b[H" + "\n".join((*above, foot))


def asked_once(*above: str) -> Playbook:
    play = Playbook(POLLING, "vibe", rows=24, cols=60) >> "\x1b[?1049h" + drawn(ASKS, *above, WHEELS[0])
    return play >> 2.0 << Raised("multiple_choice", "touch x")


@pytest.mark.parametrize("between_s", [0.02, 0.1, 0.3])
def test_the_next_dialog_that_looks_the_same_is_told_from_an_answer_without_effect(between_s: float) -> None:
    """The tool has worked in between, however short."""
    play = asked_once("I will use bash.").reply() >> 0.02 >> drawn(RUNS, "⏵ Ran touch x", WHEELS[0]) >> between_s
    play >> drawn(ASKS, "⏵ Ran touch x", "I will use bash.", WHEELS[0]) >> 0.5
    play << Withdrawn("answered") << Nothing()  # the tool may be deaf yet, or only draw the first one once more
    play >> 1.0 << Raised("multiple_choice", "touch x")


def test_pictures_that_come_in_one_piece_are_looked_at_one_by_one() -> None:
    pictures = [drawn(RUNS, "⏵ Ran touch x", WHEELS[0]), drawn(ASKS, "⏵ Ran touch x", "I will use bash.", WHEELS[0])]
    play = asked_once("I will use bash.").reply() >> 0.02
    play >> "".join(f"\x1b[?2026h{picture}\x1b[?2026l" for picture in pictures) >> 0.5
    play << Withdrawn("answered") << Nothing() >> 1.0 << Raised("multiple_choice", "touch x")


def test_a_dialog_that_stays_below_a_wheel_that_turns_is_still_the_one_that_was_answered() -> None:
    play = asked_once("I will use bash.").reply() >> 0.02 >> drawn(ASKS, "I will use bash.", WHEELS[1]) >> 1.5
    play << Nothing() >> 3.0 << Raised("multiple_choice", "touch x")  # nothing came of it: asked once more
