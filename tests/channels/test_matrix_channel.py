"""The Matrix channel against a strict fake: reactions, replies, strangers, floods, restarts, what it never guesses."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.channels import prompts
from tests.channels.conftest import serving
from tests.channels.mini_hub import MiniHub
from tests.integration.test_hub_rules import asking
from tests.support.fake_matrix import BOT, ROOM, TOKEN, FakeMatrix

from atlasbridge.channels.delivery import parse_places
from atlasbridge.channels.matrix import MatrixChannel, parse_target, reactions, strip_quote
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.errors import ChannelError
from atlasbridge.core.operations import Caller, Granted
from atlasbridge.core.policy.escalation import Tone
from atlasbridge.core.prompt.model import PromptState, Receipt
from atlasbridge.core.values import replace

ADA, EVE = "@ada:fake", "@eve:fake"


@pytest.fixture
def home() -> Iterator[FakeMatrix]:
    with FakeMatrix() as fake:
        yield fake


def opened(home: FakeMatrix, hub_api: MiniHub, **changes: Any) -> MatrixChannel:
    settings = {"homeserver": home.url, "access_token": TOKEN, "room": ROOM, "allowed_users": [ADA]}
    return MatrixChannel({**settings, "backoff_first_s": 0.02, "poll_timeout_s": 1, **changes}, hub_api, SystemClock())


def event_of(message_id: str) -> str:
    """The event that shows a prompt, from the id that the hub keeps."""
    return parse_places(message_id)[0][1]


async def listening(home: FakeMatrix) -> None:
    await home.until(lambda: [one for one in home.calls_of("sync") if one.params["since"]], "the second sync")


async def test_a_reaction_answers_and_the_message_says_what_became_of_it(home: FakeMatrix, hub_api: MiniHub) -> None:
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    channel = opened(home, hub_api)
    async with serving(hub_api, channel):
        message_id = event_of(await hub_api.ask(channel, record))
        await listening(home)
        home.react(ADA, message_id, "✅")
        await home.until(lambda: record.prompt_id in hub_api.answers, "the answer")
        assert hub_api.answers[record.prompt_id].identity == f"matrix:{ADA}"
        moved = hub_api.move(record, PromptState.RESOLVED, f"matrix:{ADA}")
        await channel.update_prompt(
            hub_api.deliveries(record.prompt_id, "matrix")[0],
            moved,
            Receipt("taken", "Taken.", f"matrix:{ADA}", "Yes", audit_head="7:ab12cd34"),
        )
        await home.until(lambda: said(home, "audit 7:ab12cd34"), "the edit")
        assert "✅ Yes" in home.events[-1]["content"]["m.new_content"]["body"]
        assert home.events[-1]["content"]["m.relates_to"] == {"rel_type": "m.replace", "event_id": message_id}


async def test_an_answer_that_is_not_asked_again_takes_a_second_reaction(home: FakeMatrix, hub_api: MiniHub) -> None:
    record = hub_api.add_prompt(hub_api.add_session(), prompts.MENU)
    channel = opened(home, hub_api)
    async with serving(hub_api, channel):
        message_id = event_of(await hub_api.ask(channel, record))
        await listening(home)
        home.react(ADA, message_id, "2\ufe0f\u20e3")
        await home.until(lambda: said(home, "♾ Yes, always: 2. Yes, and don't ask again for rm"), "the second question")
        (asked,) = [one for one in home.events if "♾ Yes, always" in str(one["content"].get("body"))]
        assert record.prompt_id not in hub_api.answers
        home.react(EVE, asked["event_id"], "✅")
        home.react(ADA, asked["event_id"], "❌")
        home.react(ADA, asked["event_id"], "✅")
        await home.until(lambda: record.prompt_id in hub_api.answers, "the answer")
        given = hub_api.answers[record.prompt_id]
        assert (given.value, given.identity, given.nonce) == ("2", f"matrix:{ADA}", record.nonce)


async def test_a_reply_answers_in_words_and_a_loose_text_is_not_guessed(home: FakeMatrix, hub_api: MiniHub) -> None:
    record = hub_api.add_prompt(hub_api.add_session(), prompts.TEXT)
    channel = opened(home, hub_api)
    async with serving(hub_api, channel):
        message_id = event_of(await hub_api.ask(channel, record))
        await listening(home)
        home.say(ADA, "m.room.message", {"msgtype": "m.text", "body": "main"})
        await home.until(lambda: said(home, "Which one do you mean?"), "which one")
        assert hub_api.replies == []
        home.reply(ADA, message_id, "> <@atlas:fake> quoted\n> more\n\nmain")
        await home.until(lambda: hub_api.replies, "the words")
        assert hub_api.replies[0].value == "main"


async def test_a_reaction_to_a_question_whose_sending_is_not_confirmed_yet_is_heard(
    home: FakeMatrix, hub_api: MiniHub
) -> None:
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    channel = opened(home, hub_api)
    async with serving(hub_api, channel):
        await listening(home)
        home.fail("answer to m.room.message", "slow", seconds=0.5)
        asking = asyncio.ensure_future(hub_api.ask(channel, record))
        await home.until(lambda: home.asked(), "the question in the room")
        home.react(ADA, home.asked()[0]["event_id"], "❌")
        await home.until(lambda: record.prompt_id in hub_api.answers, "the answer")
        assert [reply.value for reply in hub_api.replies] == ["n"]
        await asking


async def test_strangers_and_our_own_reactions_answer_nothing(home: FakeMatrix, hub_api: MiniHub) -> None:
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    channel = opened(home, hub_api)
    async with serving(hub_api, channel):
        message_id = event_of(await hub_api.ask(channel, record))
        await listening(home)
        home.react(EVE, message_id, "✅")
        home.reply(EVE, message_id, "y")
        home.react(ADA, message_id, "👍")
        home.react(ADA, "$unknown", "✅")
        home.react(ADA, message_id, "❌")
        await home.until(lambda: record.prompt_id in hub_api.answers, "the answer")
        assert [reply.value for reply in hub_api.replies] == ["n"]
        assert [event for event, _ in hub_api.notes] == ["CHANNEL_STRANGER"]
        assert [e for e in home.events if e["sender"] == BOT and e["type"] == "m.reaction"]


async def test_a_lost_answer_of_the_server_makes_no_second_question(home: FakeMatrix, hub_api: MiniHub) -> None:
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    channel = opened(home, hub_api)
    async with serving(hub_api, channel):
        first = await hub_api.ask(channel, record)
        assert await hub_api.ask(channel, record) == first and len(home.asked()) == 1


async def test_a_short_flood_limit_is_waited_for_and_a_fault_is_named(home: FakeMatrix, hub_api: MiniHub) -> None:
    channel = opened(home, hub_api)
    session = hub_api.add_session()
    record = hub_api.add_prompt(session, prompts.YES_NO)
    home.fail("send", "status", status=429, retry_after=20)
    assert await channel.send_prompt(record, session)
    await home.until(lambda: len(home.events) == 3, "the question and its two reactions")
    home.fail("send", "status", status=429, retry_after=60_000)
    again = hub_api.add_prompt(session, prompts.YES_NO)
    with pytest.raises(ChannelError, match=r"no message to .* for 60 s"):
        await channel.send_prompt(again, session)
    await channel.close()
    other = opened(home, hub_api, access_token="syt_other")
    with pytest.raises(ChannelError, match="401") as caught:
        await other.send_prompt(again, session)
    await other.close()
    assert "syt_other" not in str(caught.value)


async def test_what_was_said_over_a_restart_is_heard_once(home: FakeMatrix, hub_api: MiniHub) -> None:
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    async with serving(hub_api, first := opened(home, hub_api)):
        message_id = event_of(await hub_api.ask(first, record))
        await listening(home)
    home.react(ADA, message_id, "❌")
    async with serving(hub_api, opened(home, hub_api)):
        await home.until(lambda: record.prompt_id in hub_api.answers, "heard")
    async with serving(hub_api, opened(home, hub_api)):
        before = len(home.calls_of("sync"))
        await home.until(lambda: len(home.calls_of("sync")) > before + 1, "two more syncs")
    assert len(hub_api.replies) == 1


async def test_a_silent_prompt_is_a_notice_and_an_encrypted_room_is_named(home: FakeMatrix, hub_api: MiniHub) -> None:
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    hub_api.tones[record.prompt_id] = Tone(loud=False)
    channel = opened(home, hub_api)
    async with serving(hub_api, channel):
        await hub_api.ask(channel, record)
        assert home.asked()[0]["content"]["msgtype"] == "m.notice"
        await listening(home)
        home.say(ADA, "m.room.encrypted", {"ciphertext": "x"})
        await home.until(lambda: said(home, "encrypted"), "the hint")


def test_what_is_not_whole_has_no_reaction_that_agrees() -> None:
    assert all(button.role == "refuse" for button in reactions(replace(prompts.YES_NO, whole=False)).values())
    assert set(reactions(prompts.SECRET)) == set()


def test_a_quote_is_taken_off_and_nothing_else() -> None:
    assert strip_quote("> a\n> b\n\nyes") == "yes" and strip_quote("a > b") == "a > b" and strip_quote("> only") == ""


@pytest.mark.heavy
async def test_a_real_synapse_carries_question_reaction_reply_and_edit(hub_api: MiniHub) -> None:
    from tests.support.synapse import Synapse

    with Synapse() as server:
        bot, ada, eve = (server.register(name) for name in ("atlas", "ada", "eve"))
        room = bot.create_room(ada.user, eve.user)
        ada.join(room), eve.join(room)
        settings = {"homeserver": server.url, "access_token": bot.token, "room": room, "allowed_users": [ada.user]}
        channel = MatrixChannel({**settings, "backoff_first_s": 0.1, "poll_timeout_s": 5}, hub_api, SystemClock())
        first, second = (hub_api.add_prompt(hub_api.add_session(), one) for one in (prompts.YES_NO, prompts.TEXT))
        fake = FakeMatrix()  # only for its way to wait
        async with serving(hub_api, channel):
            await fake.until(lambda: hub_api.recall("matrix.since"), "the first sync")
            asked, text = [event_of(await hub_api.ask(channel, one)) for one in (first, second)]
            answer = {"m.relates_to": {"rel_type": "m.annotation", "event_id": asked, "key": "✅"}}
            eve.send(room, "m.reaction", answer, "e1")
            ada.send(room, "m.reaction", answer, "a1")
            await fake.until(lambda: first.prompt_id in hub_api.answers, "the reaction")
            assert hub_api.answers[first.prompt_id].identity == f"matrix:{ada.user}"
            server.stop()
            server.start()  # an outage: the line is taken up again
            words = {"msgtype": "m.text", "body": "main", "m.relates_to": {"m.in_reply_to": {"event_id": text}}}
            ada.send(room, "m.room.message", words, "a2")
            await fake.until(lambda: second.prompt_id in hub_api.answers, "the reply")
            assert [reply.value for reply in hub_api.replies] == ["y", "main"]
            moved = hub_api.move(first, PromptState.RESOLVED, f"matrix:{ada.user}")
            shown = hub_api.deliveries(first.prompt_id, "matrix")[0]
            await channel.update_prompt(shown, moved, Receipt("taken", "Taken.", f"matrix:{ada.user}", "Yes"))
            await fake.until(lambda: [e for e in ada.reads(room) if "m.new_content" in e["content"]], "the edit")
        for account in (bot, ada, eve):
            account.close()


class GrantingHub(MiniHub):
    """Remembers what was granted and revoked; what a grant allows is the real hub's business."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[dict[str, Any]] = []
        self.ended: list[str] = []

    async def do_grant(
        self,
        caller: Caller,
        prompt_id: str,
        for_s: float | None = None,
        times: int | None = None,
        folder: bool = False,
        preview: bool = False,
    ) -> Granted:
        words = Granted("ls, 5 times", "ls", ("ls",), ("ls; x",))
        if preview:
            return words
        self.given.append({"by": caller.identity, "for_s": for_s, "times": times, "folder": folder})
        return replace(words, grant_id="ab" * 16, answered=True)

    async def do_revoke_grant(self, caller: Caller, grant_id: str) -> bool:
        self.ended.append(grant_id)
        return True


async def test_a_clock_brings_the_offer_and_a_keycap_under_it_grants_and_revokes(home: FakeMatrix) -> None:
    hub_api = GrantingHub()
    record = hub_api.add_prompt(hub_api.add_session(), asking("ls"))
    channel = opened(home, hub_api)
    async with serving(hub_api, channel):
        message_id = event_of(await hub_api.ask(channel, record))
        await listening(home)
        await home.until(
            lambda: any("⏱" in str(one["content"].get("m.relates_to")) for one in home.events), "the clock"
        )
        home.react(ADA, message_id, "⏱\ufe0f")
        await home.until(lambda: offers(home), "the offer")
        offer = offers(home)[0]
        assert "✅ ls\n❌ ls; x" in offer["content"]["body"] and "2\ufe0f\u20e3 5 times" in offer["content"]["body"]
        home.react(EVE, offer["event_id"], "1\ufe0f\u20e3")
        home.react(ADA, offer["event_id"], "2\u20e3")
        await home.until(lambda: hub_api.given, "the grant")
        assert hub_api.given == [{"by": f"matrix:{ADA}", "for_s": None, "times": 5, "folder": False}]
        await home.until(lambda: said(home, "Granted: ls, 5 times."), "the edit")
        home.react(ADA, offer["event_id"], "1\ufe0f\u20e3")
        await home.until(lambda: hub_api.ended == ["ab" * 4], "the end")
        assert hub_api.replies == []


def said(home: FakeMatrix, words: str) -> bool:
    """In any message or edit: others may have come after it."""
    return any(words in str(one["content"]) for one in home.events)


def offers(home: FakeMatrix) -> list[dict[str, Any]]:
    return [
        one
        for one in home.events
        if "AtlasBridge would allow this without asking: ls." in str(one["content"].get("body"))
    ]


async def test_nobody_is_asked_in_an_encrypted_room_and_the_hub_hears_why(home: FakeMatrix, hub_api: MiniHub) -> None:
    home.encrypted = True
    channel, record = opened(home, hub_api), hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    async with serving(hub_api, channel):
        with pytest.raises(ChannelError, match="this room is encrypted"):
            await hub_api.ask(channel, record)
        await home.until(lambda: channel.health()["state"] == "fault", "the fault")
        assert "encrypted" in channel.health()["detail"]
    assert home.calls_of("send") == []


@pytest.mark.parametrize(
    "content",
    [
        {"msgtype": "m.image", "body": "y"},
        {"msgtype": "m.file", "body": "yes"},
        {"msgtype": "m.notice", "body": "y"},
        {"msgtype": "m.text", "body": ""},
        {"msgtype": "m.text", "body": "> <@atlas:fake> Press Enter to continue"},
        {"msgtype": "m.text", "body": "y", "m.relates_to": {"rel_type": "m.replace", "event_id": "$e0"}},
        {"body": "y"},
        {},
    ],
)
def test_a_picture_s_name_a_mere_quote_and_an_edit_are_no_answer(content: dict[str, Any]) -> None:
    relates = {"m.in_reply_to": {"event_id": "$e0"}, **content.get("m.relates_to", {})}
    event = {"type": "m.room.message", "sender": ADA, "content": {**content, "m.relates_to": relates}}
    assert parse_target(event)[0] == ""


async def test_commands_and_loose_words_work_as_in_every_chat(home: FakeMatrix, hub_api: MiniHub) -> None:
    session = hub_api.add_session(label="shop")
    record = hub_api.add_prompt(session, prompts.YES_NO)
    channel = opened(home, hub_api)
    async with serving(hub_api, channel):
        await hub_api.ask(channel, record)
        await listening(home)
        write(home, "!status")
        await home.until(lambda: [e for e in told(home) if "shop" in e and "React" not in e], "the status")
        write(home, "y")
        await home.until(lambda: said(home, "Which one do you mean?"), "which one")
        assert hub_api.replies == []
        (which,) = [one for one in home.events if "Which one" in str(one["content"].get("body"))]
        home.react(ADA, which["event_id"], "1\ufe0f\u20e3")
        await home.until(lambda: record.prompt_id in hub_api.answers, "the answer")
        assert (hub_api.replies[0].value, hub_api.replies[0].place) == ("y", f"{ADA} in Matrix")


async def test_a_long_answer_is_a_file_and_a_picture_is_refused(home: FakeMatrix, hub_api: MiniHub) -> None:
    session = hub_api.add_session(label="shop")
    hub_api.screens[session.session_id] = {"text": "x" * 90_000, "lines": ["x" * 90_000]}
    channel = opened(home, hub_api)
    async with serving(hub_api, channel):
        await listening(home)
        home.say(ADA, "m.room.message", {"msgtype": "m.image", "body": "y", "url": "mxc://fake/9"})
        await home.until(lambda: said(home, "Only text and reactions work here."), "the refusal")
        write(home, "!screen shop")
        await home.until(lambda: home.files, "the file")
        await home.until(lambda: said(home, "mxc://fake/0"), "its message")
        (sent,) = [one["content"] for one in home.events if "mxc://fake/0" in str(one["content"])]
        assert sent["msgtype"] in ("m.file", "m.image") and sent["filename"]


async def test_reactions_are_offered_after_a_flood_limit_too(home: FakeMatrix, hub_api: MiniHub) -> None:
    channel, record = opened(home, hub_api), hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    async with serving(hub_api, channel):
        await hub_api.ask(channel, record)
        home.fail("send", "status", status=429, retry_after=20)
        await home.until(lambda: len([e for e in home.events if e["type"] == "m.reaction"]) == 2, "both reactions")


def write(home: FakeMatrix, body: str) -> str:
    return home.say(ADA, "m.room.message", {"msgtype": "m.text", "body": body})


def told(home: FakeMatrix) -> list[str]:
    return [str(one["content"].get("body")) for one in home.events if one["sender"] == BOT]
