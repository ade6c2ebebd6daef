"""A prompt travels to the hub and into the store as JSON, and comes back the same."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlasbridge.core.prompt.model import Choice, Evidence, Prompt, PromptType, Step

TEXT = st.text(max_size=12)
STEPS = st.lists(st.builds(Step, st.binary(max_size=6), TEXT), max_size=2).map(tuple)
CHOICES = st.builds(Choice, TEXT, TEXT, STEPS, st.booleans(), st.booleans(), st.booleans())
SCORES = st.sampled_from([0.0, 0.45, 0.6, 0.85, 0.99])
PROMPTS = st.builds(
    Prompt,
    type=st.sampled_from(PromptType),
    score=SCORES,
    excerpt=TEXT,
    screen=TEXT,
    choices=st.lists(CHOICES, max_size=3).map(tuple),
    constraints=st.dictionaries(st.sampled_from(["secret", "idle", "max_length"]), st.booleans() | st.integers(0, 99)),
    evidence=st.lists(st.builds(Evidence, TEXT, SCORES, TEXT), max_size=2).map(tuple),
    safe_default=TEXT,
    digest=TEXT,
    line_mode=st.booleans(),
    text_steps=STEPS,
    multiline=st.booleans(),
    raw=st.binary(max_size=20),
)


@given(PROMPTS)
def test_what_goes_over_the_wire_comes_back_the_same(prompt: Prompt) -> None:
    assert Prompt.from_json(json.loads(json.dumps(prompt.to_wire()))) == prompt


@given(PROMPTS)
def test_the_public_face_shows_no_keys_and_no_raw_bytes(prompt: Prompt) -> None:
    public = prompt.to_json()
    assert not {"raw", "digest", "text_steps"} & public.keys()
    assert all("steps" not in choice for choice in public["choices"])


@pytest.mark.parametrize(
    "broken", [{}, {"type": "?", "score": 1, "excerpt": ""}, {"type": "yes_no", "score": "x", "excerpt": ""}]
)
def test_what_is_no_prompt_is_refused(broken: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        Prompt.from_json(broken)
