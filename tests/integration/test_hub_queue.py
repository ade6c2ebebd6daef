"""Instructions queued while a tool works: typed once, in order, at idle boxes only; through a hub with a host."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.support.fake_host import YES_NO, FakeHost
from tests.support.hubs import LiveHub, channel_named, live_hub
from tests.support.waiting import in_thread, until

from atlasbridge.core.prompt.model import InboundReply, Prompt, PromptState, PromptType, Receipt, Refusal, Reject
from atlasbridge.core.routing.policy import PolicySettings
from atlasbridge.core.values import replace

HERE, CHAT = channel_named("memory"), channel_named("chat", remote=True)
POLICY = PolicySettings(allowed={"memory": None, "chat": frozenset({"chat:1"})})
IDLE = Prompt(PromptType.TYPE_FREE_TEXT, 0.9, "What next?", constraints={"idle": True}, digest="idle", line_mode=False)


def said(session_id: str, text: str, **fields: Any) -> InboundReply:
    identity = fields.pop("identity", "chat:1")
    return InboundReply("chat", identity, "", text, session_id=session_id, place="Ana's phone", **fields)


def events(live: LiveHub) -> list[str]:
    return [entry["event"] for entry in live.hub.ledger.audit_entries()]


def is_asked(live: LiveHub, prompt_id: str) -> bool:
    """A person was told: then nothing else was going to answer it."""
    record = live.hub.ledger.prompt(prompt_id)
    return record is not None and record.state is PromptState.AWAITING_REPLY


def is_gone(live: LiveHub, text: str) -> bool:
    return text not in [one["text"] for one in live.hub.queue.list_all()]


async def working(live: LiveHub) -> FakeHost:
    host: FakeHost = await in_thread(FakeHost, live.home)
    await until(lambda: live.hub.ledger.session(host.record.session_id) is not None)
    return host


async def test_queued_instructions_are_typed_in_order_one_at_each_idle_box() -> None:
    async with live_hub(POLICY, (HERE, CHAT)) as live:
        host = await working(live)
        for text in ("first thing", "x" * 4096):
            assert isinstance(live.hub.queue.add(said(host.record.session_id, text)), Receipt)
        assert [one["text"] for one in live.hub.queue.list_all()] == ["first thing", "x" * 4096]
        assert events(live).count("REPLY_RECEIVED") == 0
        for text in ("first thing", "x" * 4096):
            host.raise_prompt(IDLE)
            order = await in_thread(host.answer_typing)
            assert order["answer"] == {"kind": "text", "value": text}
            await until(partial(is_gone, live, text))
        prompt_id = host.raise_prompt(IDLE)  # nothing is left for this one
        await until(lambda: is_asked(live, prompt_id))
        assert events(live).count("REPLY_RECEIVED") == 2 and events(live).count("INSTRUCTION_QUEUED") == 2
        host.close()


async def test_words_for_an_agent_are_never_typed_into_a_shell_nor_a_command_into_an_agents_box() -> None:
    """An agent that a shell started may end while something is queued for it: the shell would run the words."""
    shell = replace(IDLE, excerpt="$", constraints={"idle": True, "commands": True}, digest="shell")
    async with live_hub(POLICY, (HERE, CHAT)) as live:
        host = await working(live)
        for first, other in ((IDLE, shell), (shell, IDLE)):
            known = host.raise_prompt(first)
            await until(partial(is_asked, live, known))
            host.withdraw(known)
            await until(lambda: live.hub.ledger.open_prompts() == [])
            live.hub.queue.add(said(host.record.session_id, "clean up"))
            changed = host.raise_prompt(other)
            await until(partial(is_asked, live, changed))
            assert len(live.hub.queue.list_all()) == 1 and "REPLY_RECEIVED" not in events(live)[-3:]
            host.withdraw(changed)
            host.raise_prompt(first)
            assert (await in_thread(host.answer_typing))["answer"]["value"] == "clean up"
            await until(partial(is_gone, live, "clean up"))
        host.close()


async def test_a_question_never_takes_a_queued_instruction_and_an_open_idle_box_takes_it_at_once() -> None:
    async with live_hub(POLICY, (HERE, CHAT)) as live:
        host = await working(live)
        live.hub.queue.add(said(host.record.session_id, "y"))
        asked = host.raise_prompt(YES_NO)
        await until(lambda: is_asked(live, asked))
        assert len(live.hub.queue.list_all()) == 1 and "REPLY_RECEIVED" not in events(live)
        live.hub.queue.remove(said("", ""), live.hub.queue.list_all()[0]["queue_id"][:8])
        idle = host.raise_prompt(IDLE)
        await until(lambda: live.hub.ledger.prompt(idle) is not None)
        live.hub.queue.add(said(host.record.session_id, "go on"))
        assert (await in_thread(host.answer_typing))["answer"]["value"] == "go on"
        await until(lambda: live.hub.queue.list_all() == [])
        host.close()


async def test_strangers_and_the_tool_itself_queue_nothing_and_take_nothing_back() -> None:
    async with live_hub(POLICY, (HERE, CHAT)) as live:
        host = await working(live)
        session_id = host.record.session_id
        for reply in (said(session_id, "hi", identity="chat:666"), said(session_id, "hi", inside_session=session_id)):
            assert isinstance(live.hub.queue.add(reply), Reject)
        receipt = live.hub.queue.add(said(session_id, "mine"))
        assert isinstance(receipt, Receipt)
        refused = live.hub.queue.remove(said("", "", identity="chat:666"), receipt.answer)
        assert isinstance(refused, Reject) and refused.reason is Refusal.NOT_ALLOWED
        assert [one["text"] for one in live.hub.queue.list_all()] == ["mine"]
        host.close()


async def test_what_no_box_could_take_is_refused_when_it_is_said() -> None:
    async with live_hub(POLICY, (HERE, CHAT)) as live:
        host = await working(live)
        for text in ("", "x" * 4097, "rm\x1b[A", "a\u202eb"):
            refused = live.hub.queue.add(said(host.record.session_id, text))
            assert isinstance(refused, Reject) and refused.reason is Refusal.BAD_VALUE
        assert live.hub.queue.list_all() == []
        host.close()


async def test_a_box_that_moved_on_leaves_the_instruction_for_the_next_one() -> None:
    async with live_hub(POLICY, (HERE, CHAT)) as live:
        host = await working(live)
        live.hub.queue.add(said(host.record.session_id, "go on"))
        host.raise_prompt(IDLE)
        await in_thread(host.answer_typing, "stale")
        await until(lambda: [one["text"] for one in live.hub.queue.list_all()] == ["go on"])
        host.raise_prompt(replace(IDLE, digest="idle2"))
        assert (await in_thread(host.answer_typing))["answer"]["value"] == "go on"
        await until(lambda: live.hub.queue.list_all() == [])
        host.close()


async def test_the_queue_ends_with_its_session() -> None:
    async with live_hub(POLICY, (HERE, CHAT)) as live:
        host = await working(live)
        live.hub.queue.add(said(host.record.session_id, "never"))
        host.end()
        await until(lambda: live.hub.queue.list_all() == [] and "INSTRUCTION_DROPPED" in events(live))
        assert isinstance(live.hub.queue.add(said(host.record.session_id, "late")), Reject)
        host.close()
