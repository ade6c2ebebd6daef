"""What is chosen by a name or by a button is what the person meant: nothing that calls itself alike, nothing cut."""

from __future__ import annotations

import pytest
from tests.support.far_end import SESSION

from atlasbridge.channels.commands import find_session
from atlasbridge.core.prompt.keys import Step
from atlasbridge.core.prompt.model import Choice, Prompt, PromptRecord, PromptState, PromptType
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.web.push import BUTTON_LIMIT, render_ask

STEPS = (Step(b"1"),)


def session(session_id: str, label: str = "") -> SessionRecord:
    return SessionRecord(session_id, "claude", (), "/src", 1, 1, "", label=label)


def test_a_session_named_like_another_ones_id_is_not_taken_for_it() -> None:
    real, false = session("aaaaaaaa" * 4), session("bbbbbbbb" * 4, "aaaaaaaa")
    assert find_session([real, false], "aaaaaaaa") is None
    assert find_session([real, false], real.session_id) is real
    assert find_session([real], "aaaaaaaa") is real
    assert find_session([session("cccc" * 8, "web"), real], "web") is not None


@pytest.mark.parametrize("length", [BUTTON_LIMIT, BUTTON_LIMIT + 1, 3 * BUTTON_LIMIT])
def test_a_push_button_agrees_only_to_what_it_says_whole(length: int) -> None:
    agree, refuse = "Yes, to staging ".ljust(length, "x"), "No, ".ljust(length, "x")
    choices = (Choice("1", agree, STEPS), Choice("2", refuse, STEPS, refuses=True))
    prompt = Prompt(PromptType.TYPE_MULTIPLE_CHOICE, 0.99, "Deploy?", choices=choices)
    record = PromptRecord("p" * 32, SESSION.session_id, prompt, PromptState.ROUTED, "n" * 32, "", "", 1.0)
    titles = {one["action"]: one["title"] for one in render_ask(record, SESSION, 0.0).body["actions"]}
    assert titles["refuse"] == refuse if length <= BUTTON_LIMIT else titles["refuse"].endswith("…")
    assert titles.get("agree") == (agree if length <= BUTTON_LIMIT else None)
