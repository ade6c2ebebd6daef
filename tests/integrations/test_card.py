"""Every surface says where a question without a terminal comes from; what is ours comes before what the asker says."""

from __future__ import annotations

import pytest
from tests.support.hubs import live_hub

from atlasbridge.channels.templates import render_header, render_headline
from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.question import Question, prompt_of
from atlasbridge.core.session.model import SessionRecord

PROMPT = prompt_of(Question("Deploy?"))


def session(tool: str, label: str) -> SessionRecord:
    return SessionRecord(new_id(), tool, (tool,), "/src/shop", 1, 1, "2026-01-01T00:00:00+00:00", label=label)


@pytest.mark.parametrize(
    ("tool", "label", "said"),
    [
        ("ask", "CI job release of ship", "a command · CI job release of ship · hub · /src/shop"),
        ("mcp", "claude-code 2.1.325", "an MCP client · claude-code 2.1.325 · hub · /src/shop"),
        ("acp", "gemini", "an editor's agent · gemini · hub · /src/shop"),
    ],
)
def test_a_chats_card_names_the_open_question_and_who_stands_before_it(tool: str, label: str, said: str) -> None:
    asked = session(tool, label)
    assert render_header(PROMPT, asked, "hub") == f"{said} · {asked.session_id[:8]}"
    assert label in render_headline(PROMPT, asked)


async def test_no_label_is_long_enough_to_hide_the_session_it_comes_from() -> None:
    async with live_hub() as live:
        inside_session = session("claude", "")
        live.hub.ledger.start_session(inside_session)
        label = live.hub.caller_check.mark("x" * 500, inside_session.session_id)
        assert f"in session {inside_session.session_id[:8]} (claude)" in render_headline(PROMPT, session("mcp", label))
        assert live.hub.caller_check.mark("nightly\u202e\x1b[2J", "").startswith("nightly")
        assert "\x1b" not in live.hub.caller_check.mark("nightly\x1b[2J", "")
