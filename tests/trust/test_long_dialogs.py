"""What a tool has no room for: a dialog that may lack a part of what it asks for is never called whole."""

from __future__ import annotations

import pytest
from tests.support.drawn import RAW
from tests.support.playbook import POLLING, Nothing, Playbook, Raised, Withdrawn
from tests.support.shown_is_asked import dialect_of

from atlasbridge.core.detection.events import KeysTyped, ReplyTyped
from atlasbridge.core.recognition.finding import Finding
from atlasbridge.core.recognition.recognise import recognise
from atlasbridge.core.screen.screen import Screen
from atlasbridge.core.screen.view import View

VIBES = ["Allow once", "Allow for remainder of this session", "Always allow", "Deny"]
SIZES = [(40, 15), (60, 20), (80, 24), (120, 40), (200, 60)]


def found_on(tool: str, rows: list[str], size: tuple[int, int]) -> Finding:
    screen = Screen(size[1], size[0])
    screen.feed(("\x1b[?1049h" + "\r\n".join(rows) + "\x1b[?25l").encode())
    found = recognise(View.of(screen), RAW, dialect_of(tool))
    assert found is not None
    return found


def vibe(size: tuple[int, int], lines: int) -> list[str]:
    """Its dialog takes seven tenths of the window at most, and scrolls what has no room there."""
    cols, rows = size
    text = ["File: /tmp/seed.txt", "", *(f"  {number} + a line" for number in range(1, lines + 1))]
    room = rows * 7 // 10 - 10
    inner = ["Permission for the file_system.search_replace tool", *text[:room], ""]
    inner += [f"  {at}. {label}" for at, label in enumerate(VIBES, 1)] + [
        "",
        "↑↓/jk navigate  Enter select  Esc reject",
    ]
    drawn = [f"│ {_short(row, cols - 4, at)} │" for at, row in enumerate(inner)]
    box = ["┌" + "─" * (cols - 2) + "┐", *drawn, "└" + "─" * (cols - 2) + "┘"]
    talk = [""] * (rows - len(box) - 2) + ["⠇⠂ Editing file… (0s Esc/Ctrl+C to interrupt)"[:cols]]
    return [*talk, *box, "/tmp/work [PID 1]"]


def _short(row: str, room: int, at: int) -> str:
    return (row[: room - 1] + "…" if at == 0 and len(row) > room else row[:room]).ljust(room)


@pytest.mark.parametrize("size", SIZES)
def test_a_dialog_of_vibe_that_takes_all_that_it_is_given_may_not_be_whole(size: tuple[int, int]) -> None:
    found = found_on("vibe", vibe(size, 60), size)
    assert found.rule == "vibe-permission" and not found.whole
    assert [choice.always for choice in found.choices] == [False, True, True, False]
    assert [choice.refuses for choice in found.choices] == [False, False, False, True]


@pytest.mark.parametrize("size", SIZES[1:])
def test_a_dialog_of_vibe_with_room_left_is_whole(size: tuple[int, int]) -> None:
    assert found_on("vibe", vibe(size, 1), size).whole


@pytest.mark.parametrize("head", [["(touch *)"], ["(shell syntax requiring", "approval: redirection)"], []])
def test_the_head_of_vibes_dialog_is_no_part_of_the_command(head: list[str]) -> None:
    first, *others = [" ".join(["Permission for the file_system.bash tool", *head[:1]]), *head[1:]]
    rows = [first, *others, "(cat a", "b) > c", "", *(f"  {at}. {label}" for at, label in enumerate(VIBES, 1)), ""]
    framed = [f"│ {row.ljust(76)} │" for row in [*rows, "↑↓/jk navigate  Enter select  Esc reject"]]
    found = found_on("vibe", ["┌" + "─" * 78 + "┐", *framed, "└" + "─" * 78 + "┘"], (80, 40))
    assert found.subject is not None and found.subject.text == "(cat a\nb) > c"


def gemini(shown: list[str], closed: bool = True) -> list[str]:
    inner = ["? WriteFile  Writing to written.txt", "╭" + "─" * 54 + "╮", *(f"│ {row.ljust(52)} │" for row in shown)]
    inner += ["╰" + "─" * 54 + "╯"] if closed else []
    inner += ["Apply this change?", "", "● 1. Allow once", "  2. Allow for this session", "  3. No (esc)"]
    return ["✦ I will use write_file.", "", "╭" + "─" * 58 + "╮", *(f"│ {row.ljust(56)} │" for row in inner),
            "╰" + "─" * 58 + "╯"]  # fmt: skip


@pytest.mark.parametrize("hidden", ["... 58 hidden (Ctrl+O) ...", "... first 58 lines hidden (Ctrl+O to show) ..."])
def test_what_gemini_says_to_have_hidden_is_missing(hidden: str) -> None:
    assert not found_on("gemini", gemini([hidden, "59 a line", "60 a line"]), (60, 24)).whole


def test_the_first_drawing_of_a_dialog_of_gemini_whose_box_has_no_end_yet_is_not_whole() -> None:
    assert not found_on("gemini", gemini(["59 a line"], closed=False), (60, 24)).whole
    assert found_on("gemini", gemini(["59 a line"]), (60, 24)).whole


def test_a_first_drawing_of_gemini_that_lacks_rows_without_a_word_is_not_raised() -> None:
    first, later = gemini([f"{at} a line" for at in range(1, 9)]), gemini(["... 3 hidden (Ctrl+O) ...", "11 a line"])
    play = Playbook(POLLING, "gemini", rows=24, cols=60) >> "\x1b[?25l" + "\n".join(first) >> 0.7
    play >> "\x1b[2J\x1b[H" + "\n".join(later) >> 0.8 << Nothing() >> 0.5 << Raised("multiple_choice", "3 hidden")
    assert not play.prompt.whole


@pytest.mark.parametrize(
    ("offers", "whole"), [("(A)ll/(S)kip all/(D)on't ask again", False), ("(D)on't ask again", True)]
)
def test_all_of_them_is_more_than_the_one_that_aider_names(offers: str, whole: bool) -> None:
    play = Playbook(POLLING, "aider") >> "Aider v0.86.2\r\n> " >> 1.0 << Raised("free_text")
    play >> ReplyTyped(play.prompt.digest) >> "look at these\r\n" >> 1.0 << Withdrawn("answered")
    play >> f"\r\na.txt\r\nAdd file to the chat? (Y)es/(N)o/{offers} [Yes]: " >> 1.0 << Raised("multiple_choice")
    assert play.prompt.whole is whole


EDIT = "written.txt\r\n<<<<<<< SEARCH\r\n=======\r\n{0}>>>>>>> REPLACE\r\n\r\nTokens: 2k sent.\r\n\r\nwritten.txt\r\n"
CREATE = "Create new file? (Y)es/(N)o [Yes]: "


@pytest.mark.parametrize("far", [True, False], ids=["answered remotely", "answered at the terminal"])
@pytest.mark.parametrize("lines", [3, 60])
def test_what_aider_would_write_belongs_to_its_question(far: bool, lines: int) -> None:
    """The mark of its input line, which has been answered, is also what its edits end with."""
    play = Playbook(POLLING, "aider", rows=24, cols=80) >> "Aider v0.86.2\r\n> " >> 1.0 << Raised("free_text")
    if far:
        play >> ReplyTyped(play.prompt.digest) >> "please write\r\n"
    else:
        play >> KeysTyped(b"please write") >> "please write" >> KeysTyped(b"\r") >> "\r\n"
    play >> 1.0 << Withdrawn("answered" if far else "answered_at_terminal")
    text = "".join(f"line {number}\r\n" for number in range(1, lines + 1))
    play >> EDIT.format(text) + CREATE >> 1.0 << Raised("yes_no", "Create new file?")
    assert play.prompt.whole is (lines < 20)
    assert "please write" not in play.prompt.question and ("line 1\n" in play.prompt.question) is (lines < 20)
