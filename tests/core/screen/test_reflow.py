"""A main screen in a window of another size: lines stay whole, come back, and say when they are not whole."""

from __future__ import annotations

import pytest

from atlasbridge.core.screen.redraw import render_screen
from atlasbridge.core.screen.screen import Screen
from atlasbridge.core.screen.style import REVERSE
from atlasbridge.core.screen.view import View

QUESTION = "The following 120 packages will be removed from your system now. Continue? [Y/n] "


def show(text: str, rows: int = 5, cols: int = 20) -> Screen:
    screen = Screen(rows, cols)
    screen.feed(text.encode())
    return screen


@pytest.mark.parametrize("cols", [1, 2, 7, 17, 40, 78, 79, 80, 81, 99])
def test_a_question_is_one_line_in_any_width_and_comes_back(cols: int) -> None:
    screen = show(QUESTION, 30, 100)
    screen.resize(20, cols)
    if cols > 4:
        assert View.of(screen).before_cursor() == QUESTION
    screen.resize(30, 100)
    assert screen.line(0) == QUESTION.rstrip()
    assert View.of(screen).before_cursor() == QUESTION
    screen.feed(b"y")
    assert screen.line(0) == QUESTION + "y"


def test_a_question_that_fills_its_row_is_read_to_its_last_sign() -> None:
    screen = show("Remove them? [Y/n]", cols=18)
    assert View.of(screen).before_cursor() == "Remove them? [Y/n]"


def test_what_is_typed_after_a_resize_follows_the_question() -> None:
    screen = show(QUESTION, 30, 100)
    screen.resize(20, 40)
    screen.feed(b"no")
    assert "".join(screen.lines()) == QUESTION + "no"


def test_a_full_line_that_is_widened_goes_on_behind_its_last_cell() -> None:
    screen = show("0123456789", cols=10)
    screen.resize(5, 20)
    screen.feed(b"x")
    assert screen.line(0) == "0123456789x"


def test_a_taller_window_brings_lines_back() -> None:
    screen = show("".join(f"line {number}\r\n" for number in range(9)) + "$ ", 4)
    assert screen.lines() == ["line 6", "line 7", "line 8", "$"]
    screen.resize(8, 20)
    assert screen.lines() == [f"line {number}" for number in range(2, 9)] + ["$"]
    assert screen.cursor == (7, 2)


def test_a_line_that_began_above_the_screen_is_wrapped_with_its_beginning() -> None:
    screen = show("a" * 30 + "\r\n$ ", 2, 10)
    screen.resize(2, 40)
    assert screen.lines() == ["a" * 30, "$"]


def test_wide_characters_stay_whole_and_leave_no_gap() -> None:
    screen = show("あいうえおかきくけこ[Y/n] ", 5, 30)
    screen.resize(5, 9)
    assert screen.lines()[:3] == ["あいうえ", "おかきく", "けこ[Y/n]"]
    assert View.of(screen).before_cursor() == "あいうえおかきくけこ[Y/n] "
    screen.resize(5, 30)
    assert screen.line(0) == "あいうえおかきくけこ[Y/n]"


def test_lines_that_ended_by_themselves_are_not_joined() -> None:
    screen = show("first\r\nsecond", cols=20)
    screen.resize(5, 4)
    screen.resize(5, 20)
    assert screen.lines()[:2] == ["first", "second"]


def test_colours_follow_their_characters() -> None:
    screen = show("plain \x1b[7mlit\x1b[m end", cols=20)
    screen.resize(5, 4)
    screen.resize(5, 20)
    assert [bool(screen.style(0, col) & REVERSE) for col in (5, 6, 8, 9)] == [False, True, True, False]


def test_the_number_of_the_cursors_line_stays() -> None:
    screen = show("x" * 50 + "\r\nName: ", cols=20)
    before = screen.cursor[0] + screen.scrolled
    screen.resize(4, 7)
    assert screen.cursor[0] + screen.scrolled == before


def test_the_alternate_screen_is_cut_and_says_so() -> None:
    screen = show("main \x1b[?1049h\x1b[HContinue? [Y/n]\r\nok\r\n", cols=20)
    screen.resize(5, 9)
    assert [screen.line(0), screen.cut(0), screen.cut(1)] == ["Continue?", True, False]
    assert View.of(screen).cut == {0}
    screen.resize(5, 20)
    assert screen.cut(0), "what is gone does not come back by itself"
    screen.feed(b"\x1b[H\x1b[2JContinue? [Y/n]")
    assert not screen.cut(0), "the tool has drawn it again"
    screen.feed(b"\x1b[?1049l")
    assert screen.line(0) == "main"


def test_a_line_that_ran_over_the_edge_without_wrapping_is_cut() -> None:
    screen = show("\x1b[?7l" + "x" * 25)
    assert screen.cut(0)
    screen.feed(b"\x1b[?7h\x1b[2K\rfresh")
    assert not screen.cut(0)


def test_text_pushed_out_at_the_right_is_cut() -> None:
    assert show("0123456789abcdefghij\r\x1b[3@").cut(0)
    assert not show("0123456789\r\x1b[3@").cut(0)


def test_rows_below_the_cursor_that_find_no_room_are_told() -> None:
    screen = show("question\r\nNo\r\nYes\r\nMaybe\x1b[H", 5)
    screen.resize(2, 20)
    assert screen.lines() == ["question", "No"]
    assert screen.cut(1)


def test_a_terminal_that_joins_knows_which_rows_are_one_line() -> None:
    screen = show(QUESTION, 20, 40)
    joined = Screen(20, 40)
    joined.feed(render_screen(screen))
    assert [joined.lines(), joined.cursor] == [screen.lines(), screen.cursor]
    assert joined.wrapped(0)
    joined.resize(20, 100)
    assert joined.line(0) == QUESTION.rstrip()


def test_history_is_bounded_whatever_the_width() -> None:
    screen = Screen(5, 500)
    screen.feed(b"".join(b"%d %s\r\n" % (number, b"x" * 490) for number in range(500)))
    assert len(screen.history) <= 40
