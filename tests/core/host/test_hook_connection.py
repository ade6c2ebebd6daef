"""An answer that a waiting hook takes: only what it understands for certain, once, and the keys where it is gone."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.session_fakes import PROMPT, Bench

from atlasbridge.core.host.attachment import Caller
from atlasbridge.core.host.typist import HookConnection, Typist, Walk
from atlasbridge.core.prompt.answer import encode_answer
from atlasbridge.core.prompt.keys import Step
from atlasbridge.core.prompt.model import (
    Answer,
    AnswerKind,
    Choice,
    Prompt,
    PromptType,
    Subject,
    SubjectKind,
    SubjectSource,
)
from atlasbridge.core.values import replace

COMMAND = Subject(SubjectKind.COMMAND, "rm -rf build", source=SubjectSource.HOOK, complete=True)
CHOICES = (
    Choice("1", "Yes", (Step(b"1"),)),
    Choice("2", "Yes, and don't ask again", (Step(b"2"),), always=True),
    Choice("3", "No", (Step(b"3"),), refuses=True),
)
ASKED: Prompt = replace(PROMPT, type=PromptType.TYPE_MULTIPLE_CHOICE, choices=CHOICES, subject=COMMAND)


def told(subject: Subject = COMMAND, answers: bool = True) -> dict[str, Any]:
    return {"m": "structured", "answers": answers, "subject": subject.to_json() | {"text": subject.text}}


def choice(value: str) -> Answer:
    return Answer(AnswerKind.CHOICE, value)


class Hook:
    """The hook's end of the line."""

    def __init__(self, message: dict[str, Any] | None = None) -> None:
        self.ours, theirs = socket.socketpair()
        self.ours.settimeout(60)
        self.caller = Caller(theirs)
        self.line = HookConnection()
        self.line.offer(self.caller, message or told())

    def heard(self) -> list[dict[str, Any]]:
        self.caller.close()
        with self.ours, self.ours.makefile("rb") as lines:
            return [json.loads(line) for line in lines]


@pytest.fixture
def bench() -> Iterator[Bench]:
    made = Bench()
    made.detector.open_prompt = ASKED
    made.raise_prompt(ASKED)
    yield made
    made.pty.close()


def typist(bench: Bench, line: HookConnection) -> Typist:
    walk = Walk(bench.watch, bench.input_writer, bench.pty, bench.clock, bench.settings, bench.clock.advance)
    return Typist(walk, encode_answer, line)


@pytest.mark.parametrize(("value", "word"), [("1", "allow"), ("3", "deny")])
def test_a_hook_that_waits_takes_the_answer_and_nothing_is_typed(bench: Bench, value: str, word: str) -> None:
    hook = Hook()
    assert typist(bench, hook.line).type("p1", choice(value)).detail == "hook"
    assert bench.pty.typed() == b""
    assert hook.heard() == [{"m": "decide", "behavior": word}]


@pytest.mark.parametrize(("value", "heard"), [("3", {"reason": "make no files"}), ("1", {})])
def test_the_reason_of_a_refusal_goes_with_it_and_is_never_typed(
    bench: Bench, value: str, heard: dict[str, str]
) -> None:
    hook = Hook()
    answer = replace(choice(value), reason="make no files")
    assert typist(bench, hook.line).type("p1", answer).detail == "hook"
    assert bench.pty.typed() == b""
    assert {name: said for name, said in hook.heard()[0].items() if name == "reason"} == heard


def test_a_reason_is_for_the_tool_alone_where_no_hook_waits(bench: Bench) -> None:
    assert typist(bench, HookConnection()).type("p1", replace(choice("3"), reason="make no files")).outcome == "typed"
    assert b"make" not in bench.pty.typed()


def test_a_tool_that_tells_by_events_may_wait_for_the_answer_too(bench: Bench) -> None:
    bench.detector.open_prompt = replace(ASKED, subject=replace(COMMAND, source=SubjectSource.EVENT))
    hook = Hook()
    assert typist(bench, hook.line).type("p1", choice("1")).detail == "hook"
    assert hook.heard() == [{"m": "decide", "behavior": "allow"}]


def test_it_is_told_once_and_the_same_prompt_again_says_what_is_remembered(bench: Bench) -> None:
    hook = Hook()
    hand = typist(bench, hook.line)
    assert hand.type("p1", choice("3")).outcome == hand.type("p1", choice("1")).outcome == "typed"
    assert bench.pty.typed() == b"" and len(hook.heard()) == 1


def test_what_grants_for_ever_is_typed_because_the_hook_knows_no_such_word(bench: Bench) -> None:
    hook = Hook()
    typist(bench, hook.line).type("p1", choice("2"))
    assert bench.pty.typed() == b"2" and hook.heard() == []


def test_a_hook_that_is_gone_leaves_the_answer_to_the_keys(bench: Bench) -> None:
    hook = Hook()
    hook.ours.close()
    assert typist(bench, hook.line).type("p1", choice("3")).outcome == "typed"
    assert bench.pty.typed() == b"3"
    hook.caller.close()


@pytest.mark.parametrize(
    "message",
    [
        told(answers=False),
        told(replace(COMMAND, text="rm -rf build /home")),
        told(replace(COMMAND, complete=False)),
        told(replace(COMMAND, kind=SubjectKind.PLAN)) | {"subject": None},
    ],
)
def test_a_hook_that_asks_for_something_else_or_does_not_wait_is_told_nothing(
    bench: Bench, message: dict[str, Any]
) -> None:
    hook = Hook(message)
    typist(bench, hook.line).type("p1", choice("1"))
    assert bench.pty.typed() == b"1" and hook.heard() == []


def test_two_ways_to_say_yes_are_for_the_keys(bench: Bench) -> None:
    hook = Hook()
    asked = replace(ASKED, choices=(*CHOICES, Choice("4", "Yes, in a sandbox", (Step(b"4"),))))
    bench.detector.open_prompt = asked
    typist(bench, hook.line).type("p1", choice("1"))
    assert bench.pty.typed() == b"1" and hook.heard() == []


def test_a_prompt_that_left_the_screen_is_not_decided_behind_its_back(bench: Bench) -> None:
    hook = Hook()
    bench.detector.shows = lambda digest: False
    assert typist(bench, hook.line).type("p1", choice("1")).outcome == "stale"
    assert hook.heard() == []


def test_a_dialog_that_was_answered_at_the_terminal_lets_its_hook_go(bench: Bench) -> None:
    hook = Hook()
    hook.line.over()
    assert typist(bench, hook.line).type("p1", choice("1")).outcome == "typed"
    assert bench.pty.typed() == b"1"
    assert hook.heard() == [{"m": "over"}]


@pytest.mark.parametrize(
    ("shown", "waits"),
    [
        (("edit", "+x = 1", "/srv/notes.md"), ("edit", "+x = 1", "/etc/cron.d/x")),
        (("tool", '{"name": "a"}', "read_table"), ("tool", '{"name": "a"}', "drop_table")),
        (("edit", "+x", "/srv/a"), ("tool", "+x", "/srv/a")),
    ],
)
def test_a_hook_with_the_same_words_about_something_else_is_not_told(
    bench: Bench, shown: tuple[str, str, str], waits: tuple[str, str, str]
) -> None:
    """A tool may ask for several at once: who allows the one on the screen has not allowed the other."""
    asked, other = (
        Subject(SubjectKind(kind), text, source=SubjectSource.HOOK, complete=True, target=target)
        for kind, text, target in (shown, waits)
    )
    hook = Hook(told(other))
    assert hook.line.decision_for(replace(ASKED, subject=asked), choice("1")) == ""
    assert hook.line.decision_for(replace(ASKED, subject=other), choice("1")) == "allow"
    hook.heard()
