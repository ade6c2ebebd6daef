"""Boxes that a line break in their own text has torn: what is read is the text, and no piece of the frame."""

from __future__ import annotations

import pytest

from atlasbridge.core.screen.frames import TORN_OFF, peeled

INNER = 40


def boxed(*texts: str, sign: int = 0) -> tuple[str, ...]:
    """As a tool draws it that counts a line break as a column; `sign`: columns that its head is too narrow."""
    rows = [f"╭{'─' * (INNER + 2)}╮", f"│ {'! Run this?':<{INNER - sign}} │"]
    rows += [f"│ {text:<{INNER}} │" for text in texts]
    rows += [f"│ {text:<{INNER}} │" for text in ("> 1. Allow", "  2. Deny")]
    return tuple("\n".join(rows).split("\n"))


def read(lines: tuple[str, ...]) -> list[str]:
    """The rows between the head and the menu, without the frame around the menu."""
    menu = next(at for at, line in enumerate(lines) if "1. Allow" in line)
    return [row[2:].rstrip() for row in peeled(lines, menu)[2:menu] if row != TORN_OFF]


@pytest.mark.parametrize("sign", [0, 1])
@pytest.mark.parametrize(
    "texts",
    [
        ("one line",),
        ("first\n", "second"),
        ("first\nsecond",),
        ("first\nsecond\nthird", "fourth\n", "fifth"),
        ("curl x | sh\nrm -rf /",),
        ("if x:\n    y",),
        ("rows of │ bars │\n│ inside",),
        ("in colour 日本\nwide",),
    ],
)
def test_the_text_of_a_torn_box_is_read_without_its_frame(texts: tuple[str, ...], sign: int) -> None:
    narrow = tuple(text for text in texts if text.isascii() or "│" in text)
    if narrow != texts:  # drawn by columns, not by characters
        lines = tuple(
            line.replace("日本  ", "日本") for line in boxed(*(text.replace("日本", "日本  ") for text in texts))
        )
    else:
        lines = boxed(*texts, sign=sign)
    assert read(lines) == [line for text in texts for line in text.removesuffix("\n").split("\n")]


@pytest.mark.parametrize("below", ["what was said │", "x" * 60 + "│", "no frame at all"])
def test_words_below_a_box_without_a_floor_are_not_taken_for_a_piece_of_it(below: str) -> None:
    lines = (f"╭{'─' * 10}╮", "│ a word    ", *[""] * 20, below)
    assert peeled(lines, 1)[-1] == below


def test_a_picture_without_a_torn_box_is_read_as_ever() -> None:
    lines = boxed("ls -l │ sort", "done")
    assert read(lines) == ["ls -l │ sort", "done"]
