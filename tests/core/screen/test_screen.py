"""The screen shows what a terminal would: text, cursor, wrapping, scrolling, erasing, both screens, sizes."""

from __future__ import annotations

import pytest

from atlasbridge.core.screen.screen import Screen


def show(data: str | bytes, rows: int = 5, cols: int = 10, history_lines: int = 0) -> Screen:
    screen = Screen(rows, cols, history_lines)
    screen.feed(data.encode() if isinstance(data, str) else data)
    return screen


def test_text_goes_where_the_cursor_is() -> None:
    screen = show("one\r\ntwo\x1b[4;3Hthree")
    assert screen.lines() == ["one", "two", "", "  three", ""]
    assert screen.cursor == (3, 7)


def test_a_full_line_wraps_only_when_more_text_comes() -> None:
    screen = show("0123456789")
    assert (screen.cursor, screen.wrapped(0)) == ((0, 9), False)
    screen.feed(b"a")
    assert screen.lines()[:2] == ["0123456789", "a"]
    assert screen.wrapped(0)
    assert not screen.wrapped(1)


def test_a_return_after_a_full_line_does_not_wrap() -> None:
    screen = show("0123456789\r\nx")
    assert screen.lines()[:2] == ["0123456789", "x"]
    assert not screen.wrapped(0)


def test_a_soft_wrap_is_forgotten_when_the_line_end_is_erased() -> None:
    screen = show("0123456789abc\x1b[1;4H\x1b[K")
    assert screen.line(0) == "012"
    assert not screen.wrapped(0)


def test_without_autowrap_the_last_column_is_overwritten() -> None:
    assert show("\x1b[?7l0123456789abc").lines()[:2] == ["012345678c", ""]


def test_lines_scroll_into_a_bounded_history() -> None:
    screen = show("".join(f"line {number}\r\n" for number in range(20)), history_lines=3)
    assert screen.lines() == ["line 16", "line 17", "line 18", "line 19", ""]
    assert list(screen.history) == ["line 13", "line 14", "line 15"]


def test_the_alternate_screen_leaves_no_history_and_gives_the_main_screen_back() -> None:
    screen = show("shell\x1b[?1049h\x1b[Hone\r\n2\r\n3\r\n4\r\n5\r\n6", history_lines=9)
    assert screen.alternate
    assert screen.lines() == ["2", "3", "4", "5", "6"]
    screen.feed(b"\x1b[?1049l")
    assert not screen.alternate
    assert (screen.lines()[0], screen.cursor) == ("shell", (0, 5))
    assert list(screen.history) == []


@pytest.mark.parametrize("mode", [47, 1047, 1049])
def test_every_mode_of_the_alternate_screen_works(mode: int) -> None:
    screen = show(f"main\x1b[?{mode}hother")
    assert mode in screen.modes
    assert screen.line(0).strip() == "other"
    screen.feed(f"\x1b[?{mode}l".encode())
    assert screen.line(0) == "main"
    assert mode not in screen.modes


def test_margins_keep_scrolling_inside() -> None:
    screen = show("a\r\nb\r\nc\r\nd\r\ne\x1b[2;4r\x1b[4;1H\nX")
    assert screen.lines() == ["a", "c", "d", "X", "e"]


def test_origin_mode_counts_from_the_margins() -> None:
    screen = show("\x1b[2;4r\x1b[?6h\x1b[1;1HX\x1b[9;1HY")
    assert screen.lines() == ["", "X", "", "Y", ""]


def test_reverse_index_scrolls_down_at_the_top() -> None:
    assert show("a\r\nb\x1b[H\x1bMc").lines()[:3] == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("sequence", "expected"),
    [
        ("\x1b[K", "abc"),
        ("\x1b[1K", "    efgh"),
        ("\x1b[2K", ""),
        ("\x1b[2X", "abc  fgh"),
        ("\x1b[2P", "abcfgh"),
        ("\x1b[2@", "abc  defgh"),
        ("\x1b[4hXY", "abcXYdefgh"),
        ("\x1b[D\x1b[1C!", "abc!efgh"),
        ("\x1b[7GZ", "abcdefZh"),
        ("\x1b[65535C!", "abcdefgh !"),
    ],
)
def test_line_editing_sequences(sequence: str, expected: str) -> None:
    assert show(f"abcdefgh\x1b[1;4H{sequence}").line(0) == expected


@pytest.mark.parametrize(
    ("sequence", "expected"),
    [
        ("\x1b[J", ["a", "b", "", "", ""]),
        ("\x1b[1J", ["", "", "", "d", "e"]),
        ("\x1b[2J", ["", "", "", "", ""]),
        ("\x1b[L", ["a", "b", "", "c", "d"]),
        ("\x1b[2M", ["a", "b", "e", "", ""]),
        ("\x1b[S", ["b", "c", "d", "e", ""]),
        ("\x1b[2T", ["", "", "a", "b", "c"]),
        ("\x1b[65535S", ["", "", "", "", ""]),
    ],
)
def test_screen_editing_sequences(sequence: str, expected: list[str]) -> None:
    assert show(f"a\r\nb\r\nc\r\nd\r\ne\x1b[3;1H{sequence}").lines() == expected


def test_tab_stops_can_be_set_and_cleared() -> None:
    assert show("\ta", cols=20).line(0) == "        a"
    assert show("\x1b[3g\x1b[1;4H\x1bH\r\ta", cols=20).line(0) == "   a"
    assert show("\t\t\x1b[Zx", cols=20).line(0) == "        x"


def test_saved_cursor_brings_position_colour_and_charset_back() -> None:
    screen = show("\x1b[2;3H\x1b[1m\x1b(0\x1b7\x1b[m\x1b(B\x1b[Hx\x1b8q")
    assert screen.lines()[:2] == ["x", "  ─"]
    assert screen.style(1, 2) & 1


def test_line_drawing_characters() -> None:
    assert show("\x1b(0lqk\x1b(Blqk").line(0) == "┌─┐lqk"
    assert show("\x1b)0a\x0eq\x0fq").line(0) == "a─q"


def test_repeat_writes_the_last_character_again() -> None:
    assert show("ab\x1b[3b").line(0) == "abbbb"


def test_wide_characters_take_two_columns() -> None:
    screen = show("日本x")
    assert (screen.line(0), screen.cursor) == ("日本x", (0, 5))
    assert screen.text(0, 2, 4) == "本"


def test_a_wide_character_that_does_not_fit_goes_to_the_next_line() -> None:
    screen = show("012345678日")
    assert screen.lines()[:2] == ["012345678", "日"]


def test_half_of_a_wide_character_cannot_stay() -> None:
    assert show("日本\x1b[1;2Hx").line(0) == " x本"
    assert show("日本\x1b[1;1Hx").line(0) == "x 本"
    assert show("日本\x1b[1;1H\x1b[P").line(0) == " 本"


def test_marks_and_joined_emoji_share_a_cell() -> None:
    screen = show("e\u0301x👨\u200d👩\u200d👧!")
    assert screen.line(0) == "e\u0301x👨\u200d👩\u200d👧!"
    assert screen.cursor == (0, 5)


def test_a_mark_without_a_base_is_dropped() -> None:
    assert show("\u0301a").line(0) == "a"


def test_c1_controls_in_utf_8_are_shown_and_not_obeyed() -> None:
    assert show("a\x9b3Cb").line(0) == "a\ufffd3Cb"


def test_controls_inside_a_sequence_take_effect() -> None:
    assert show("a\x1b[3\nCb").lines()[:2] == ["a", "    b"]


def test_broken_sequences_are_dropped_and_text_resumes() -> None:
    assert show("a\x1b[12\x18b\x1b]0;half\x1b[mc").line(0) == "abc"


def test_control_strings_never_reach_the_screen() -> None:
    screen = show("a\x1b]8;;http://x\x07b\x1b]8;;\x1b\\c\x1bPq#0;~~\x1b\\d\x1b_Gi=1;AAAA\x1b\\e\x1b^pm\x1b\\f")
    assert screen.line(0) == "abcdef"


def test_reset_clears_screen_and_modes_but_not_the_title() -> None:
    screen = show("\x1b]2;name\x07\x1b[?2004h\x1b[1mtext\x1bc")
    assert screen.lines() == [""] * 5
    assert screen.modes == {7, 25}
    assert screen.title == "name"


def test_soft_reset_keeps_the_text() -> None:
    screen = show("text\x1b[?1h\x1b[?25l\x1b[4h\x1b[2;3r\x1b[!p\x1b[1;1Hx")
    assert screen.line(0) == "xext"
    assert screen.cursor_visible
    assert 1 not in screen.modes


def test_alignment_pattern_fills_the_screen() -> None:
    assert show("\x1b#8", 2, 3).lines() == ["EEE", "EEE"]


def test_modes_and_keyboards_are_known() -> None:
    screen = show("\x1b[?1h\x1b[?1000;1006;2004;2026h\x1b[?25l\x1b=\x1b[>5u")
    assert {1, 1000, 1006, 2004, 2026} <= screen.modes
    assert not screen.cursor_visible
    assert 2026 in screen.modes
    assert screen.application_keypad
    assert screen.kitty_flags == 5


def test_kitty_flags_are_a_stack_for_each_screen() -> None:
    screen = show("\x1b[>1u\x1b[>3u\x1b[=4;2u")
    assert screen.kitty_flags == 7
    screen.feed(b"\x1b[?1049h")
    assert screen.kitty_flags == 0
    screen.feed(b"\x1b[?1049l\x1b[<u")
    assert screen.kitty_flags == 1
    screen.feed(b"\x1b[<99u")
    assert screen.kitty_flags == 0


def test_modes_can_be_saved_and_restored() -> None:
    screen = show("\x1b[?2004h\x1b[?2004s\x1b[?2004l\x1b[?2004r")
    assert 2004 in screen.modes


def test_shrinking_keeps_the_line_of_the_cursor() -> None:
    screen = show("a\r\nb\r\nc\r\nd\r\nlonger", history_lines=9)
    screen.resize(2, 4)
    assert screen.lines() == ["long", "er"]
    assert screen.cursor == (1, 2)
    assert list(screen.history) == ["a", "b", "c", "d"]


def test_growing_pads_and_new_columns_are_used() -> None:
    screen = show("ab", 2, 4)
    screen.resize(3, 12)
    screen.feed(b"cdefghij\r\n\tx")
    assert screen.lines() == ["abcdefghij", "        x", ""]


def test_resizing_in_the_alternate_screen_fits_the_main_screen_too() -> None:
    screen = show("main\x1b[?1049h")
    screen.resize(3, 3)
    screen.feed(b"\x1b[?1049l")
    assert screen.lines() == ["mai", "n", ""]
    assert screen.cursor == (1, 1)


def test_any_size_is_made_possible() -> None:
    screen = Screen(0, -5)
    screen.feed("wide 日 text".encode())
    screen.resize(10**9, 1)
    assert (screen.cols, len(screen.lines())) == (1, screen.rows)


def test_version_grows_with_cells_and_cursor_but_not_with_titles() -> None:
    screen = show("text")
    before = screen.version
    screen.feed(b"\x1b]0;title\x07\r\x1b[4C")
    assert screen.version == before
    screen.feed(b"\x1b[C")
    assert screen.version == before + 1
    screen.feed(b"\r\x1b[1mt\x1b[1;6H")
    assert screen.version == before + 2
