"""A window that changes its size under an open question: the question stays whole, no timer agrees to half of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.operator import Operator
from tests.support.sessions import end_sessions
from tests.support.terminal import ATLASBRIDGE, Terminal, run_in
from tests.support.tier import first_of

QUESTION = "The following 120 packages will be removed from your system now. Continue? [Y/n] "
ASK = f'read -p "{QUESTION}" a; echo "got=<$a>"; sleep 0.3'


@pytest.fixture
def operator(home: Path) -> Iterator[Operator]:
    person = Operator(home)
    person.start_hub()
    yield person
    end_sessions(home)
    person.command("hub", "stop")


def whole(terminal: Terminal) -> str:
    return "".join(terminal.screen.lines())


@pytest.mark.parametrize("size", first_of([[20, 40], [20, 83], [10, 78], [5, 17]]))
def test_a_question_in_a_narrower_window_is_the_same_question(
    home: Path, operator: Operator, size: tuple[int, int]
) -> None:
    with run_in(home, "bash", "-c", ASK, options=("--ttl", "8"), rows=30, cols=100) as terminal:
        before = operator.open_prompt()
        assert before["type"] == "yes_no"
        terminal.resize(*size)
        shown = operator.approvals()
        assert [(item["prompt_id"], item["type"]) for item in shown] == [(before["prompt_id"], "yes_no")]
        terminal.wait_for("got=<")
        assert "got=<n>" in terminal.text(), "the timer refuses; an Enter would have agreed"


def test_a_session_attached_in_a_smaller_window_shows_the_whole_question(home: Path, operator: Operator) -> None:
    with run_in(home, "bash", "-c", ASK, options=(), rows=30, cols=100) as first:
        prompt = operator.open_prompt()
        first.type(b"\x1dd")
        first.wait_exit()
    with Terminal((*ATLASBRIDGE, "attach"), home, 20, 40) as second:
        second.wait_until(lambda: "Continue? [Y/n]" in whole(second), "the question")
        rows = [row for row, line in enumerate(second.screen.lines()) if line]
        assert second.screen.wrapped(rows[0]), "the terminal knows that it is one line, and will wrap it again itself"
        assert [item["prompt_id"] for item in operator.approvals()] == [prompt["prompt_id"]]
        second.resize(20, 100)
        second.wait_until(lambda: QUESTION.strip() in second.screen.lines(), "the line in one piece")
        assert operator.reply(prompt["prompt_id"], "n")[0] == 0
        second.wait_for("got=<n>")
        second.wait_exit()
