"""The page about the states is what the table says."""

from __future__ import annotations

from tools.gen_states import MOVES, PAGE, STATES, render_page

from atlasbridge.core.prompt.model import PromptMoved, PromptState


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_page(), "run: python tools/gen_states.py"


def test_every_state_and_move_is_explained() -> None:
    assert set(STATES) == set(PromptState)
    assert set(MOVES) == set(PromptMoved)
