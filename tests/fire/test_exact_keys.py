"""What a person says is typed right or refused with a reason: never a second line, never a control key, no stray word.

Real programs read it; anything that hypothesis can think of is said.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from tests.support.arena import Arena, Fighter, arena
from tests.support.readers import arrow_menu, read_line_programs, select_menu
from tests.support.waiting import wait_for

FEW = settings(
    max_examples=10,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.generate),  # a failing answer is shown as it was said: making it smaller takes long
)
PEOPLE_SAY = st.one_of(
    st.text(max_size=60),
    st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), max_size=60),
    st.sampled_from(
        ["y", "n", "1", "enter", "cancel", "default", "", " ", "~~", "^C", "\\n", "'", '"', "`id`", "$(id)"]
    ),
)
NAMES = ["bash", "bash with readline", "python", "python with readline"]


@dataclass
class Reader:
    place: Arena
    fighter: Fighter
    count: int = 0

    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.fighter.received()]

    def say(self, text: str) -> str:
        """The text typed, or why it was refused; in both cases the tool has exactly the lines it should have."""
        number = self.count
        prompt = wait_for(lambda: self.fighter.question(number), f"question {number}")
        answer = self.place.reply(prompt["prompt_id"], text, as_text=True)
        assert answer is not None, "the hub died"
        if not answer["ok"]:
            assert answer["reason"] == "bad_value" and answer["message"], answer
            assert len(self.lines()) == number
            return str(answer["message"])
        self.count += 1
        wait_for(lambda: len(self.lines()) >= self.count, f"the line {text!r}")
        wait_for(lambda: self.fighter.question(self.count), "the next question, untouched")
        assert self.lines()[number:] == [text]
        return ""


@pytest.fixture(scope="module")
def place() -> Iterator[Arena]:
    with arena() as made:
        made.start_hub()
        yield made


@pytest.fixture(scope="module", params=NAMES)
def reader(place: Arena, request: pytest.FixtureRequest) -> Reader:
    return start_reader(place, request.param)


def start_reader(place: Arena, kind: str, name: str = "") -> Reader:
    name = name or kind.replace(" ", "-")
    programs = read_line_programs(Path(place.home.root / f"{name}.got"))
    return Reader(place, place.start_session(programs[kind], name=name))


@given(text=PEOPLE_SAY)
@example(text="two\nlines")
@example(text="ends with a return\r")
@example(text="\x03")
@example(text="\x1b[A")
@example(text="tab\there")
@example(text="a\u202eb")
@example(text="zero\u200bwidth")
@example(text="日本語と emoji 👩‍👩‍👧 ok")
@example(text="x" * 1000)
@example(text="x" * 1001)
@example(text="界" * 1000)
@FEW
def test_text_arrives_as_it_was_said_or_not_at_all(reader: Reader, text: str) -> None:
    why = reader.say(text)
    if any(ord(char) < 32 or ord(char) == 127 for char in text):
        assert "one line without control" in why


def test_a_lone_surrogate_is_refused_with_a_reason(place: Arena) -> None:
    reader = start_reader(place, "python", "surrogate")
    prompt = wait_for(lambda: reader.fighter.question(0), "the question")
    done = _raw_reply(place, prompt["prompt_id"], "broken \ud800 text")
    assert done["reason"] == "bad_value", done
    assert reader.lines() == []


def _raw_reply(place: Arena, prompt_id: str, value: str) -> dict[str, Any]:
    import socket

    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(30)
        link.connect(str(place.home.socket))
        link.sendall(
            json.dumps({"op": "reply", "prompt_id": prompt_id, "value": value, "as_text": True}).encode() + b"\n"
        )
        line = link.makefile("rb").readline()
    assert line, "the hub closed the connection without an answer"
    return dict(json.loads(line))


@pytest.fixture(scope="module", params=["select", "arrows"])
def menu(place: Arena, request: pytest.FixtureRequest) -> Reader:
    command = {"select": select_menu, "arrows": arrow_menu}[request.param]
    name = f"menu-{request.param}"
    return Reader(place, place.start_session(command(Path(place.home.root / f"{name}.got")), name=name))


LABELS = ["Keep it", "Throw it away", "Ask me later"]


def _menu_prompt(menu: Reader) -> dict[str, Any]:
    def offered() -> dict[str, Any] | None:
        prompt = menu.fighter.open_prompt()
        return prompt if prompt and len(prompt["choices"]) == 3 else None

    return wait_for(offered, "the menu")


@given(words=st.text(min_size=4, max_size=40))
@example(words="no, do not run it")
@example(words="yes\r")
@example(words="\x1b[B\r")
@example(words="4")
@example(words="999")
@FEW
def test_a_persons_words_are_never_typed_into_a_menu(menu: Reader, words: str) -> None:
    before = menu.lines()
    prompt = _menu_prompt(menu)
    if any(label.lower().startswith(words.strip().lower()) for label in LABELS):
        return
    answer = menu.place.reply(prompt["prompt_id"], words)
    assert answer is not None and answer["reason"] == "bad_value" and "Choose one of" in answer["message"]
    assert menu.lines() == before


@pytest.mark.parametrize("label", LABELS)
def test_a_choice_chooses_exactly_that(menu: Reader, label: str) -> None:
    count = len(menu.lines())
    prompt = _menu_prompt(menu)
    answer = menu.place.reply(prompt["prompt_id"], label)
    assert answer is not None and answer["ok"], answer
    wait_for(lambda: len(menu.lines()) > count, "the choice")
    got, keys = menu.lines()[count]
    if menu.fighter.name == "menu-arrows":
        assert got == label and keys == "\x1b[B" * LABELS.index(label) + "\r"
    else:
        assert (got, keys) == (str(LABELS.index(label) + 1), label)
    wait_for(lambda: _is_new(menu, prompt["prompt_id"]), "the menu once more, untouched")
    assert len(menu.lines()) == count + 1


def _is_new(menu: Reader, old: str) -> bool:
    prompt = menu.fighter.open_prompt()
    return prompt is not None and prompt["prompt_id"] != old


@pytest.mark.heavy
@pytest.mark.skipif(not shutil.which("node"), reason="node is not installed; `make test-landing` installs it")
def test_node_gets_every_text_as_it_was_said(place: Arena) -> None:
    reader = start_reader(place, "node")
    for text in (
        "plain",
        "two\nlines",
        "日本語と emoji 👩‍👩‍👧 ok",
        "x" * 1000,
        "",
        "  blanks  ",
        "`id` $(id) \\n",
        "\x03",
    ):
        why = reader.say(text)
        assert bool(why) == (not text.isprintable() and "emoji" not in text), text
