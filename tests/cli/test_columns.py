"""Tables lose nothing: wrapped where there is little room, whole where there is any."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlasbridge.cli.columns import cells, clip, fit, lay_out
from atlasbridge.cli.hub import print_status

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


@given(st.text(st.sampled_from("abc漢 -/"), max_size=200), st.integers(20, 90))
def test_sentences_wrap_between_words_and_lose_none(text: str, cols: int) -> None:
    lines = fit(text, cols).split("\n")
    assert all(cells(line) <= cols for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert fit(text, 0) == text


def test_a_list_of_options_keeps_its_second_column() -> None:
    assert fit("  --ttl DURATION  how long a prompt waits", 36).split("\n") == [
        "  --ttl DURATION  how long a prompt",
        "                  waits",
    ]
    assert fit("  --name, --label TEXT  the name", 24).split("\n") == ["  --name, --label TEXT", "      the name"]


def test_a_command_at_the_end_of_a_line_stays_in_one_piece() -> None:
    said = "atlasbridge: detached; the session continues. Come back with: atlasbridge attach 264362ee"
    assert fit(said, 80).split("\n")[1] == "atlasbridge attach 264362ee"


def test_wide_columns_wrap_before_a_table_is_given_up() -> None:
    rows = [("50708322", "a name of several words", "7c5c883e not asked now", "/src")]
    lines = lay_out(("session", "name", "prompt", "folder"), rows, 50)
    assert lines[0].split() == ["session", "name", "prompt", "folder"] and len(lines) == 4
    assert all(cells(line) <= 50 for line in lines)


def test_rows_that_are_too_wide_for_a_table_become_names_and_values() -> None:
    rows = [("50708322", "web-api", "", "/src"), ("2a864cf8", "menu", "019ec30f", "/")]
    lines = lay_out(("session", "name", "prompt", "folder"), rows, 20)
    assert lines[:4] == ["session  50708322", "name     web-api", "folder   /src", ""]
    assert lines[4:] == ["session  2a864cf8", "name     menu", "prompt   019ec30f", "folder   /"]


def test_the_status_of_a_hub_says_what_its_channels_have_to_say(capsys: pytest.CaptureFixture[str]) -> None:
    """A fleet server that was restored, and what it has not been told yet."""
    link = {"name": "server", "state": "ok", "url": "https://fleet", "notice": "The database went back.", "waiting": 3}
    broken = {"name": "telegram", "state": "failing", "fault": "no such bot", "waiting": 0}
    head = {"count": 1, "hash": "sha256:0"}
    report = {"pid": 1, "uptime_s": 5, "audit_head": head, "open_prompts": 0, "sessions": 0}
    print_status({**report, "channels": [link, broken]})
    shown = capsys.readouterr().out
    assert "The database went back. 3 not sent yet" in shown and "no such bot" in shown
