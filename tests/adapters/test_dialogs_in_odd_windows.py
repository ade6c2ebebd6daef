"""Dialogs of the tools as small and large windows show them: all choices, and never an input box in their place."""

from __future__ import annotations

import pytest
from tests.support.playbook import POLLING, Nothing, Playbook, Raised, Withdrawn

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core.recognition.finding import Facts, Finding
from atlasbridge.core.recognition.highlight import is_highlighted
from atlasbridge.core.recognition.recognise import recognise
from atlasbridge.core.screen.screen import Screen
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


CONTINUE = [
    "Continue (tab)",
    "Continue + don't ask again (shift+tab)",
    "No, and tell Continue what to do differently (esc)",
]
DRAWN = {
    40: [["Continue (tab)"], ["Continue + don't ask", "again                  (shift+tab)", ""],
         ["No, and tell Continue what (esc)", "to do differently"]],
    80: [[label] for label in CONTINUE],
}  # fmt: skip


def continues(cols: int, current: int, gone: int, about: str = "⎿ Will run: touch x") -> str:
    """Continue's dialog, drawn by Ink: what has no room goes on in the column of the pointer."""
    inner = ["", "Bash(touch x)", "", *about.split("\n"), "", "Would you like to continue?", ""]
    inner += ["Note: Dangerous commands", "will be blocked", "regardless.", ""]
    for place, (first, *others) in enumerate(DRAWN[cols]):
        inner += [f"{'>' if place == current else ' '} {first}", *others]
    framed = [f"│  {row.ljust(cols - 6)}  │" for row in [*inner, ""]]
    rows = ["╭" + "─" * (cols - 2) + "╮", *framed, "╰" + "─" * (cols - 2) + "╯"]
    return "\n".join([*rows[gone:], "              ◉ Continue", "  /tmp/ab/wor  CLI"])


@pytest.mark.parametrize("cols", DRAWN)
@pytest.mark.parametrize("current", range(3))
@pytest.mark.parametrize("gone", [0, 1, 4, 7, 9])
def test_continues_choices_are_all_there_where_they_go_on_in_the_column_of_the_pointer(
    cols: int, current: int, gone: int
) -> None:
    found = find("cn", continues(cols, current, gone))
    assert found is not None and found.rule == "cn-permission"
    assert [choice.default for choice in found.choices] == [place == current for place in range(3)]
    assert [choice.refuses for choice in found.choices] == [False, False, True]
    assert [choice.always for choice in found.choices] == [False, True, False]
    assert [step.keys for step in found.choices[2].steps] == [b"\x1b"]
    assert found.whole is (gone == 0)


@pytest.mark.parametrize("cols", DRAWN)
@pytest.mark.parametrize(
    "about", ["⎿ Will run: a\n  Continue", "⎿ a\n  Continue\nback\n", "⎿ a\n  > Continue", "  Yes\nno"]
)
def test_what_stands_above_continues_list_is_no_choice(cols: int, about: str) -> None:
    found = find("cn", continues(cols, 0, 0, about))
    assert found is not None and len(found.choices) == 3 and found.choices[0].default


COPILOT = """
│ Make a marker file                                       │
│ ──────────────────────────────────────────────────────── │
│ ╭──────────────────────────────────────────────────────╮ │
│ │ touch made-by-bash.txt                               │ │
│ ╰──────────────────────────────────────────────────────╯ │
│                                                          │
│ Do you want to run this command?                         │
│                                                          │
│ {0} 1. Yes                                                 │
│ {1} 2. Yes, and don't ask again for `touch` in this        │
│   directory (/home/me/work)                              │
│ {2} 3. No, and tell Copilot what to do        (Esc to      │
│      differently                           stop)         │
│                                                          │
│ ↑/↓ to navigate · enter to select · esc to cancel        │
╰──────────────────────────────────────────────────────────╯
"""


@pytest.mark.parametrize("current", range(3))
def test_copilots_refusal_is_esc_also_where_its_hint_has_no_room_beside_it(current: int) -> None:
    """Its digit opens a field for words, and the dialog stays."""
    found = find("copilot", COPILOT.format(*("❯" if place == current else " " for place in range(3))))
    assert found is not None and found.rule == "copilot-permission" and not found.whole
    assert [choice.refuses for choice in found.choices] == [False, False, True]
    assert [choice.always for choice in found.choices] == [False, True, False]
    assert [[step.keys for step in choice.steps] for choice in found.choices] == [[b"1"], [b"2"], [b"\x1b"]]


@pytest.mark.parametrize("tool", ["claude", "generic"])
@pytest.mark.parametrize("current", range(3))
@pytest.mark.parametrize("tight", [(1,), (0,), (2,), (0, 1), (1, 2)])
def test_a_number_without_a_blank_behind_it_still_counts_among_others_that_have_one(
    tool: str, current: int, tight: tuple[int, ...]
) -> None:
    """As Claude Code draws its list where a choice has no room."""
    labels = ["Yes", "Yes, and always allow access to\n     work/ from this project", "No"]
    rows = [
        f" {'❯' if place == current else ' '} {place + 1}.{'' if place in tight else ' '}{label}"
        for place, label in enumerate(labels)
    ]
    text = "─" * 40 + "\n Bash command\n\n   touch x\n\n Do you want to proceed?\n" + "\n".join(rows)
    found = find(tool, text + "\n\n Esc to cancel · Tab to amend · ctrl+e\n to explain")
    assert found is not None and [choice.value for choice in found.choices] == ["1", "2", "3"]
    assert [choice.label for choice in found.choices][::2] == ["Yes", "No"]
    assert [choice.refuses for choice in found.choices] == [False, False, True]
    assert [choice.always for choice in found.choices] == [False, True, False]
    assert [choice.default for choice in found.choices] == [place == current for place in range(3)]


def test_names_of_files_that_begin_with_numbers_do_not_count() -> None:
    found = find("generic", "Which file?\n❯ 1.txt\n  2.txt\n  3.md\n")
    assert found is not None and [choice.label for choice in found.choices] == ["1.txt", "2.txt", "3.md"]


@pytest.mark.parametrize("current", range(4))
def test_a_choice_that_becomes_a_field_where_it_is_highlighted_is_still_known(current: int) -> None:
    """Qwen Code puts a mark of its own in front of the words that may be replaced."""
    labels = ("PostgreSQL", "SQLite", "Redis", "Type something...")
    field = ("> " if current == 3 else "") + labels[3]
    rows = [f"   {'❯' if at == current else ' '} {at + 1}. {label}" for at, label in enumerate((*labels[:3], field))]
    view = View.from_text(
        "  ? AskUserQuestion Ask user 1 question ←\n\n   Which?\n\n" + "\n".join(rows) + "\n\n   foot"
    )
    assert [is_highlighted(view, label, (*labels, "Cancel")) for label in labels] == [at == current for at in range(4)]


@pytest.mark.parametrize("pointed", ["Done", "a first"])
def test_what_was_answered_in_a_box_above_is_not_highlighted_in_the_list_that_has_scrolled(pointed: str) -> None:
    """Gemini's last answers stand there in a colour of their own, and the row of that name is out of sight."""
    rows = [f"{'●' if label == pointed else ' '} {label}" for label in ("4. [ ] All of the above", "a first", "Done")]
    boxes = (["✓  Ask User", "Database → SQLite, \x1b[45mRedis\x1b[m"], ["Which database?", "▲", *rows, "▼"])
    screen = Screen(20, 60)
    for box in boxes:
        lines = "".join(f"│ {line}\x1b[42G│\r\n" for line in box)
        screen.feed(f"╭{'─' * 40}╮\r\n{lines}╰{'─' * 40}╯\r\n".encode())
    view = View.of(screen)
    assert is_highlighted(view, "Done", ("PostgreSQL", "SQLite", "Redis", "Cancel")) is (pointed == "Done")


@pytest.mark.parametrize("said", [("two lines", "please go on"), ("1. fix the tests", "2. commit")])
@pytest.mark.parametrize("draft", [(), ("and then", "look again"), ("1. a list", "2. of two")])
def test_an_instruction_of_two_lines_below_a_quoted_question_is_no_list_of_copilots(
    said: tuple[str, str], draft: tuple[str, ...]
) -> None:
    talk = [" ● The installer prints:", "", "   Do you want to continue? [Y/n]", "   Press Enter to continue..."]
    box = ["─" * 80, *(f"{'  ' if at else '❯ '}{line}" for at, line in enumerate(draft or ("",))), "─" * 80]
    rows = [*talk, "", f" ❯ {said[0]:<68} 19:10", f"   {said[1]}", "", *box, " Interactive · Manual Approval"]
    cursor = f"\x1b[{len(rows)};{len(box[-2]) + 1}H"
    play = Playbook(POLLING, "copilot") >> " [Current]  Sessions   Issues\n\n" + "\n".join(rows) + cursor >> 3.0
    play << (Nothing() if draft else Raised("free_text"))


PERMISSION = """
> please edit it

⏵ Read 1 line from seed.txt
                                                        ▇
  I will use edit.

{0}
┌────────────────────────────────────────────────────────┐
│ Permission for the file_system.search_replace tool     │
│ File: seed.txt                                         │
│                                                        │
│    1 - colour = red                                    │
│    1 + colour = blue                                   │
│                                                        │
│   1. Allow once                                        │
│   2. Allow for remainder of this session               │
│   3. Always allow                                      │
│   4. Deny                                              │
│                                                        │
│ ↑↓/jk navigate  Enter select  Esc reject               │
└────────────────────────────────────────────────────────┘
work [PID 7]                             20/200k tokens (0%)
"""


@pytest.mark.parametrize("doing", ["■ Editing seed.txt", "⏵ Editing seed.txt", "  Editing seed.txt"])
def test_what_the_tool_has_done_before_does_not_hide_its_dialog(doing: str) -> None:
    """A mark, the end of a scroll bar and a line of words look like a list; the dialog is deaf at first."""
    found = find("vibe", PERMISSION.format(doing))
    assert found is not None and found.rule == "vibe-permission" and found.deaf_s > 0
    assert [choice.label for choice in found.choices if choice.refuses] == ["Deny"]
