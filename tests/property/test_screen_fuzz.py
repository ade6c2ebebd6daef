"""No byte stream raises, hangs or grows the screen, and any chunking of it gives the same screen.

`SCREEN_FUZZ_STREAMS` sets how many random streams are tried.
"""

from __future__ import annotations

import os
import random
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.tier import examples, times

from atlasbridge.core.screen.screen import Screen

STREAMS = int(os.environ.get("SCREEN_FUZZ_STREAMS", times(3000, quickly=300)))
_WORDS = (
    *("text", "日本語", "e\u0301\u0302", "👨\u200d👩\u200d👧", "\u200d", "\U00100001", "x" * 90),
    *("\r\n", "\n", "\r", "\b", "\t", "\x1b", "\x1b[", "\x1b]", "\x1bP", "\x1b_", "\x1b\\", "\x07", "\x18", "\x9b"),
    *("\x9d", "\x0e", "\x0f", "\x1b(0", "\x1b(B", "\x1b7", "\x1b8", "\x1bM", "\x1bD", "\x1bc", "\x1b#8", "\x1bH"),
    *("\x1b[!p", "\x1b[?1049h", "\x1b[?1049l", "\x1b[?47h", "\x1b[?6h", "\x1b[?6l", "\x1b[?7l", "\x1b[?7h"),
    *("\x1b[4h", "\x1b[4l", "\x1b[3g", "\x1b[2;3r", "\x1b[r", "\x1b[s", "\x1b[u", "\x1b[999999999b"),
    *("\x1b[99999S", "\x1b[99999T", "\x1b[99999L", "\x1b[99999M", "\x1b[99999P", "\x1b[99999@"),
    *("\x1b[" + "1;" * 600, "\x1b[" + "9" * 900 + "C", "\x1b[38;2;1;2;3m", "\x1b[48:5:300m", "\x1b[7;;;m"),
    *("\x1b[>1u", "\x1b[<9u", "\x1b[c", "\x1b[6n", "\x1b]0;t", "\x1bP+q544e", "0", "1", ";", ":", "?", ">", "m"),
    *(
        "H",
        "J",
        "K",
        "h",
        "l",
        "$p",
        "\x1b[?69h",
        "\x1b[?69l",
        "\x1b[3;7s",
        "\x1b[5;5s",
        '\x1b[1"q',
        '\x1b[0"q',
        "\x1b[?J",
    ),
    *("\x1bk", "👍🏽", "☝\ufe0f🏽", "\u0600", "\U0001fae9", "\x1b[2b", "\x1b[65535Z", "\x1b[5:2H", "\x1b[9e"),
)


def _stream(rng: random.Random) -> bytes:
    pieces = []
    for _ in range(rng.randint(1, 40)):
        kind = rng.random()
        if kind < 0.7:
            pieces.append(rng.choice(_WORDS).encode())
        elif kind < 0.9:
            pieces.append(f"\x1b[{rng.randint(0, 12)};{rng.randint(0, 30)}{chr(rng.randint(64, 126))}".encode())
        else:
            pieces.append(rng.randbytes(rng.randint(1, 12)))
    return b"".join(pieces)


def _face(screen: Screen) -> tuple[object, ...]:
    return (
        (screen.lines(), [screen.spans(row) for row in range(screen.rows)], list(screen.history)),
        (screen.cursor, set(screen.modes), screen.alternate, screen.title, screen.kitty_flags),
        ([screen.wrapped(row) for row in range(screen.rows)], screen.take_notices(), screen.take_queries()),
        ([screen.cut(row) for row in range(screen.rows)], screen.scrolled),
    )


def _check_shape(screen: Screen) -> None:
    row, col = screen.cursor
    assert 0 <= row < screen.rows
    assert 0 <= col < screen.cols
    terminal = screen.terminal
    assert len(terminal.lines) == screen.rows
    assert all(len(line[0]) == len(line[1]) == screen.cols for line in terminal.lines)
    assert all(line[0][0] != "\0" for line in terminal.lines)
    assert len(screen.history) <= 20


def test_random_streams_keep_the_screen_in_shape_however_they_are_cut() -> None:
    for seed in range(STREAMS):
        rng = random.Random(seed)
        data = _stream(rng)
        rows, cols = rng.randint(1, 9), rng.randint(1, 24)
        whole, pieces = Screen(rows, cols, 20), Screen(rows, cols, 20)
        whole.feed(data)
        at = 0
        while at < len(data):
            step = rng.choice((1, 1, 2, 3, 7, 50))
            pieces.feed(data[at : at + step])
            at += step
        assert _face(whole) == _face(pieces), (seed, data)
        whole.resize(rng.randint(1, 9), rng.randint(1, 24))
        whole.feed(data)
        _check_shape(whole)


def test_a_window_that_changes_its_size_at_any_moment_keeps_the_screen_in_shape_however_it_is_cut() -> None:
    for seed in range(STREAMS // 10):
        rng = random.Random(f"sizes {seed}")
        rows, cols = rng.randint(1, 9), rng.randint(1, 24)
        whole, pieces = Screen(rows, cols, 20), Screen(rows, cols, 20)
        for _ in range(rng.randint(1, 6)):
            data, size = _stream(rng), (rng.randint(1, 9), rng.randint(1, 24))
            whole.feed(data)
            for byte in data:
                pieces.feed(bytes([byte]))
            whole.resize(*size)
            pieces.resize(*size)
            _check_shape(whole)
            assert _face(whole) == _face(pieces), (seed, data, size)


@given(st.text("ab 日\u0301", min_size=1, max_size=60), st.lists(st.integers(1, 40), min_size=1, max_size=6))
@settings(deadline=None, max_examples=examples(200))
def test_no_width_on_the_way_loses_a_character_of_a_line(text: str, widths: list[int]) -> None:
    screen = Screen(3, 200)
    screen.feed(text.encode())
    before = screen.line(0)
    for cols in widths:
        screen.resize(3, max(cols, 2))
    screen.resize(3, 200)
    assert screen.line(0) == before


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=8))
@settings(deadline=None, max_examples=examples(200))
def test_any_bytes_cut_anywhere_give_the_same_screen(data: bytes, cuts: list[int]) -> None:
    whole, pieces = Screen(4, 10, 20), Screen(4, 10, 20)
    whole.feed(data)
    edges = [0, *sorted(cuts), len(data)]
    for start, end in pairwise(edges):
        pieces.feed(data[start:end])
    assert _face(whole) == _face(pieces)


def test_a_screen_of_distinct_clusters_stays_bounded() -> None:
    screen = Screen(10, 20)
    for number in range(40000):
        screen.feed(f"{chr(0x4E00 + number % 20000)}{chr(0x300 + number // 20000)}".encode())
    assert len(screen.terminal.clusters) <= 16384
    assert screen.line(9).endswith("\u0301")


def test_a_tower_of_marks_stays_low() -> None:
    screen = Screen(2, 10)
    screen.feed(b"a" + "\u0301".encode() * 5000)
    assert len(screen.line(0)) <= 16
