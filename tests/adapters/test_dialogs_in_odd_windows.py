"""Dialogs of the tools as small and large windows show them: all choices, and never an input box in their place."""

from __future__ import annotations

import pytest
from tests.support.playbook import POLLING, Nothing, Playbook, Raised, Withdrawn

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core.recognition.finding import Facts, Finding
from atlasbridge.core.recognition.recognise import recognise
from atlasbridge.core.screen.view import View

QUESTION = """
  ┃  Which database should the
  ┃  service use?
  ┃
  ┃  1. PostgreSQL
  ┃     A server
  ┃  2. SQLite
  ┃     One file
  ┃  3. Type your own answer
  ┃
  ┃  ↑↓       enter       esc
  ┃  select   {0}      dismiss
"""
BOX = (
    " ╭──────────────────────────────────────────╮\n │ Type your message, @mention a file       │\n"
    " ╰──────────────────────────────────────────╯\n [Ctrl+L for multi-line] • /tmp/x\n\n\n"
)
# The last row: the keys of what has them.
AT_BOX = " ^a Select all  ^x Open external editor  ^l Toggle single/multi-line input ▏^p palette\n"
AT_DIALOG = " ^q Quit the application  ^l Toggle single/multi-line input  ^o Toggle Cell▏^p palette\n"
ALTERNATE = "\x1b[?1049h\x1b[H\x1b[?25l"
LABELS = ("Yes", "No", "Always", "Auto LOW/MED")


def find(tool: str, text: str) -> Finding | None:
    return recognise(View.from_text(text), Facts(canonical=False, echo=False), load_dialect(tool))


@pytest.mark.parametrize("tool", ["opencode", "kilo"])
@pytest.mark.parametrize("hint", ["submit", "confirm", "toggle"])
def test_a_question_whose_hints_stand_in_two_rows_can_be_refused(tool: str, hint: str) -> None:
    found = find(tool, QUESTION.format(hint))
    assert found is not None
    assert [choice.label for choice in found.choices][:3] == ["PostgreSQL", "SQLite", "Type your own answer"]
    assert [choice.label for choice in found.choices if choice.refuses] == ["Cancel"]


def openhands(current: str, bar_at: int, apart: int = 2) -> str:
    rows = ["  > please do it", "", "  ▶ Make a file: $ touch x", "", "  🔍 Confirm 1 action(s)?", ""]
    rows += [f"  {'>' if label == current else ' '} {label}" for label in LABELS]
    rows[bar_at] = f"{rows[bar_at]:<60}▆"  # the end of a scroll bar
    return "\n".join(rows) + "\n" * (apart + 1) + BOX + AT_DIALOG


@pytest.mark.parametrize("current", LABELS)
@pytest.mark.parametrize("bar_at", range(10))
def test_the_end_of_a_scroll_bar_beside_the_dialog_changes_nothing(current: str, bar_at: int) -> None:
    found = find("openhands", openhands(current, bar_at))
    assert found is not None and not found.constraints.get("idle")
    assert [choice.label for choice in found.choices] == list(LABELS)
    assert [choice.label for choice in found.choices if choice.refuses] == ["No"]
    assert [choice.label for choice in found.choices if choice.always] == ["Always", "Auto LOW/MED"]


def test_a_piece_of_a_scroll_bar_far_to_the_right_does_not_push_the_question_out_of_what_is_told() -> None:
    rows = openhands("Yes", 0).split("\n")
    rows[0], rows[5] = rows[0].rstrip(" ▆"), f"{'':<177}▆"
    play = Playbook(POLLING, "openhands", rows=54, cols=180) >> ALTERNATE + "\n".join(rows).rstrip() >> 0.5
    play << Raised("multiple_choice", "Make a file: $ touch x")
    assert play.prompt.excerpt.endswith("Confirm 1 action(s)?")


@pytest.mark.parametrize("apart", [0, 2, 20, 45])
def test_empty_rows_between_the_dialog_and_the_input_box_of_a_large_window_change_nothing(apart: int) -> None:
    found = find("openhands", openhands("No", 0, apart))
    assert found is not None and [choice.label for choice in found.choices if choice.default] == ["No"]


@pytest.mark.parametrize("gone", range(1, 9))
def test_a_dialog_that_has_partly_left_the_screen_is_never_taken_for_the_empty_input_box(gone: int) -> None:
    """Words for the agent, and the Enter behind them, would answer the dialog."""
    found = find("openhands", "\n".join(openhands("Yes", 0).split("\n")[gone:]))
    assert found is None or not found.constraints.get("idle")


@pytest.mark.parametrize(
    "action", ["▶ Make a file: $ touch x", "▶ Make a file that has\n    a long name: $ touch x", "▼ Edit"]
)
@pytest.mark.parametrize(("mark", "idle"), [(" ✓", True), (" ✗", True), ("", False), ("  ▆", False), (" ✓   ▆", True)])
def test_an_action_that_nobody_has_decided_keeps_the_input_box_from_being_idle(
    action: str, mark: str, idle: bool
) -> None:
    """A window that shrank hides the whole dialog, and it still has the keys."""
    said = f"  ▶ Loaded: 6 tools\n\n  > please do it\n\n  {action}{mark}\n\n\n"
    found = find("openhands", said + BOX + AT_BOX)
    assert bool(found and found.constraints.get("idle")) is idle
    found = find("openhands", f"{said}  All done.\n\n\n" + BOX + AT_BOX)
    assert found is not None and found.constraints.get("idle")


@pytest.mark.parametrize(
    "above",
    [
        "",
        "  All done.\n",
        "  ▶ Make a file: $ touch x\n\n  🔍 Confirm 1 action(s)?\n",  # a window that shrank hides its list
        "  ▶ Make a file: $ touch x ✓\n",
        "  ▶ Make a file: $ touch x\n",
        "  Press ^a Select all\n",
        " ^a Select all  ^x Open external editor\n",  # said, not the last row
    ],
)
@pytest.mark.parametrize("last", [AT_DIALOG, AT_DIALOG[:30] + "\n", "\n", " ^p palette\n"])
def test_an_input_box_that_has_not_got_the_keys_is_never_idle(above: str, last: str) -> None:
    """Words for the agent, and the Enter behind them, would answer what has the keys."""
    found = find("openhands", f"{above}\n\n{BOX}{last}")
    assert found is None or not found.constraints.get("idle")


@pytest.mark.parametrize(
    ("above", "told"),
    [
        ("  All done.\n", "All done."),
        ("  ▶ Make a file: $ touch x\n\n  🔍 Confirm 1 action(s)?\n", "touch x\n🔍 Confirm 1 action(s)?"),
        ("    Auto LOW/MED\n", "Auto LOW/MED"),
        ("  > Yes\n    No\n", "Quit the application"),
    ],
)
def test_a_dialog_out_of_sight_is_for_a_person_to_look_at_soon_but_not_while_it_is_only_being_drawn(
    above: str, told: str
) -> None:
    play = Playbook(POLLING, "openhands", cols=100) >> f"{ALTERNATE}{above}\n\n{BOX}{AT_DIALOG}".rstrip("\n") >> 1.5
    play << Nothing() >> 1.0 << Raised("unknown", told)
    assert play.prompt.safe_default == "" and not play.prompt.choices
    play >> f"{ALTERNATE}\x1b[2J" + openhands("Yes", 0).rstrip("\n") >> 0.5 << Withdrawn("moved_on")
    play << Raised("multiple_choice", "touch x")
