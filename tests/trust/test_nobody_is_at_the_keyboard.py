"""A tool that makes its own terminal speak is no person at the keyboard: nobody is kept from being asked elsewhere."""

from __future__ import annotations

import pytest

from atlasbridge.core.screen.queries import keys_of, part_answers

# what terminals answer to what a tool may ask them at any time: each as xterm, kitty, foot, VTE or mlterm send it
ANSWERS = [
    b"\x1b[?1;1R",  # where the cursor is, with its page
    b"\x1b[?1;0;256S",  # colours of its pictures
    b"\x1b[>4;2m",  # how it sends keys with modifiers
    b"\x1b[2;1;1;112;112;1;0x",  # parameters of the line
    b"\x1b[?2026;2$y",
    b"\x1b[?0u",
    b"\x1b[?997;1n",
    b"\x1b[>41;379;0c",
    b"\x1b[?64;1;2c",
    b"\x1b[12;40R",
    b"\x1b[4;600;800t",
    b"\x1b[48;24;80;600;800t",
    b"\x1b]11;rgb:0000/0000/0000\x07",
    b"\x1b]lsome title\x1b\\",
    b"\x1bP1$r0m\x1b\\",
    b"\x1bP>|XTerm(379)\x1b\\",
    b"\x1b_Gi=31;OK\x1b\\",
    b"\x1b/Z",
]
GESTURES = [b"\x1b[<0;3;4M", b"\x1b[<35;3;4m", b"\x1b[M !!", b"\x1b[1;2;3;4;0&w", b"\x1b[I", b"\x1b[O"]
KEYS = [
    b"y",
    b"\r",
    b"\x1b",
    b"\x1b[A",
    b"\x1bOA",
    b"\x1b[1;5C",
    b"\x1b[3~",
    b"\x1b[97;5u",
    b"\x1bx",
    b"\x1b[15;2~",
    b"\x1bOx",
]


@pytest.mark.parametrize("answer", ANSWERS, ids=repr)
def test_what_a_terminal_answers_is_no_key(answer: bytes) -> None:
    assert keys_of(answer) == b"" and part_answers(answer) == (b"", answer)
    assert keys_of(answer + b"y" + answer) == b"y"


@pytest.mark.parametrize("gesture", GESTURES, ids=repr)
def test_mouse_and_focus_are_no_keys(gesture: bytes) -> None:
    assert keys_of(gesture) == b""


@pytest.mark.parametrize("key", KEYS, ids=repr)
def test_keys_are_keys(key: bytes) -> None:
    assert keys_of(key) == key and part_answers(key) == (key, b"")
