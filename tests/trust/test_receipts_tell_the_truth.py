"""Receipts say which answer was given, by whom, from where and when; sending a request again changes nothing."""

from __future__ import annotations

import ast
import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.fake_host import SECRET, YES_NO, FakeHost
from tests.support.hubs import LiveHub, channel_named, hub_process, live_hub
from tests.support.ledgers import YES, answer_to, ask, open_ledger
from tests.support.waiting import wait_for

from atlasbridge.core.daemon import replies
from atlasbridge.core.prompt import gate
from atlasbridge.core.prompt.answer import label_answer
from atlasbridge.core.prompt.model import (
    Answer,
    AnswerKind,
    Choice,
    InboundReply,
    Prompt,
    PromptState,
    PromptType,
    Receipt,
    Refusal,
    Reject,
)
from atlasbridge.core.store.database import Database, load_migrations, migrate
from atlasbridge.core.store.prompts import Decider
from atlasbridge.core.values import replace

MENU = Prompt(
    PromptType.TYPE_MULTIPLE_CHOICE,
    0.9,
    "Run it?",
    choices=(Choice("1", "Yes"), Choice("2", "No, and tell it why", refuses=True), Choice("a", "Always")),
)


async def raised(live: LiveHub, prompt: Prompt = YES_NO) -> tuple[FakeHost, str]:
    host = await asyncio.to_thread(FakeHost, live.home, label="deploy")
    prompt_id = host.raise_prompt(prompt)
    await live.person.until(lambda: any(record.prompt_id == prompt_id for record in live.person.shown))
    return host, prompt_id


def inbound(live: LiveHub, prompt_id: str, value: str, **fields: str) -> InboundReply:
    record = live.hub.ledger.prompt(prompt_id)
    assert record is not None
    given = {"channel": "memory", "identity": "memory:ada", "nonce": record.nonce, "place": "Ada's phone", **fields}
    return InboundReply(prompt_id=prompt_id, value=value, **given)  # type: ignore[arg-type]


async def answer(live: LiveHub, host: FakeHost, reply: InboundReply) -> Receipt | Reject:
    typing = asyncio.create_task(asyncio.to_thread(host.answer_typing))
    outcome = await live.hub.replies.reply(reply)
    await typing
    return outcome


async def test_every_receipt_names_the_answer_its_sender_the_device_and_the_audit_head() -> None:
    async with live_hub() as live:
        host, prompt_id = await raised(live)
        with host:
            outcome = await answer(live, host, inbound(live, prompt_id, "y"))
            assert isinstance(outcome, Receipt)
            assert outcome.sentence == 'Sent "y" to deploy, answered by memory:ada (Ada\'s phone).'
            await live.person.until(lambda: any(receipt.stage == "taken" for _, receipt in live.person.edits))
            receipts = [receipt for _, receipt in live.person.edits]
            assert [receipt.stage for receipt in receipts] == ["received", "typed", "taken"]
            for receipt in receipts:
                assert (receipt.answer, receipt.by, receipt.place) == ("y", "memory:ada", "Ada's phone")
                assert '"y"' in receipt.sentence and receipt.at
            heads = [int(receipt.audit_head.partition(":")[0]) for receipt in receipts]
            assert heads == sorted(set(heads))
            count, head = live.hub.ledger.audit_head()
            assert receipts[-1].audit_head == f"{count}:{head.rpartition(':')[2][:12]}"


async def test_the_event_stream_tells_the_answer() -> None:
    async with live_hub() as live:
        host, prompt_id = await raised(live)
        with host:
            await answer(live, host, inbound(live, prompt_id, "n"))
            for name in ("reply.received", "prompt.injected", "prompt.resolved"):
                event = await live.event(name)
                assert (event["answer"], event["by"], event["from"]) == ("n", "memory:ada", "Ada's phone")


async def test_the_loser_of_a_race_is_told_who_won_with_what() -> None:
    async with live_hub(channels=(channel_named("memory"), channel_named("other"))) as live:
        host, prompt_id = await raised(live)
        with host:
            late = inbound(live, prompt_id, "n", identity="memory:ben", place="Ben's page")
            await answer(live, host, inbound(live, prompt_id, "y"))
            lost = await live.hub.replies.reply(late)
            assert isinstance(lost, Reject)
            assert lost.sentence.startswith('It was already answered with "y" by memory:ada (Ada\'s phone) at ')
            other = live.people["other"]
            await other.until(lambda: any(receipt.stage == "answered_elsewhere" for _, receipt in other.edits))
            elsewhere = next(receipt for _, receipt in other.edits if receipt.stage == "answered_elsewhere")
            assert (elsewhere.answer, elsewhere.by) == ("y", "memory:ada")


async def test_a_secret_is_told_as_a_secret() -> None:
    async with live_hub() as live:
        host, prompt_id = await raised(live, SECRET)
        with host:
            outcome = await answer(live, host, inbound(live, prompt_id, "hunter2"))
            assert isinstance(outcome, Receipt) and outcome.sentence.startswith("Sent a secret to deploy")
            await live.person.until(lambda: any(receipt.stage == "taken" for _, receipt in live.person.edits))
            told = repr(live.person.edits) + repr(live.hub.stream.recent()) + repr(live.hub.ledger.history())
            assert "hunter2" not in told


async def test_after_an_expiry_nobody_is_said_to_have_answered() -> None:
    async with live_hub() as live:
        host, prompt_id = await raised(live)
        with host:
            typing = asyncio.create_task(asyncio.to_thread(host.answer_typing))
            live.advance(10_000)
            await typing
            await live.person.until(lambda: any(receipt.stage == "taken" for _, receipt in live.person.edits))
            sentences = [receipt.sentence for _, receipt in live.person.edits if receipt.stage != "reminder"]
            assert sentences == [
                'Nobody answered in time; a timer types the safe default "n".',
                'Nobody answered in time: a timer sent the safe default "n" to deploy.',
                'Nobody answered in time; the tool took the timer\'s safe default "n".',
            ]
            late = await live.hub.replies.reply(inbound(live, prompt_id, "y", nonce=""))
            assert isinstance(late, Reject) and late.sentence.startswith("Nobody answered in time")


async def test_the_same_request_sent_again_has_the_same_outcome_and_types_once() -> None:
    async with live_hub() as live:
        host, prompt_id = await raised(live)
        with host:
            request = inbound(live, prompt_id, "y", request_key="tap-1")
            typing = asyncio.create_task(asyncio.to_thread(host.answer_typing))
            first, second = await asyncio.gather(*(live.hub.replies.reply(request) for _ in range(2)))
            await typing
            third = await live.hub.replies.reply(request)
            assert isinstance(first, Receipt) and isinstance(second, Receipt) and isinstance(third, Receipt)
            assert first.sentence == second.sentence == third.sentence and first.stage == third.stage == "typed"
            assert len(live.hub.ledger.audit_entries(event="REPLY_RECEIVED")) == 1
            assert live.hub.ledger.audit_entries(event="REPLY_REFUSED") == []


async def test_a_refused_request_sent_again_is_refused_again_though_it_would_fit_now() -> None:
    async with live_hub() as live:
        host, prompt_id = await raised(live)
        with host:
            refused = await live.hub.replies.reply(inbound(live, prompt_id, "perhaps", request_key="tap-2"))
            again = await live.hub.replies.reply(inbound(live, prompt_id, "y", request_key="tap-2"))
            assert isinstance(refused, Reject) and refused.reason is Refusal.BAD_VALUE and again == refused
            other = inbound(live, prompt_id, "y", request_key="tap-2", identity="memory:ben")
            assert isinstance(await answer(live, host, other), Receipt), "one person's key is not another's"


def test_a_request_and_its_answer_survive_the_hub(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    record = ask(ledger)
    won = ledger.claim(record.prompt_id, record.session_id, None, YES, Decider("web:ada", "phone", request="w/a/1"))
    assert not isinstance(won, Reject) and won.state is PromptState.REPLY_RECEIVED
    ledger.journal.abandon()
    after = open_ledger(tmp_path)
    known = after.request("w/a/1")
    assert known is not None and known.prompt_id == record.prompt_id and known.refusal is None
    kept = after.prompt(record.prompt_id)
    assert kept is not None and (kept.decided_value, kept.decided_from, kept.decided_by) == ("y", "phone", "web:ada")
    assert kept.to_json()["decided_value"] == "y"
    (entry,) = after.audit_entries(event="REPLY_RECEIVED")
    assert (entry["label"], entry["decided_from"]) == ("y", "phone")
    after.close()


def test_a_store_from_before_keeps_its_prompts_and_learns_to_keep_answers(tmp_path: Path) -> None:
    database = Database.open(tmp_path / "atlasbridge.db")
    migrate(database, "2026-01-01T00:00:00.000000+00:00", load_migrations()[:1])
    database.close()
    with closing(sqlite3.connect(tmp_path / "atlasbridge.db")) as old, old:
        columns = {row[1] for row in old.execute("PRAGMA table_info(prompts)")}
        assert "decided_value" not in columns
    old.close()
    ledger = open_ledger(tmp_path)
    record = ask(ledger)
    assert record.decided_value == ""
    ledger.close()


@pytest.mark.parametrize(
    ("prompt", "given", "label"),
    [
        (MENU, Answer(AnswerKind.CHOICE, "2"), "2. No, and tell it why"),
        (MENU, Answer(AnswerKind.CHOICE, "a"), "Always"),
        (MENU, Answer(AnswerKind.CHOICES, "1,2"), "1. Yes, 2. No, and tell it why"),
        (MENU, Answer(AnswerKind.CHOICES, ""), "none"),
        (YES_NO, Answer(AnswerKind.YES), "y"),
        (YES_NO, Answer(AnswerKind.ENTER), "Enter"),
        (YES_NO, Answer(AnswerKind.TEXT, "a\u202eb"), "a<U+202E>b"),
        (SECRET, Answer(AnswerKind.TEXT, "hunter2"), "(a secret)"),
    ],
)
def test_an_answer_is_told_in_the_words_of_its_choice(prompt: Prompt, given: Answer, label: str) -> None:
    assert label_answer(prompt, given) == label


def test_a_long_answer_is_cut_and_says_so() -> None:
    label = label_answer(YES_NO, Answer(AnswerKind.TEXT, "x" * 1000))
    assert len(label) == 200 and label.endswith("…")


def test_the_hub_decides_with_the_very_function_that_is_attacked() -> None:
    """No second way to say yes: the reply hub knows the gate's one decision and none of its parts."""
    source = Path(replies.__file__).read_text()
    names = {
        alias.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("atlasbridge.core.prompt")
        for alias in node.names
    }
    assert "decide_reply" in names and not names & {"decide_answer", "refuse_moment", "refuse_claim", "nonce_matches"}
    assert replies.decide_reply is gate.decide_reply  # type: ignore[attr-defined]


def test_inside_session_stands_in_its_place_among_the_reasons(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    record = ask(ledger)
    reply = replace(answer_to(record), inside_session="b" * 8)

    def reason(changed: InboundReply, allowed: bool = False) -> str:
        decided = gate.decide_reply(record, changed, allowed=allowed, now=0.0)
        assert isinstance(decided, Reject)
        return decided.reason.value

    assert reason(replace(reply, prompt_id="f" * 8)) == "unknown_prompt"
    assert reason(replace(reply, session_id="f" * 8)) == "wrong_session"
    assert reason(reply) == "self" and reason(replace(reply, nonce="0" * 32), allowed=True) == "self"
    assert [item.value for item in Refusal][:4] == ["unknown_prompt", "wrong_session", "self", "not_allowed"]
    ledger.close()


def test_the_command_prints_which_answer_was_typed_where() -> None:
    with hub_process() as hub, FakeHost(hub.home, label="nightly") as host:
        prompt_id = host.raise_prompt()
        wait_for(hub.is_asked)
        (prompt,) = hub.ask("prompts")["prompts"]
        assert (prompt["tool"], prompt["label"], prompt["cwd"]) == ("bash", "nightly", "/somewhere")
        replying = hub.popen("reply", prompt_id, "y")
        host.answer_typing()
        out, _ = replying.communicate()
        assert out == 'Sent "y" to nightly.\n'
        late = json.loads(hub.cli("reply", prompt_id, "n", "--json").stdout)
        assert late["message"].startswith('It was already answered with "y" by a person at this machine at ')
