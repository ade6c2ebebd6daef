"""A question over HTTP whose hub died over handing the answer on: anyone who asked comes back and hears that answer."""

from __future__ import annotations

import pytest
from tests.support.hubs import LiveHub, live_hub

from atlasbridge.core.daemon.remote_questions import RemoteQuestions
from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.model import Answer, AnswerKind, PromptState
from atlasbridge.core.prompt.question import Question, RemoteQuestion
from atlasbridge.core.session.model import SessionState

WHO = "web:token/robot"


async def asked(live: LiveHub, secret: bool) -> tuple[RemoteQuestion, str]:
    """It was asked, and the connection is gone with its hub."""
    question = RemoteQuestion(new_id(), WHO, Question("Which?", takes_text=True, secret=secret), "robot", 600.0)
    told = live.hub.hub_api.questions.ask(question)
    raised = await anext(told)
    await told.aclose()
    return question, raised["prompt_id"]


@pytest.mark.parametrize("secret", [False, True], ids=["plain", "secret"])
@pytest.mark.parametrize("then", ["typed", "taken"])
async def test_an_answer_that_was_recorded_and_not_heard_is_heard_by_who_comes_back(then: str, secret: bool) -> None:
    async with live_hub() as live:
        question, prompt_id = await asked(live, secret)
        live.hub.ledger.claim(prompt_id, question.session_id, None, Answer(AnswerKind.TEXT, "blue"), "cli:local")
        live.hub.ledger.inject(prompt_id)
        if then == "taken":
            live.hub.ledger.resolve(prompt_id)
        anew = RemoteQuestions(live.hub.life.hub, live.hub.sessions)  # as a new hub has it
        heard = await anext(anew.ask(question))
        assert heard["outcome"] == ("lost" if secret else "answered")  # of a secret nothing was kept: it is asked again
        assert secret or (heard["words"], heard["by"]) == ("blue", "cli:local")
        session = live.hub.ledger.session(question.session_id)
        assert session is not None and session.state is not SessionState.ACTIVE
        assert live.record(prompt_id).state is PromptState.RESOLVED


async def test_an_answer_that_was_accepted_and_not_handed_on_is_handed_on_once() -> None:
    async with live_hub() as live:
        question, prompt_id = await asked(live, secret=False)
        live.hub.ledger.claim(prompt_id, question.session_id, None, Answer(AnswerKind.TEXT, "blue"), "cli:local")
        anew = RemoteQuestions(live.hub.life.hub, live.hub.sessions)
        heard = [one async for one in anew.ask(question) if "outcome" in one]
        assert [one["words"] for one in heard] == ["blue"]
        assert live.record(prompt_id).state is PromptState.RESOLVED
