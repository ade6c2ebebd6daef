"""The rules of the frozen adapter interface that are plain data: events, replies, bytes, keys against doubles."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest

from atlasbridge.adapters.base import PromptEvent, Reply, validate_event, validate_reply
from atlasbridge.specification import INJECT_BYTES, PromptDetector, make_idempotency_key

NONCE = "0123456789abcdef" * 2


def event_of(text: str) -> PromptEvent:
    event = PromptDetector().detect(text)
    assert event is not None
    return event


def reply_to(event: PromptEvent, value: str) -> Reply:
    return Reply(event.prompt_id, event.session_id, value, NONCE, "cli:local", event.timestamp, "append")


def test_the_key_is_that_of_the_document_and_changes_with_its_window() -> None:
    key = make_idempotency_key("s", "Continue?", wall=1000.0)
    assert key == hashlib.sha256(b"s:Continue?:200").hexdigest()
    assert key == make_idempotency_key("s", "Continue?", wall=1004.9)
    others = [("s", "Continue?", 1005.0), ("t", "Continue?", 1000.0), ("s", "Go on?", 1000.0)]
    assert key not in {make_idempotency_key(session, said, wall=wall) for session, said, wall in others}


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        ({"prompt_id": "p-1"}, "UUID"),
        ({"excerpt": "ä" * 201}, "200 characters"),
        ({"choices": ["x"] * 10}, "at most 9"),
        ({"choices": ["x" * 61]}, "60 characters"),
        ({"timestamp": "yesterday"}, "ISO 8601"),
    ],
)
def test_an_event_that_breaks_a_rule_is_told(changed: dict[str, Any], wrong: str) -> None:
    event = event_of("Continue? (y/n) ")
    assert validate_event(event) == []
    (told,) = validate_event(replace(event, **changed))
    assert wrong in told


@pytest.mark.parametrize(
    ("timestamp", "good"),
    [
        ("2026-02-21T14:30:00.123456+00:00", True),
        ("2026-02-21T14:30:00+00:00", True),
        ("2026-02-21T14:30:00Z", True),
        ("2026-02-21T14:30:00.123456", False),
        ("2026-02-21T14:30:00+02:00", False),
        ("21.02.2026", False),
    ],
)
def test_a_timestamp_is_any_iso_8601_in_utc(timestamp: str, good: bool) -> None:
    assert (validate_event(replace(event_of("Continue? (y/n) "), timestamp=timestamp)) == []) is good


@pytest.mark.parametrize(
    ("text", "good", "bad"),
    [
        ("Continue? (y/n) ", ("y", "n"), ("yes", "", "1")),
        ("1) A\n2) B\nEnter choice [1-2]: ", ("1", "2"), ("0", "3", "A", "")),
        ("Enter name (max 20 chars): ", ("", "x" * 20), ("x" * 21,)),
        ("Enter your name: ", ("x" * 200,), ("x" * 201,)),
    ],
)
def test_a_reply_that_does_not_fit_its_prompt_is_told(text: str, good: tuple[str, ...], bad: tuple[str, ...]) -> None:
    event = event_of(text)
    assert [validate_reply(reply_to(event, value), event) for value in good] == [[]] * len(good)
    assert all(validate_reply(reply_to(event, value), event) for value in bad)


@pytest.mark.parametrize("changed", [{"nonce": "0" * 31}, {"nonce": "g" * 32}, {"newline_policy": "both"}])
def test_a_reply_with_a_nonce_or_policy_of_its_own_is_told(changed: dict[str, str]) -> None:
    event = event_of("Continue? (y/n) ")
    assert validate_reply(replace(reply_to(event, "y"), **changed), event)


def test_the_table_of_bytes_is_that_of_the_document() -> None:
    digits = {str(number): f"{number}\r".encode() for number in range(1, 10)}
    assert {"y": b"y\r", "n": b"n\r", "enter": b"\r", "\n": b"\r", "": b"\r", **digits} == INJECT_BYTES


def test_choices_are_taken_from_the_list_and_numbers_from_the_line() -> None:
    menu = event_of("Select an action:\n  1) Apply changes\n  2) View diff\n  3) Skip\nEnter choice [1-3]: ")
    assert menu.choices == ["Apply changes", "View diff", "Skip"]
    bare = event_of("Select option (1-3): ")  # the numbers are all that can be shown
    assert (bare.prompt_type.value, bare.choices) == ("multiple_choice", ["1", "2", "3"])
    assert (bare.constraints["min_choice"], bare.constraints["max_choice"]) == (1, 3)
