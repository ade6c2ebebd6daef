"""Cells keep their colours and flags, true colour included, through every kind of edit."""

from __future__ import annotations

import json

import pytest

from atlasbridge.core.screen.screen import Screen
from atlasbridge.core.screen.style import (
    BOLD,
    DIM,
    HIDDEN,
    ITALIC,
    MAX_INKS,
    REVERSE,
    STRIKE,
    UNDERLINE,
    background,
    foreground,
)


def show(data: str) -> Screen:
    screen = Screen(3, 12)
    screen.feed(data.encode())
    return screen


@pytest.mark.parametrize(
    ("params", "flags"),
    [
        ("1", BOLD),
        ("2;3", DIM | ITALIC),
        ("4", UNDERLINE),
        ("4:3", UNDERLINE),
        ("4;4:0", 0),
        ("21", UNDERLINE),
        ("7;8;9", REVERSE | HIDDEN | STRIKE),
        ("1;2;22", 0),
        ("7;1;27", BOLD),
        ("1;;4", UNDERLINE),
        ("1;", 0),
        ("", 0),
        ("58;5;9;1", BOLD),
    ],
)
def test_flags(params: str, flags: int) -> None:
    assert show(f"\x1b[{params}mx").style(0, 0) & 0xFF == flags


@pytest.mark.parametrize(
    ("params", "fg", "bg"),
    [
        ("31;42", 1, 2),
        ("97;100", 15, 8),
        ("38;5;200;48;5;17", 200, 17),
        ("38;2;1;2;255", "#0102ff", None),
        ("38:2::1:2:3;48:2:4:5:6", "#010203", "#040506"),
        ("38:5:7", 7, None),
        ("31;39;42;49", None, None),
        ("38;5;999", None, None),
        ("38;9;1", None, None),
        ("38", None, None),
    ],
)
def test_colours(params: str, fg: int | str | None, bg: int | str | None) -> None:
    style = show(f"\x1b[{params}mx").style(0, 0)
    assert (foreground(style), background(style)) == (fg, bg)


def test_private_sequences_that_end_in_m_change_no_colour() -> None:
    assert show("\x1b[>4;1mx\x1b[?1my").styles(0)[:2] == [0, 0]


def test_spans_cover_the_row() -> None:
    screen = show("ab\x1b[7mcd\x1b[me")
    assert screen.spans(0) == [(0, 2, 0), (2, 4, REVERSE), (4, 12, 0)]
    assert bool(screen.style(0, 3) & REVERSE)
    assert not bool(screen.style(0, 4) & REVERSE)


def test_erasing_keeps_only_the_background() -> None:
    screen = show("\x1b[1;31;44m\x1b[K")
    assert {(background(style), style & 0xFF, foreground(style)) for style in screen.styles(0)} == {(4, 0, None)}


def test_inserting_and_deleting_move_styles_with_the_text() -> None:
    screen = show("a\x1b[7mb\x1b[mc\x1b[1;1H\x1b[2@")
    assert [bool(screen.style(0, col) & REVERSE) for col in range(5)] == [False, False, False, True, False]
    screen.feed(b"\x1b[2P")
    assert [bool(screen.style(0, col) & REVERSE) for col in range(3)] == [False, True, False]


def test_scrolling_moves_styles() -> None:
    screen = show("\x1b[7mx\x1b[m\r\n\r\n\r\n")
    assert not any(bool(screen.style(row, 0) & REVERSE) for row in range(3))


def test_styled_rows_are_ready_for_json() -> None:
    rows = json.loads(json.dumps(show("ok \x1b[1;38;2;255;0;0mred\x1b[m\r\n\x1b[44m  ").styled()))
    assert rows == [[["ok ", None, None, 0], ["red", "#ff0000", None, BOLD]], [["  ", None, 4, 0]], []]


def test_styles_survive_a_flood_of_other_colours() -> None:
    screen = show("\x1b[1;38;2;9;9;9mkeep\x1b[m\x1b7")
    for number in range(MAX_INKS + 50):
        screen.feed(b"\x1b[2;1H\x1b[38;2;%d;%d;7mx" % divmod(number, 256))
    assert foreground(screen.style(0, 0)) == "#090909"
    assert foreground(screen.style(1, 0)) == f"#{(MAX_INKS + 49) // 256:02x}{(MAX_INKS + 49) % 256:02x}07"
    assert len(screen.terminal.inks.styles) < MAX_INKS + 2


def test_more_live_colours_than_are_kept_lose_their_colour_not_their_flags() -> None:
    screen = Screen(100, 200)
    for number in range(20000):
        screen.feed(b"\x1b[7;38;2;%d;%d;7mx" % divmod(number, 256))
    assert bool(screen.style(0, 0) & REVERSE)
    assert foreground(screen.style(0, 0)) is None
    assert foreground(screen.style(99, 199)) == "#4e1f07"
