"""Tables lose nothing: wrapped where there is little room, whole where there is any."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from atlasbridge.cli.printing import cells, clip, lay_out

TEXT = st.text(st.sampled_from("abc漢字 -/é"), max_size=60)


@given(st.lists(st.tuples(TEXT, TEXT, TEXT), min_size=1, max_size=5), st.integers(8, 120))
def test_no_character_is_lost_and_no_line_is_too_wide(rows: list[tuple[str, str, str]], cols: int) -> None:
    lines = lay_out(("one", "two", "three"), rows, cols)
    assert all(cells(line) <= cols for line in lines)
    printed = "".join("".join(lines).split())
    for row in rows:
        for cell in row:
            for char in set("".join(cell.split())):
                assert printed.count(char) >= cell.count(char)


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=5))
def test_behind_a_pipe_a_row_is_a_line(rows: list[tuple[str, str]]) -> None:
    assert len(lay_out(("one", "two"), rows, 0)) == len(rows) + 2


def test_a_long_last_column_wraps_beside_the_others_or_below_them() -> None:
    rows = [("a1b2c3d4", "web-api", "x" * 50)]
    assert lay_out(("id", "name", "what"), rows, 60)[2:] == ["a1b2c3d4  web-api  " + "x" * 41, " " * 19 + "x" * 9]
    assert lay_out(("id", "name", "what"), rows, 30)[-1] == "    " + "x" * 24


def test_what_is_cut_says_so() -> None:
    assert clip("漢字漢字", 5) == "漢字…" and clip("abc", 3) == "abc"
