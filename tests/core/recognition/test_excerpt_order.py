"""An excerpt is in reading order, begins with the question where it can, and says with `…` what is missing."""

from __future__ import annotations

import pytest
from tests.support.playbook import POLLING, READING, Playbook, Raised

from atlasbridge.core.prompt.answer import first_line
from atlasbridge.core.prompt.model import EXCERPT_LIMIT
from atlasbridge.core.recognition.finding import cut

COMMAND = (
    "Run this command?\n\n  pg_dump --from production-replica-3.internal \\\n    --schema public --schema audit \\\n"
    "    --exclude-table 'public.sessions_*' \\\n    --to s3://backups/2026/ \\\n    --compress 9 --jobs 4 \\\n"
    "    --tables everything --force \\\n    --no-owner --verbose\n\n❯ Yes\n  Always\n  No\n\x1b[?25l"
)


def is_in_order(excerpt: str, screen: str) -> bool:
    at = 0
    for piece in (piece.strip() for row in excerpt.split("\n") for piece in row.split("…") if piece.strip()):
        at = screen.find(piece, at)
        if at < 0:
            return False
    return True


def test_a_long_dialog_begins_with_its_question_and_keeps_its_end() -> None:
    play = Playbook(POLLING) >> COMMAND >> 2.0 << Raised("multiple_choice")
    assert play.prompt.excerpt.startswith("Run this command?\n  pg_dump --from production-replica-3.internal")
    assert play.prompt.excerpt.endswith("--no-owner --verbose") and "…" in play.prompt.excerpt


def test_a_dialog_whose_beginning_has_left_the_screen_says_so() -> None:
    play = Playbook(POLLING, rows=10, cols=70) >> COMMAND >> 2.0 << Raised("multiple_choice")
    assert play.prompt.excerpt.startswith("…\n--exclude-table")
    assert not play.prompt.whole and (play.prompt.subject is None or not play.prompt.subject.complete)


def test_what_is_asked_stays_where_small_print_follows_it() -> None:
    asked = "? Would you like to share pseudonymous usage data about this project with the team under its policy? "
    play = Playbook(POLLING) >> f"{asked}For more details and how to change this setting, {'see the page. ' * 12}\n"
    play >> "   (y/N) " >> 2.0 << Raised("yes_no", "share pseudonymous usage data")
    assert play.prompt.excerpt.startswith("? Would you like to share") and play.prompt.excerpt.endswith("(y/N)")


@pytest.mark.parametrize("last", ["Time zone: ", "Enter 1-61: ", "* "])
def test_an_excerpt_never_begins_with_the_last_row_that_others_precede(last: str) -> None:
    rows = "".join(f"  {name} of the north, read {at} times\n" for at, name in enumerate(["Amsterdam", "Berlin"] * 9))
    play = Playbook(READING) >> f"Choose the city.\n{rows}\n{last}" >> 1.0
    raised = play.detector.open_prompt
    assert raised is not None
    assert raised.excerpt.endswith(last.strip()) and not raised.excerpt.startswith(last.strip())
    assert len(raised.excerpt) <= EXCERPT_LIMIT and "…" in raised.excerpt
    assert is_in_order(raised.excerpt, raised.screen)


@pytest.mark.parametrize("context", [True, False])
@pytest.mark.parametrize(
    "rows", [["a" * 500], ["short", "b" * 300], ["c" * 300, "(y/N)"], ["d" * 30] * 30, ["?"] * 300]
)
def test_a_cut_text_fits_and_keeps_its_order(rows: list[str], context: bool) -> None:
    text = "\n".join(rows)
    assert len(cut(text, context)) <= EXCERPT_LIMIT
    assert is_in_order(cut(text, context), text)
    assert "…" in cut(text, context)


def test_the_value_that_a_foot_line_has_and_the_error_below_a_field_are_told() -> None:
    play = Playbook(POLLING) >> "\x1b[?1049h\x1b[2J\x1b[1;1H some text\x1b[24;1HFile Name to Write: notes.txt" >> 2.0
    play << Raised("free_text", "File Name to Write: notes.txt")
    play = Playbook(POLLING) >> "? E-mail nobody\n\x1b[31m> That is no address\x1b[39m\x1b[1A\x1b[16G" >> 2.0
    play << Raised("free_text", "? E-mail nobody\n> That is no address")


def test_the_first_line_of_a_prompt_below_a_log_is_the_line_that_asks() -> None:
    log = "".join(f"compiling part {number} of the whole program\n" for number in range(9))
    play = Playbook(READING) >> f"{log}Name of the release: " >> 1.0 << Raised("free_text")
    assert first_line(play.prompt) == "Name of the release:"


def test_a_question_at_the_head_of_a_screen_is_told_with_the_buttons_at_its_foot() -> None:
    asked = "\x1b[1;1HYou have an unsent message to Ada. What should happen to it?"
    play = Playbook(POLLING) >> f"\x1b[?1049h\x1b[?25l\x1b[2J{asked}\x1b[24;3H[ Discard ]  \x1b[7m[ Save draft ]\x1b[m"
    play >> 2.0 << Raised("multiple_choice", "What should happen to it?")


CODE = (
    "def deploy(stage):",
    "    check(stage)",
    "    push(stage)",
    "",
    "    notify()",
    "    return",
    "",
    "class Deploy:",
)
ASKED = ("Deploy assistant", "", "Do you want to apply this", "change to deploy.py?", "", "❯ Accept", "  Reject")


@pytest.mark.parametrize("halves", [(CODE, ASKED), (ASKED, CODE)])
def test_a_dialog_beside_other_text_is_read_without_it(halves: tuple[tuple[str, ...], ...]) -> None:
    left, right = (half + ("",) * (22 - len(half)) for half in halves)
    rows = "".join(
        f"\x1b[{at};1H{one:<38} │ {other}" for at, (one, other) in enumerate(zip(left, right, strict=True), 1)
    )
    play = Playbook(POLLING) >> f"\x1b[?1049h\x1b[?25l\x1b[2J{rows}" >> 2.0
    play << Raised("multiple_choice", "Do you want to apply this\nchange to deploy.py?")
    assert [choice.label for choice in play.prompt.choices] == ["Accept", "Reject"]
    assert "def " not in play.prompt.excerpt and "│" not in play.prompt.excerpt
