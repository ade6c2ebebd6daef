"""The pure parts of the chat channels: callback data, entities, buckets, windows, backoff, command words."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.channels import prompts
from tests.channels.mini_hub import MiniHub
from tests.support import fake_telegram_rules as rules
from tests.support.tier import examples

from atlasbridge.channels import templates
from atlasbridge.channels.callback import encode_callback, expand_callback, parse_callback
from atlasbridge.channels.commands import parse_command, parse_span
from atlasbridge.channels.language import Reader, reading
from atlasbridge.channels.outbox import BURST, Backoff, TokenBucket
from atlasbridge.channels.receipts import render_answer
from atlasbridge.channels.telegram.channel import GROUP_RATE
from atlasbridge.channels.telegram.messages import Body, cut_text, utf16_units
from atlasbridge.core.clock import ManualClock, RateWindow
from atlasbridge.core.prompt.model import Choice, Prompt, PromptType
from atlasbridge.core.values import replace

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
values = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(values, min_size=1, max_size=9, unique=True), st.data())
def test_any_choice_survives_the_way_through_a_button(offered: list[str], data: st.DataObject) -> None:
    hub = MiniHub(ManualClock())
    choices = tuple(Choice(value, "label") for value in offered)
    prompt = Prompt(PromptType.TYPE_MULTIPLE_CHOICE, 0.9, "?", choices=choices)
    record = hub.add_prompt(hub.add_session(), prompt)
    value = data.draw(st.sampled_from(offered))
    encoded = encode_callback(record, value)
    assert 1 <= len(encoded.encode()) <= 64
    callback = parse_callback(encoded)
    assert callback is not None
    assert expand_callback(callback, record) == (record.session_id, record.nonce, value)


@settings(deadline=None, max_examples=examples(60))
@given(st.text(max_size=80))
def test_strange_callback_data_is_nothing_or_stays_harmless(data: str) -> None:
    hub = MiniHub(ManualClock())
    record = hub.add_prompt(hub.add_session(), prompts.MENU)
    callback = parse_callback(data)
    if callback is not None:
        assert expand_callback(callback, record)[1] != record.nonce


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(st.tuples(texts, st.sampled_from(["", "bold", "pre"]))))
def test_entities_cover_exactly_what_they_were_given(parts: list[tuple[str, str]]) -> None:
    body = Body()
    for text, style in parts:
        body.add(text, style)
    assert rules.check_entities(body.entities, body.text) == body.entities
    encoded = body.text.encode("utf-16-le")
    styled = [text for text, style in parts if style and text]
    covered = [encoded[2 * e["offset"] : 2 * (e["offset"] + e["length"])].decode("utf-16-le") for e in body.entities]
    assert covered == styled


@settings(deadline=None, max_examples=examples(60))
@given(texts, st.integers(min_value=2, max_value=50))
def test_cutting_never_splits_a_character(text: str, limit: int) -> None:
    cut = cut_text(text, limit)
    assert utf16_units(cut) <= limit and (cut == text or cut.endswith("…"))


def test_a_bucket_lets_a_burst_through_and_then_the_rate() -> None:
    bucket = TokenBucket(rate=1.0, burst=3.0)
    assert [bucket.reserve(100.0) for _ in range(5)] == [0.0, 0.0, 0.0, 1.0, 2.0]
    assert bucket.reserve(110.0) == 0.0


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(st.floats(min_value=0, max_value=3), min_size=1, max_size=60))
def test_a_bucket_never_exceeds_its_rate(gaps: list[float]) -> None:
    bucket, now, used = TokenBucket(rate=1.0, burst=3.0), 50.0, []
    for gap in gaps:
        now += gap
        used.append(now + bucket.reserve(now))
    for index, start in enumerate(used):
        within = [moment for moment in used[index:] if moment < start + 10.0]
        assert len(within) <= 10 + 3 + 1


def test_a_group_never_gets_more_than_twenty_messages_a_minute() -> None:
    bucket, now, sent_at = TokenBucket(GROUP_RATE, BURST), 1000.0, []
    for _ in range(200):
        now += bucket.reserve(now)
        sent_at.append(now)
    assert all(late - early >= 60 for early, late in zip(sent_at, sent_at[20:], strict=False))


def test_the_inbound_window_counts_each_session_and_slides() -> None:
    window = RateWindow(limit=2, window_s=60.0)
    assert [window.admit("a", now) for now in (0.0, 10.0, 20.0)] == [0.0, 0.0, 40.0]
    assert window.admit("b", 20.0) == 0.0
    assert window.admit("a", 60.5) == 0.0


def test_backoff_goes_from_one_second_to_sixty_and_starts_anew() -> None:
    backoff = Backoff()
    assert [backoff.next_wait() for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    backoff.reset()
    assert backoff.next_wait() == 1


@pytest.mark.parametrize(
    ("text", "name", "rest"),
    [
        ("/sessions", "sessions", ""),
        ("/switch ab12", "switch", "ab12"),
        ("/help@Bridge_Bot", "help", ""),
        ("  /mute   30m ", "mute", "30m"),
    ],
)
def test_commands_are_read(text: str, name: str, rest: str) -> None:
    command = parse_command(text, "bridge_bot")
    assert command is not None and (command.name, command.rest) == (name, rest)


@pytest.mark.parametrize("text", ["sessions", "/help@other_bot", "/", "/x-y", "a /help"])
def test_other_words_are_no_commands(text: str) -> None:
    assert parse_command(text, "bridge_bot") is None


def test_spans_of_time_are_read() -> None:
    shown = {text: parse_span(text) for text in ("", "off", "30", "30m", "2h", "soon")}
    assert shown == {"": 3600.0, "off": 0.0, "30": 1800.0, "30m": 1800.0, "2h": 7200.0, "soon": None}


@pytest.mark.parametrize(("seconds", "shown"), [(598.9, "9m 58s"), (45, "45s"), (7500, "2h 5m"), (-3, "now")])
def test_time_left_is_told_as_people_say_it(seconds: float, shown: str) -> None:
    assert templates.render_left(seconds) == shown


def test_the_buttons_are_those_of_the_document_with_the_default_where_there_is_one() -> None:
    letters = (Choice("y", "Yes"), Choice("n", "No", refuses=True))
    for prompt in (prompts.YES_NO, replace(prompts.YES_NO, choices=letters)):
        shown = [button.label for button in templates.render_buttons(prompt)]
        assert shown == ["✅ Yes", "❌ No", "⏩ Use default (n)", "🔎 Show all"]
    assert next(button.label for button in templates.render_buttons(prompts.TEXT)) == "⏩ Use default (empty)"
    assert [button.label for button in templates.render_buttons(prompts.ENTER)] == [
        "↩️ Press Enter",
        "⏩ Use default (↩)",
    ]
    unsafe = replace(prompts.ENTER, safe_default="")
    assert [button.label for button in templates.render_buttons(unsafe)] == ["↩️ Press Enter"]


def test_a_secret_has_no_button_that_answers() -> None:
    assert templates.render_buttons(prompts.SECRET) == []


def test_buttons_that_we_named_are_in_the_readers_language_and_a_tools_own_words_are_not() -> None:
    letters = replace(prompts.YES_NO, choices=(Choice("y", "Yes"), Choice("n", "No", refuses=True), Choice("a", "all")))
    spelled = replace(letters, choices=(Choice("y", "yes"), Choice("n", "Nope", refuses=True)))
    listed = replace(letters, choices=(Choice("1", "Yes"), Choice("2", "No", refuses=True)))
    with reading(Reader("de")):
        labels = [button.label for button in templates.render_buttons(replace(letters, safe_default="n"))]
        assert labels[:4] == ["✅ Ja", "✅ all", "❌ Nein", "⏩ Standard verwenden (Nein)"]
        assert [button.value for button in templates.render_buttons(letters)][:3] == ["y", "a", "n"]
        assert [button.label for button in templates.render_buttons(spelled)][:2] == ["✅ yes", "❌ Nope"]
        assert [button.label for button in templates.render_buttons(listed)][:2] == ["✅ 1. Yes", "❌ 2. No"]
        assert [render_answer(letters, word) for word in ("y", "No", "a", "yes")] == ["Ja", "Nein", "all", "Ja"]
    with reading(Reader("ja")):
        cancel = replace(letters, choices=(Choice("1", "PostgreSQL"), Choice("cancel", "Cancel", refuses=True)))
        assert templates.render_buttons(cancel)[1].label == "❌ キャンセル"
    assert [render_answer(letters, word) for word in ("y", "n")] == ["Yes", "No"]
