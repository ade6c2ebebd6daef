"""What a tool leaves out of its own dialog is said to be missing, also where the tool only puts dots in its place."""

from __future__ import annotations

import pytest
from tests.support.playbook import POLLING, Playbook, Raised

from atlasbridge.channels.excerpt import warn_incomplete
from atlasbridge.core.detection.structured import ShownDialog, fits
from atlasbridge.core.prompt.model import Prompt, Subject, SubjectKind

CHANGES = "        1 - colour = red\n        1 + colour = blue"


def raised(tool: str, rows: list[str], cols: int = 80) -> Prompt:
    drawn = "\n".join(rows) + "\x1b[?25l"
    play = Playbook(POLLING, tool, 40, cols) >> drawn >> 0.6 << Raised("multiple_choice")
    return play.prompt


def cn(head: str, preview: str, cols: int = 80, above: str = "● I will use it.\n") -> Prompt:
    """As Continue draws it: of a command no more than its first 60 characters."""
    inner = [head, "", *preview.split("\n"), "", "Would you like to continue?", "", "> Continue (tab)"]
    inner += ["  Continue + don't ask again (shift+tab)", "  No, and tell Continue what to do differently (esc)"]
    framed = [f"│ {row.ljust(cols - 4)} │" for row in inner]
    return raised("cn", [above, "╭" + "─" * (cols - 2) + "╮", *framed, "╰" + "─" * (cols - 2) + "╯"], cols)


def copilot(shown: list[str], gone: int = 0) -> Prompt:
    """As Copilot draws it; of a dialog that is higher than the screen the first rows are out of sight."""
    question = ["", "Do you want to run this command?", "", "❯ 1. Yes"]
    rest = ["  3. No, and tell Copilot what to do differently (Esc to stop)", "", "↑/↓ to navigate · enter to select"]
    boxed = ["╭" + "─" * 74 + "╮", *(f"│ {row.ljust(72)} │" for row in shown), "╰" + "─" * 74 + "╯"]
    inner = ["Make a marker file", "─" * 76, *boxed, *question, "  2. Yes, and don't ask again", *rest]
    rows = ["╭" + "─" * 78 + "╮", *(f"│ {row.ljust(76)} │" for row in inner), "╰" + "─" * 78 + "╯"]
    return raised("copilot", ["\x1b[?1049h\x1b[H", "", *rows] if not gone else rows[gone:])


def test_a_dialog_whose_frame_stands_on_the_screen_has_lost_nothing() -> None:
    prompt = copilot(["git push --force"])
    assert prompt.asked_whole and prompt.subject is not None and prompt.subject.shown == "git push --force"


@pytest.mark.parametrize("gone", range(1, 6))
def test_a_framed_dialog_whose_beginning_is_out_of_sight_is_not_whole(gone: int) -> None:
    fake = ["cat <<END", "─" * 72, "echo harmless", "END", "rm -rf ~"]
    assert not copilot(fake, gone).asked_whole


def test_a_turning_mark_right_above_the_frame_takes_nothing_from_the_dialog() -> None:
    drawn = "● please do it\n" * 40 + " ⣯⣿⣧  ( 0s • esc to interrupt )"
    assert cn("Bash(ls)", "⎿ Will run: ls", above=drawn).asked_whole


def kimi(head: str, shown: str, cols: int = 80) -> Prompt:
    bar = " " + "─" * (cols - 2)
    about = [f"   {row}" for row in shown.split("\n")] if shown else []
    choices = [
        "   ▶ 1. Approve once",
        "     2. Approve for this session",
        "     3. Reject",
        "     4. Reject with feedback",
    ]
    rows = [" ● I will use it.", "", bar, f"   ▶ {head}", "", *about, "", *choices, ""]
    return raised("kimi", [*rows, "   ↑/↓ select · 1/2/3/4 choose · ↵ confirm", bar], cols)


def test_of_a_command_that_continue_cuts_after_sixty_characters_the_rest_is_said_to_be_missing() -> None:
    command = "git status --short --branch --untracked-files=all --ignored=no && rm -rf ~"
    prompt = cn(f"Bash({command})", f"⎿ Will run: {command[:60]}...")
    assert prompt.subject is not None and "rm -rf" not in prompt.subject.shown
    assert not prompt.asked_whole
    short = cn("Bash(git status)", "⎿ Will run: git status")
    assert short.asked_whole and short.subject is not None and short.subject.shown == "git status"


def test_a_head_that_only_names_the_command_may_be_cut_where_all_of_it_stands_below() -> None:
    prompt = cn("Bash(git status --short --branc…", "⎿ Will run: git status --short\n  --branch", 40)
    assert prompt.asked_whole


def test_a_tool_of_which_continue_only_counts_the_arguments_is_not_shown_whole() -> None:
    assert not cn("deploy(production)", "⎿ Will call deploy with 3 arguments").asked_whole


@pytest.mark.parametrize(
    "note",
    [
        "     … 34 more changes hidden (ctrl+e to preview to expand)",
        "     … 1 more change hidden (ctrl+e to preview to expand)",
        "     … 50 more lines hidden (ctrl+e to preview)",
        "     … 50 more lines hi...",
    ],
)
def test_changes_that_kimi_hides_are_said_to_be_missing(note: str) -> None:
    assert not kimi("Apply these edits?", f"+60 -1 seed.txt\n{CHANGES}\n{note}").asked_whole


def test_rows_that_have_not_changed_are_not_missed() -> None:
    shown = f"+1 -1 seed.txt\n{CHANGES}\n     … 12 unchanged lines …\n       20   the end"
    assert kimi("Apply these edits?", shown).asked_whole


@pytest.mark.parametrize("dots", ["...", "…"])
def test_a_row_that_has_no_room_makes_the_whole_edit_incomplete(dots: str) -> None:
    row = f"      1  curl -s http://x/y {dots}"
    assert not kimi("Write this file?", f"written.txt\n{row}\n      2  the end", 40).asked_whole
    assert kimi("Write this file?", "written.txt\n      1  curl -s http://x/y\n      2  the end", 40).asked_whole


def test_dots_inside_a_row_leave_nothing_out() -> None:
    command = "make -C ../... all && echo 'one… two' ..."
    prompt = kimi("Run this command?", f"cwd: /home/me\n$ {command[:-4]}\n  Make it")
    assert prompt.asked_whole


@pytest.mark.parametrize("head", ["Ready to build with this plan?", "Approve Agent?", "Approve mcp__shop__buy?"])
def test_what_kimi_only_names_in_its_dialog_is_not_shown_whole(head: str) -> None:
    assert not kimi(head, "agent coder\nfirst line of a long order").asked_whole


def test_a_note_that_a_narrow_window_breaks_in_two_is_read_as_one() -> None:
    prompt = kimi("Write this file?", "written.txt\n… 50 more lines\nhidden (ctrl+e to preview)", 40)
    assert not prompt.asked_whole
    prompt = kimi("Write this file?", "written.txt\n… first 50 lines\nhidden …\n  the end", 40)
    assert not prompt.asked_whole


def test_dots_at_the_end_of_a_row_do_not_keep_a_hook_from_being_believed() -> None:
    """What a hook tells whole is whole, whatever the dialog has room for."""
    told = Subject(SubjectKind.COMMAND, "echo one two three four five six", complete=True)
    assert fits(told, ShownDialog("Run this?\n$ echo one two three fo…\n"))


QWEN = (
    "\n   ❯ 1. PostgreSQL\n        A server\n     2. SQLite\n        One file\n     3. Redis\n        In memory\n"
    "     4. Type something...\n\n\n   {foot}\n\n\n  ⠏ Waiting for user confirmation...\x1b[?25l"
)
FEET = (
    "↑/↓: Navigate | Enter: Select |\n   Esc: Cancel",
    "↑/↓: Navigate | ←/→: Switch tabs |\n    Enter: Select | Esc: Cancel",
    "↑/↓: Navigate | Enter: Select | Esc: Cancel",
)


@pytest.mark.parametrize("foot", FEET)
def test_a_question_that_has_no_room_on_the_screen_can_be_refused_and_is_not_whole(foot: str) -> None:
    drawn = "\x1b[?1049h\x1b[H" + QWEN.format(foot=foot)
    play = Playbook(POLLING, "qwen", 15, 40) >> drawn >> 0.6 << Raised("multiple_choice")
    assert not play.prompt.asked_whole and "no room" in play.prompt.question
    assert [choice.label for choice in play.prompt.choices if choice.refuses] == ["Cancel"]
    shown = "\x1b[?1049h\x1b[H  ? AskUserQuestion Ask user 1 question ←\n\n   Which database?" + QWEN.format(foot=foot)
    play = Playbook(POLLING, "qwen", 20, 40) >> shown >> 0.6 << Raised("multiple_choice")
    assert play.prompt.asked_whole and "Which database?" in play.prompt.question


def test_a_list_of_nobody_that_has_lost_its_question_is_not_whole() -> None:
    listed = "❯ Yes\n  No\n\nUse arrow keys, Enter to select\x1b[?25l"
    play = Playbook(POLLING, "generic", 15, 40) >> f"\x1b[?1049h\x1b[H{listed}" >> 2.0 << Raised("yes_no")
    assert not play.prompt.asked_whole
    play = Playbook(POLLING, "generic", 15, 40) >> listed >> 2.0 << Raised("yes_no")
    assert play.prompt.asked_whole


def gemini(rows: list[str], height: int, cols: int) -> Prompt:
    shown = [
        "╭" + "─" * (cols - 2) + "╮",
        *(f"│ {row.ljust(cols - 4)} │" for row in rows),
        "╰" + "─" * (cols - 2) + "╯",
    ]
    play = Playbook(POLLING, "gemini", height, cols) >> "\r\n".join(shown) + "\x1b[?25l" >> 3.0
    play << Raised("multiple_choice")
    return play.prompt


ALLOW = ["", "Allow execution of [Shell]?", "", "● 1. Allow once", "  2. Allow for this session", "  3. No (esc)", ""]


@pytest.mark.parametrize("hidden", [1, 10, 53, 191])
def test_how_many_rows_of_a_command_gemini_hides_is_told(hidden: int) -> None:
    shown = [f"echo line {number} of all >> lines.txt" for number in range(9)]
    rows = ["? Shell  Make a marker file", "", f"... {hidden} hidden (Ctrl+O) ...", *shown, *ALLOW]
    prompt = gemini(rows, 24, 80)
    assert not prompt.asked_whole and prompt.constraints["missing_lines"] == hidden


def test_a_number_of_gemini_that_does_not_count_the_command_is_not_told() -> None:
    """In a low window it counts the rows of the frame that it draws around the command."""
    framed = ["│ lines.txt                        │", "╰──────────────────────────────────╯"]
    prompt = gemini(["? Shell  Make a marker file", "... 2 hidden (Ctrl+O) ...", *framed, *ALLOW[1:]], 15, 40)
    assert not prompt.asked_whole and "missing_lines" not in prompt.constraints
    assert "hidden_rows" not in prompt.constraints
    assert "how many lines are missing" in warn_incomplete(prompt)


def test_rows_that_gemini_hides_in_the_border_of_a_box_are_told_as_the_least_that_is_missing() -> None:
    """At 40x15 the box of a new file shows nothing but its lower border, as the real tool draws it."""
    bordered = ["╰─... 18 hidden (Ctrl+O) ...───────╯", "Apply this change?", "", *ALLOW[3:]]
    prompt = gemini(bordered, 15, 40)
    assert not prompt.asked_whole and prompt.constraints["hidden_rows"] == 18
    assert "the tool hides 18 rows, and more can be missing" in warn_incomplete(prompt)
