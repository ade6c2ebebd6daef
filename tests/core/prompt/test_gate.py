"""The reply gate: each reason alone, and their order."""

from __future__ import annotations

import time

import pytest
from tests.support.ledgers import SECRET, YES_NO, answer_to

from atlasbridge.core.prompt.answer import call_person
from atlasbridge.core.prompt.gate import Cancel, decide_reply, describe_decision, fate, nonce_matches, refuse_claim
from atlasbridge.core.prompt.model import (
    Answer,
    AnswerKind,
    InboundReply,
    PromptRecord,
    PromptState,
    PromptType,
    Refusal,
    Reject,
)
from atlasbridge.core.values import replace

RECORD = PromptRecord(
    prompt_id="aaaaaaaa-0000-4000-8000-000000000001",
    session_id="bbbbbbbb-0000-4000-8000-000000000001",
    prompt=YES_NO,
    state=PromptState.AWAITING_REPLY,
    nonce="0123456789abcdef0123456789abcdef",
    created_at="",
    expires_at="",
    deadline=100.0,
)
GOOD = answer_to(RECORD)


def reason(record: PromptRecord | None, reply: InboundReply, allowed: bool = True, now: float = 50.0) -> Refusal | None:
    private = reply.channel in ("local", "web")
    decision = decide_reply(record, reply, allowed=allowed, now=now, private=private)
    return decision.reason if isinstance(decision, Reject) else None


def test_a_right_reply_becomes_an_answer() -> None:
    decision = decide_reply(RECORD, GOOD, allowed=True, now=50.0)
    assert isinstance(decision, Answer) and decision.kind is AnswerKind.YES


SHOWS_CANCEL = replace(YES_NO, type=PromptType.TYPE_FREE_TEXT, choices=(), screen="Name: ____\n <Ok>  <Cancel>")


@pytest.mark.parametrize(
    ("value", "nonce", "screen", "leaves"),
    [
        ("leave", "", SHOWS_CANCEL.screen, True),
        ("Cancel", "", SHOWS_CANCEL.screen, False),  # perhaps the program's own button
        ("cancel", RECORD.nonce, SHOWS_CANCEL.screen, True),  # our own button
        ("cancel", "", "Name: ____", True),
    ],
)
def test_cancel_leaves_a_prompt_alone_only_if_it_cannot_mean_the_programs_own(
    value: str, nonce: str, screen: str, leaves: bool
) -> None:
    record = replace(RECORD, prompt=replace(SHOWS_CANCEL, screen=screen))
    decision = decide_reply(record, replace(GOOD, value=value, nonce=nonce), allowed=True, now=50.0)
    assert decision == Cancel() if leaves else isinstance(decision, Reject) and '"leave"' in decision.sentence


@pytest.mark.parametrize(
    "changes",
    [
        {"prompt_id": "aaaaaaaa", "session_id": "bbbbbbbb", "nonce": "0123456789abcdef"},
        {"nonce": "", "session_id": ""},
    ],
)
def test_short_forms_and_a_medium_without_them_are_enough(changes: dict[str, str]) -> None:
    assert reason(RECORD, replace(GOOD, **changes)) is None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"prompt_id": "aaaaaaaa-0000-4000-8000-000000000002"}, Refusal.UNKNOWN_PROMPT),
        ({"prompt_id": "aaaaaaa"}, Refusal.UNKNOWN_PROMPT),
        ({"prompt_id": ""}, Refusal.UNKNOWN_PROMPT),
        ({"session_id": "cccccccc"}, Refusal.WRONG_SESSION),
        ({"session_id": "b"}, Refusal.WRONG_SESSION),
        ({"nonce": "ffffffffffffffff"}, Refusal.BAD_NONCE),
        ({"nonce": "0"}, Refusal.BAD_NONCE),
        ({"nonce": RECORD.nonce + "0"}, Refusal.BAD_NONCE),
        ({"nonce": "é" * 16}, Refusal.BAD_NONCE),
        ({"value": "perhaps"}, Refusal.BAD_VALUE),
        ({"value": ""}, Refusal.BAD_VALUE),
        ({"as_keys": True, "value": "q"}, Refusal.NOT_ALLOWED),
    ],
)
def test_each_fault_has_its_reason(changes: dict[str, object], expected: Refusal) -> None:
    assert reason(RECORD, replace(GOOD, **changes)) is expected


def test_the_first_failing_reason_wins_in_the_order_of_the_list() -> None:
    """Everything is wrong at first; each repair uncovers the next reason."""
    ended = replace(RECORD, state=PromptState.WITHDRAWN, nonce_used=True)
    wrong = replace(GOOD, session_id="cccccccc", nonce="f" * 32, value="perhaps")
    assert reason(None, wrong, allowed=False, now=200.0) is Refusal.UNKNOWN_PROMPT
    assert reason(ended, wrong, allowed=False, now=200.0) is Refusal.WRONG_SESSION
    wrong = replace(wrong, session_id=RECORD.session_id)
    assert reason(ended, wrong, allowed=False, now=200.0) is Refusal.NOT_ALLOWED
    assert reason(ended, wrong, now=200.0) is Refusal.BAD_NONCE
    wrong = replace(wrong, nonce=RECORD.nonce)
    assert reason(ended, wrong, now=200.0) is Refusal.BAD_NONCE
    ended = replace(ended, nonce_used=False)
    assert reason(ended, wrong, now=200.0) is Refusal.EXPIRED
    assert reason(ended, wrong, now=99.9) is Refusal.NOT_OPEN
    assert reason(RECORD, wrong, now=99.9) is Refusal.BAD_VALUE


@pytest.mark.parametrize("now", [100.0, 100.1, 1e9])
def test_at_its_deadline_a_prompt_is_over(now: float) -> None:
    assert reason(RECORD, GOOD, now=now) is Refusal.EXPIRED


@pytest.mark.parametrize("channel", ["telegram", "slack", "plugin"])
def test_a_secret_is_never_taken_from_a_chat(channel: str) -> None:
    secret = replace(RECORD, prompt=SECRET)
    assert reason(secret, replace(GOOD, channel=channel, value="hunter2")) is Refusal.NOT_ALLOWED
    assert reason(secret, replace(GOOD, channel="local", value="hunter2")) is None


@pytest.mark.parametrize("state", PromptState)
def test_every_fate_is_one_sentence(state: PromptState) -> None:
    sentence = fate(replace(RECORD, state=state, decided_by="telegram:1"))
    assert sentence.endswith(".") and sentence.count(".") == 1


def test_who_answered_first_is_told_to_the_second() -> None:
    answered = replace(RECORD, state=PromptState.REPLY_RECEIVED, nonce_used=True, decided_by="slack:T/U")
    for reply in (GOOD, replace(GOOD, nonce="")):
        decision = decide_reply(answered, reply, allowed=True, now=50.0)
        assert isinstance(decision, Reject) and "slack:T/U" in decision.sentence


def test_the_second_is_told_the_time_in_this_machines_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        at = "2026-01-02T05:06:07.000000+00:00"
        answered = replace(RECORD, decided_value="y", decided_by="slack:T/U", decided_at=at)
        assert describe_decision(answered) == 'with "y" by slack:T/U at 14:06:07 JST'
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_timer_is_named_in_words() -> None:
    assert call_person("auto:timeout") == "a timer, because nobody answered in time"


def test_the_store_explains_a_lost_claim_with_the_same_reasons() -> None:
    assert refuse_claim(None, session_id="x", nonce="", now=50.0).reason is Refusal.UNKNOWN_PROMPT
    assert refuse_claim(RECORD, session_id="x", nonce="", now=50.0).reason is Refusal.WRONG_SESSION
    assert refuse_claim(RECORD, session_id=RECORD.session_id, nonce="f" * 16, now=50.0).reason is Refusal.BAD_NONCE
    assert refuse_claim(RECORD, session_id=RECORD.session_id, nonce="", now=100.0).reason is Refusal.EXPIRED
    assert refuse_claim(RECORD, session_id=RECORD.session_id, nonce="", now=50.0).reason is Refusal.NOT_OPEN


def test_a_nonce_matches_by_a_beginning_of_at_least_64_bits() -> None:
    assert [nonce_matches(RECORD.nonce, RECORD.nonce[:size]) for size in (0, 15, 16, 31, 32)] == [
        False,
        False,
        True,
        True,
        True,
    ]
