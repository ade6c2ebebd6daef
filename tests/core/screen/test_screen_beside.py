"""What goes beside the cells: titles, bells, notifications, and the answers an xterm gives."""

from __future__ import annotations

import pytest

from atlasbridge.core.screen.screen import Screen
from atlasbridge.core.screen.stream import MAX_STRING
from atlasbridge.core.screen.terminal import MAX_KEPT, Notice


def ask(data: str) -> list[bytes]:
    screen = Screen(24, 80)
    screen.feed(data.encode())
    return screen.take_queries()


def test_notices_come_in_order_and_once() -> None:
    screen = Screen(5, 20)
    screen.feed(b"\x1b]0;one\x07\x07\x1b]9;done\x1b\\\x1b]777;notify;a;b\x07\x1b]99;i=1;hi\x07\x1b]133;A\x07")
    screen.feed(b"\x1b]7501;state=blocked:app=codex\x1b\\\x1b]1;icon\x07\x1b]2;two\x07")
    assert screen.take_notices() == [
        Notice("title", "one"),
        Notice("bell"),
        Notice("osc9", "done"),
        Notice("osc777", "notify;a;b"),
        Notice("osc99", "i=1;hi"),
        Notice("osc133", "A"),
        Notice("osc7501", "state=blocked:app=codex"),
        Notice("title", "two"),
    ]
    assert screen.take_notices() == []
    assert screen.title == "two"


def test_titles_can_be_pushed_and_popped() -> None:
    screen = Screen(5, 20)
    screen.feed(b"\x1b]2;shell\x07\x1b[22;0t\x1b]2;editor\x07\x1b[23;0t\x1b[23;0t")
    assert screen.title == "shell"


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("\x1b[c", b"\x1b[?62;22c"),
        ("\x1b[0c", b"\x1b[?62;22c"),
        ("\x1b[>c", b"\x1b[>41;390;0c"),
        ("\x1b[=c", b"\x1bP!|00000000\x1b\\"),
        ("\x1b[>0q", b"\x1bP>|XTerm(390)\x1b\\"),
        ("\x1b[5n", b"\x1b[0n"),
        ("\x1b[3;7H\x1b[6n", b"\x1b[3;7R"),
        ("\x1b[?6n", b"\x1b[?1;1R"),
        ("\x1b[3;9r\x1b[?6h\x1b[2;1H\x1b[6n", b"\x1b[2;1R"),
        ("\x1b[?2004$p", b"\x1b[?2004;2$y"),
        ("\x1b[?2026h\x1b[?2026$p", b"\x1b[?2026;1$y"),
        ("\x1b[?9999$p", b"\x1b[?9999;0$y"),
        ("\x1b[4$p", b"\x1b[4;2$y"),
        ("\x1b]11;?\x07", b"\x1b]11;rgb:0000/0000/0000\x07"),
        ("\x1b]10;?\x1b\\", b"\x1b]10;rgb:e5e5/e5e5/e5e5\x1b\\"),
        ("\x1b]4;196;?\x07", b"\x1b]4;196;rgb:ffff/0000/0000\x07"),
        ("\x1b]4;244;?\x07", b"\x1b]4;244;rgb:8080/8080/8080\x07"),
        ("\x1b[14t", b"\x1b[4;384;640t"),
        ("\x1b[16t", b"\x1b[6;16;8t"),
        ("\x1b[18t", b"\x1b[8;24;80t"),
        ("\x1bP+q544e\x1b\\", b"\x1bP1+r544e=787465726D2D323536636F6C6F72\x1b\\"),
        ("\x1bP+qzz\x1b\\", b"\x1bP0+r\x1b\\"),
        ("\x1b[1;38;2;1;2;3;104m\x1bP$qm\x1b\\", b"\x1bP1$r0;1;38;2;1;2;3;104m\x1b\\"),
        ("\x1bP$qr\x1b\\", b"\x1bP1$r1;24r\x1b\\"),
        ("\x1b]7501;?\x07", b"\x1b]7501;?\x1b\\"),
    ],
)
def test_questions_are_answered_as_an_xterm_does(question: str, answer: bytes) -> None:
    assert ask(question) == [answer]


@pytest.mark.parametrize(
    "question", ["\x1b[?u", "\x1b[21t", "\x1b[1c", "\x1b]52;c;?\x07", "\x1b[99t", "\x1b]4;999;?\x07"]
)
def test_what_an_xterm_leaves_unanswered(question: str) -> None:
    assert ask(question) == []


def test_answers_come_in_the_order_asked() -> None:
    assert ask("\x1b[>0q\x1b[?u\x1b]7501;?\x07\x1b[c\x1b]10;?;?\x07") == [
        b"\x1bP>|XTerm(390)\x1b\\",
        b"\x1b]7501;?\x1b\\",
        b"\x1b[?62;22c",
        b"\x1b]10;rgb:e5e5/e5e5/e5e5\x07",
        b"\x1b]11;rgb:0000/0000/0000\x07",
    ]


def test_unfetched_notices_and_answers_are_bounded() -> None:
    screen = Screen(5, 20)
    screen.feed(b"\x07\x1b[c" * 5000)
    assert len(screen.take_notices()) == MAX_KEPT
    assert len(screen.take_queries()) == MAX_KEPT


@pytest.mark.parametrize("opening", [b"\x1b]2;", b"\x1bP", b"\x1b_", b"\x1b^", b"\x1bX"])
@pytest.mark.parametrize("chunk", [1, 4096, 10**7])
def test_an_endless_string_is_swallowed_and_not_kept(opening: bytes, chunk: int) -> None:
    screen = Screen(5, 20)
    screen.feed(b"before" + opening)
    body = b"x" * (MAX_STRING * 3)
    for at in range(0, len(body), chunk):
        screen.feed(body[at : at + chunk])
    assert sum(map(len, screen._stream._tokenizer._body or [])) <= MAX_STRING
    screen.feed(b"\x1b\\after")
    assert screen.line(0) == "beforeafter"
    assert screen.title == ""


def test_a_long_title_is_cut() -> None:
    screen = Screen(5, 20)
    screen.feed(b"\x1b]2;" + b"t" * 5000 + b"\x07")
    assert screen.title == "t" * 1000
