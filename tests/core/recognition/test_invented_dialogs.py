"""Dialogs of nobody's tool: what a person is asked, and which keys an answer is."""

from __future__ import annotations

import pytest
from tests.core.recognition import unseen_dialogs
from tests.core.recognition.invented_dialogs import ALL, Invented
from tests.support.playbook import Playbook

from atlasbridge.core.detection.events import RaisePrompt
from atlasbridge.core.prompt.answer import decide_answer, encode_answer
from atlasbridge.core.prompt.model import Answer, Prompt

QUIET_S, REST_S = 9.0, 14.0  # a full screen that says nothing is asked about after 12 s


def asked_by(one: Invented) -> Prompt | None:
    play = (
        Playbook(one.probe, cols=one.size[0], rows=one.size[1])
        >> one.screen
        >> (QUIET_S if one.kind == "none" else REST_S)
    )
    raised = [command.prompt for _, command in play.heard if isinstance(command, RaisePrompt)]
    return raised[-1] if raised else None


def typed(prompt: Prompt, word: str) -> bytes | None:
    answer = decide_answer(prompt, word)
    return b"".join(step.keys for step in encode_answer(prompt, answer)) if isinstance(answer, Answer) else None


def judge(one: Invented) -> str:
    """ "right", "unknown", "missed", or what is wrong."""
    prompt = asked_by(one)
    if prompt is None:
        return "right" if one.kind == "none" else "missed"
    kind = "idle" if prompt.constraints.get("idle") and not prompt.constraints.get("commands") else prompt.type.value
    if one.kind == "none":
        return f"false alarm: {kind} {prompt.excerpt!r}"
    if kind == "unknown":
        return "right" if one.kind == "unknown" else "unknown"
    labels = [choice.label for choice in prompt.choices]
    absent = [label for label in one.choices if label not in labels]
    if one.choices and absent:
        return f"{absent} not among {labels}"
    if kind != one.kind and {kind, one.kind} != {"yes_no", "multiple_choice"}:
        return f"{kind} instead of {one.kind}"
    wrong = [f"{word}: {typed(prompt, word)!r}" for word, keys in one.answers.items() if typed(prompt, word) != keys]
    return f"typed {', '.join(wrong)}" if wrong else "right"


@pytest.mark.parametrize("one", (*ALL, *unseen_dialogs.ALL), ids=lambda one: one.name)
def test_an_invented_dialog_is_asked_for_what_it_is(one: Invented) -> None:
    assert judge(one) in (("right", "unknown") if one.unsure else ("right",))
