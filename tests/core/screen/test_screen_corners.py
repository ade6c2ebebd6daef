"""Corners where terminals have a common opinion: widths, titles of TERM=screen, margins, protected cells, repeats."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from atlasbridge.core.screen import width as widths
from atlasbridge.core.screen.screen import Screen

ROOT = Path(__file__).resolve().parents[3]


def show(text: str, rows: int = 6, cols: int = 10) -> Screen:
    screen = Screen(rows, cols)
    screen.feed(text.encode())
    return screen


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("\U0001fae9", 2),
        ("\U000323b0", 2),
        ("\u0600", 1),
        ("\u06dd", 1),
        ("\U0001cc00", 1),
        ("日", 2),
        ("e\u0301", 1),
        ("👍🏽", 2),
        ("\u2e80", 2),
        ("\U00010efc", 0),
        ("\u1160", 0),
        ("\U0001f1e9\U0001f1ea", 2),
        ("☝🏿", 1),
        ("👩🏽\u200d🚀", 2),
        ("x🏽", 3),
    ],
)
def test_characters_take_the_columns_that_unicode_gives_them(text: str, columns: int) -> None:
    screen = show(f"a{text}")
    assert (screen.cursor[1], screen.line(0)) == (1 + columns, f"a{text}")


def test_a_sign_in_front_of_numbers_does_not_vanish_at_the_start_of_a_line() -> None:
    assert show("\u0600\u0661").line(0) == "\u0600\u0661"


def test_the_runs_that_go_at_once_have_one_width() -> None:
    for code in range(0x20, 0x110000):
        char = chr(code)
        if widths.is_narrow(char):
            assert widths.width(char) == 1, hex(code)


def test_the_table_of_widths_is_what_its_generator_writes() -> None:
    spec = importlib.util.spec_from_file_location("gen_widths", ROOT / "tools" / "gen_widths.py")
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.TABLE.read_text("utf-8") == tool.render()


def test_a_title_as_screen_takes_it_is_no_text() -> None:
    screen = show("Sure? \x1bkmake\x1b\\[y/N]", cols=20)
    assert (screen.line(0), screen.title) == ("Sure? [y/N]", "make")


@pytest.mark.parametrize("text", ["\x1bkno end\r\n", "\x1bk" + "x" * 300, "\x1bkhalf\x1b[m."])
def test_a_title_without_its_end_is_text(text: str) -> None:
    assert show(text, 40, 40).line(0).startswith(text[2:6])


def test_a_wrap_that_is_due_survives_a_change_of_mind() -> None:
    assert show("0123456789\x1b[?7l\x1b[?7hx").lines()[:2] == ["0123456789", "x"]
    assert show("0123456789\x1b[?7lx").lines()[:2] == ["012345678x", ""]


def test_a_character_with_its_marks_is_repeated_and_only_right_behind_it() -> None:
    assert show("e\u0301\x1b[2b").line(0) == "e\u0301" * 3
    assert show("e\x1b[3G\x1b[2b").line(0) == "e"
    assert show("日\x1b[2b").line(0) == "日日日"


def test_going_down_by_position_leaves_the_margins() -> None:
    assert show("\x1b[2;3r\x1b[2;1H\x1b[9e").cursor == (5, 0)
    assert show("\x1b[2;3r\x1b[2;1H\x1b[9B").cursor == (2, 0)


def test_what_is_protected_is_left_by_a_selective_erase() -> None:
    assert show('a\x1b[1"qKEEP\x1b[0"qb\x1b[?2K').line(0) == " KEEP"
    assert show('a\x1b[1"qKEEP\x1b[0"qb\r\nc\x1b[?2J').lines()[:2] == [" KEEP", ""]
    assert show('a\x1b[1"qKEEP\x1b[0"qb\x1b[2K').line(0) == ""
    protected = show('\x1b[1"qKEEP\x1b[0"q')
    assert protected.style(0, 0) == 0, "it looks like any other"


def test_between_left_and_right_margins_only_their_columns_move() -> None:
    start = "\x1b[?69h0123456789\r\nabcdefghij\r\nklmnopqrst\x1b[3;6s"
    assert show(f"{start}\x1b[1;3H\x1b[M").lines()[:3] == ["01cdef6789", "abmnopghij", "kl    qrst"]
    assert show(f"{start}\x1b[1;3H\x1b[L").lines()[:3] == ["01    6789", "ab2345ghij", "klcdefqrst"]
    assert show(f"{start}\x1b[1;4H\x1b[P").line(0) == "01245 6789"
    assert show(f"{start}\x1b[1;4H\x1b[@").line(0) == "012 346789"
    assert show(f"{start}\x1b[4;3Hlong text").lines()[3:] == ["  long", "   tex", "  t"]
    assert show(f"{start}\x1b[1;5H\r").cursor == (0, 2)
    assert show(f"{start}\x1b[1;1H\x1b[M").lines()[:1] == ["0123456789"], "outside nothing moves"
    assert show(f"{start}\x1b[?69l\x1b[1;1Habcdefghij").line(0) == "abcdefghij"


def test_parts_of_parameters_place_no_cursor() -> None:
    assert show("\x1b[3:4Hx").line(0) == "x"


def test_going_back_by_tabs_costs_no_more_than_a_line() -> None:
    assert show("\x1b[9C\x1b[65535Z").cursor == (0, 0)
    assert show("\x1b[65535I").cursor == (0, 9)


def test_c1_in_a_title_cannot_end_it_in_another_terminal() -> None:
    assert show("\x1b]2;a\x9cb\x07").title == "a\ufffdb"
