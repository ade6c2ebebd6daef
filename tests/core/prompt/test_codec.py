"""A prompt travels to the hub and into the store as JSON, and comes back the same, whatever fields it has."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.tier import examples

from atlasbridge.core.prompt.codec import decode_prompt, encode_prompt, for_storage
from atlasbridge.core.prompt.keys import Only, Reach, Shows, Stands, Step, Until, When, decode_until, encode_until
from atlasbridge.core.prompt.model import (
    Choice,
    Evidence,
    FormField,
    Prompt,
    PromptType,
    Subject,
    SubjectKind,
    SubjectSource,
    digest_text,
)

TEXT = st.text(max_size=12)
UNTIL = st.sampled_from(When) | st.one_of(*(st.builds(kind, TEXT) for kind in (Stands, Shows, Reach, Only)))
STEPS = st.lists(st.builds(Step, st.binary(max_size=6), UNTIL), max_size=2).map(tuple)
CHOICES = st.lists(st.builds(Choice, TEXT, TEXT, STEPS, st.booleans(), st.booleans(), st.booleans()), max_size=3)
SCORES = st.sampled_from([0.0, 0.45, 0.6, 0.85, 0.99])
EVIDENCE = st.lists(st.builds(Evidence, TEXT, SCORES, TEXT), max_size=2)
SUBJECTS = st.builds(
    Subject, st.sampled_from(SubjectKind), TEXT, TEXT, st.sampled_from(SubjectSource), st.booleans(), TEXT, TEXT, TEXT
)

# one source of values for each type that a field may have: a field of a new type fails here until it has one
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "PromptType": st.sampled_from(PromptType),
    "float": SCORES,
    "int": st.integers(0, 99),
    "str": TEXT,
    "bool": st.booleans(),
    "bytes": st.binary(max_size=20),
    "tuple[Choice, ...]": CHOICES.map(tuple),
    "tuple[Evidence, ...]": EVIDENCE.map(tuple),
    "tuple[Step, ...]": STEPS,
    "tuple[FormField, ...]": st.lists(st.builds(FormField, TEXT, STEPS, STEPS, STEPS, TEXT), max_size=2).map(tuple),
    "Mapping[str, Any]": st.dictionaries(
        st.sampled_from(["secret", "idle", "max_length"]), st.booleans() | st.integers(0, 99)
    ),
    "Subject | None": st.none() | SUBJECTS,
}
PROMPTS = st.builds(Prompt, **{name: VALUES[kind] for name, kind in Prompt.__annotations__.items()})


@settings(max_examples=examples(100))
@given(PROMPTS)
def test_what_goes_over_the_wire_comes_back_the_same(prompt: Prompt) -> None:
    assert decode_prompt(json.loads(json.dumps(encode_prompt(prompt)))) == prompt


@settings(max_examples=examples(100))
@given(PROMPTS)
def test_the_store_keeps_neither_the_raw_bytes_nor_the_text_of_the_subject(prompt: Prompt) -> None:
    stored = for_storage(prompt)
    assert stored.raw == b""
    if prompt.subject is not None:
        assert stored.subject is not None and stored.subject.text == ""
        assert stored.subject.digest == (prompt.subject.digest or digest_text(prompt.subject.text))


@settings(max_examples=examples(100))
@given(PROMPTS)
def test_the_public_face_shows_no_keys_and_no_raw_bytes(prompt: Prompt) -> None:
    public = prompt.to_json()
    assert not {"raw", "digest", "text_steps", "end_steps", "words_end"} & public.keys()
    assert all("steps" not in choice for choice in public["choices"])
    if prompt.subject is not None:
        assert public["subject"]["text"] == prompt.subject.shown


def test_what_0_1_0_stored_is_still_read() -> None:
    stored = {
        "type": "yes_no",
        "score": 0.9,
        "excerpt": "Go on?",
        "choices": [{"value": "y", "label": "Yes", "steps": [{"keys": "y", "until": "drained"}]}],
        "evidence": [{"signal": "pattern", "score": 0.9, "detail": "a rule"}],
        "text_steps": [],
    }
    prompt = decode_prompt(stored)
    assert prompt.choices[0].steps == (Step(b"y", When.DRAINED),)
    assert prompt.evidence == (Evidence("pattern", 0.9, "a rule"),)
    assert prompt.subject is None and prompt.end_steps == ()


@pytest.mark.parametrize(
    "broken", [{}, {"type": "?", "score": 1, "excerpt": ""}, {"type": "yes_no", "score": "x", "excerpt": ""}]
)
def test_what_is_no_prompt_is_refused(broken: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        decode_prompt(broken)


@given(UNTIL)
def test_a_condition_is_written_as_one_word_and_read_back(until: Until) -> None:
    assert decode_until(encode_until(until)) == until


@pytest.mark.parametrize(
    ("written", "until"),
    [("", When.AT_ONCE), ("left?", When.MAY_LEAVE), ("shows:a: b", Shows("a: b")), ("stands:", Stands(""))],
)
def test_conditions_are_written_as_0_1_0_wrote_them(written: str, until: Until) -> None:
    assert (encode_until(until), decode_until(written)) == (written, until)


@pytest.mark.parametrize("written", ["soon", "shows", "draws:x", "drained:", "left"])
def test_a_condition_that_nobody_could_wait_for_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="not a valid"):
        decode_until(written)
