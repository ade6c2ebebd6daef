"""The Telegram fake judged from outside: python-telegram-bot, which others wrote, must find a real server's manners."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest
import telegram
from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup, MessageEntity
from telegram.error import BadRequest, Conflict, Forbidden, InvalidToken, NetworkError, RetryAfter
from tests.support.fake_telegram import FakeTelegram

from atlasbridge.core.clock import ManualClock

ADA = 1001


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def server(clock: ManualClock) -> Iterator[FakeTelegram]:
    with FakeTelegram(clock=clock.wall) as fake:
        yield fake


@pytest.fixture
async def bot(server: FakeTelegram) -> AsyncIterator[Bot]:
    async with Bot(server.token, base_url=f"{server.url}/bot") as client:
        yield client


def keyboard(*data: str) -> InlineKeyboardMarkup:
    return InlineKeyboardMarkup([[InlineKeyboardButton(f"Button {d}", callback_data=d) for d in data]])


async def test_a_message_with_a_keyboard_is_sent_tapped_answered_and_edited(server: FakeTelegram, bot: Bot) -> None:
    ada = server.person(ADA)
    sent = await bot.send_message(ADA, "Continue?", reply_markup=keyboard("y", "n"))
    tap = ada.tap(ada.last(), "Button y")

    (update,) = await bot.get_updates(timeout=5)
    assert update.callback_query is not None
    assert (update.callback_query.data, update.callback_query.from_user.id) == ("y", ADA)
    await update.callback_query.answer("done")
    await bot.edit_message_text("Continue? yes", ADA, sent.message_id)

    assert (tap.answered, tap.toast) == (True, "done")
    assert ada.last()["text"] == "Continue? yes"
    assert "reply_markup" not in ada.last()


async def test_updates_come_again_until_an_offset_confirms_them(server: FakeTelegram, bot: Bot) -> None:
    ada = server.person(ADA)
    ada.write("one")
    ada.write("two")
    first = await bot.get_updates()
    again = await bot.get_updates()
    rest = await bot.get_updates(offset=first[0].update_id + 1)
    assert [u.update_id for u in first] == [u.update_id for u in again]
    assert [u.message.text for u in rest if u.message] == ["two"]
    assert first[0].update_id in server.confirmed


async def test_a_long_poll_ends_when_something_happens(server: FakeTelegram, bot: Bot) -> None:
    ada = server.person(ADA)
    polling = asyncio.create_task(bot.get_updates(timeout=30))
    await server.until(lambda: server.calls_of("getUpdates"), "the poll")
    ada.write("hello")
    (update,) = await polling
    assert update.message is not None and update.message.text == "hello"


async def test_a_second_poller_ends_the_first_with_409(server: FakeTelegram, bot: Bot) -> None:
    first = asyncio.create_task(bot.get_updates(timeout=30))
    await server.until(lambda: server.calls_of("getUpdates"), "the first poll")
    async with httpx.AsyncClient() as other:
        await other.get(f"{server.url}/bot{server.token}/getUpdates")
    with pytest.raises(Conflict, match="terminated by other getUpdates"):
        await first


async def test_polling_while_a_webhook_is_set_is_a_conflict(server: FakeTelegram, bot: Bot) -> None:
    await bot.set_webhook("https://example.org/hook")
    with pytest.raises(Conflict, match="webhook is active"):
        await bot.get_updates()
    await bot.delete_webhook()
    assert await bot.get_updates() == ()


async def test_a_tap_is_dropped_after_150_seconds_and_a_message_is_not(
    server: FakeTelegram, bot: Bot, clock: ManualClock
) -> None:
    ada = server.person(ADA)
    await bot.send_message(ADA, "Continue?", reply_markup=keyboard("y"))
    tap = ada.tap(ada.last(), "Button y")
    ada.write("still here")
    clock.advance(151)
    updates = await bot.get_updates()
    assert [u.message.text for u in updates if u.message] == ["still here"]
    with pytest.raises(BadRequest, match="too old"):
        await bot.answer_callback_query(tap.query_id)


async def test_a_query_is_answered_once(server: FakeTelegram, bot: Bot) -> None:
    ada = server.person(ADA)
    await bot.send_message(ADA, "Continue?", reply_markup=keyboard("y"))
    tap = ada.tap(ada.last(), "Button y")
    await bot.answer_callback_query(tap.query_id)
    with pytest.raises(BadRequest, match="too old"):
        await bot.answer_callback_query(tap.query_id)


@pytest.mark.parametrize("data", ["x" * 65, "ü" * 33])
async def test_callback_data_over_64_bytes_is_refused(server: FakeTelegram, bot: Bot, data: str) -> None:
    server.person(ADA)
    with pytest.raises(BadRequest, match=r"(?i)button_data_invalid"):
        await bot.send_message(ADA, "Continue?", reply_markup=keyboard(data))


async def test_texts_are_1_to_4096_characters(server: FakeTelegram, bot: Bot) -> None:
    server.person(ADA)
    assert (await bot.send_message(ADA, "x" * 4096)).text == "x" * 4096
    with pytest.raises(BadRequest, match="too long"):
        await bot.send_message(ADA, "x" * 4097)
    with pytest.raises(BadRequest, match="text is empty"):
        await bot.send_message(ADA, " ")


@pytest.mark.parametrize(
    ("offset", "length", "good"),
    [
        (0, 2, True),
        (2, 3, True),
        (0, 5, True),
        (0, 6, False),
        (-1, 2, False),
        (1, 2, False),
        (0, 1, False),
        (2, 0, False),
    ],
)
async def test_entities_are_counted_in_utf16_units(
    server: FakeTelegram, bot: Bot, offset: int, length: int, good: bool
) -> None:
    server.person(ADA)
    entity = MessageEntity(MessageEntity.BOLD, offset, length)
    if good:
        sent = await bot.send_message(ADA, "😀abc", entities=[entity])
        assert sent.entities == (entity,)
    else:
        with pytest.raises(BadRequest):
            await bot.send_message(ADA, "😀abc", entities=[entity])


async def test_an_edit_that_changes_nothing_is_refused(server: FakeTelegram, bot: Bot) -> None:
    server.person(ADA)
    sent = await bot.send_message(ADA, "same", reply_markup=keyboard("y"))
    with pytest.raises(BadRequest, match="is not modified"):
        await bot.edit_message_text("same", ADA, sent.message_id, reply_markup=keyboard("y"))
    await bot.edit_message_reply_markup(ADA, sent.message_id)
    with pytest.raises(BadRequest, match="is not modified"):
        await bot.edit_message_reply_markup(ADA, sent.message_id)


async def test_a_flood_is_answered_with_retry_after(
    server: FakeTelegram, bot: Bot, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PTB_TIMEDELTA", "1")  # without it the client warns about its own next version
    server.person(ADA)
    server.min_interval_s = 3.0
    await bot.send_message(ADA, "one")
    with pytest.raises(RetryAfter) as caught:
        await bot.send_message(ADA, "two")
    assert str(caught.value).endswith("0:00:03")
    clock.advance(3.0)
    assert (await bot.send_message(ADA, "two")).text == "two"


async def test_strangers_blocked_bots_and_unknown_chats_are_refused(server: FakeTelegram, bot: Bot) -> None:
    ada = server.person(ADA)
    server.person(1002, started=False)
    ada.block()
    with pytest.raises(Forbidden, match="blocked by the user"):
        await bot.send_message(ADA, "hello")
    with pytest.raises(Forbidden, match="can't initiate"):
        await bot.send_message(1002, "hello")
    with pytest.raises(BadRequest, match=r"(?i)chat not found"):
        await bot.send_message(1003, "hello")
    (update,) = await bot.get_updates()
    assert update.my_chat_member is not None and update.my_chat_member.new_chat_member.status == "kicked"


async def test_a_wrong_token_is_unauthorized(server: FakeTelegram) -> None:
    with pytest.raises(InvalidToken):
        async with Bot("1:wrong", base_url=f"{server.url}/bot"):
            pass


async def test_a_reply_carries_what_it_replies_to_and_topics_must_exist(server: FakeTelegram, bot: Bot) -> None:
    ada = server.person(ADA)
    server.group(-100500, forum=True, threads=(7,))
    sent = await bot.send_message(-100500, "Name?", message_thread_id=7)
    ada.write("blue", chat_id=-100500, reply_to=ada.last(-100500), thread=7)
    (update,) = await bot.get_updates()
    assert update.message is not None and update.message.reply_to_message is not None
    assert update.message.reply_to_message.message_id == sent.message_id
    assert update.message.message_thread_id == 7
    with pytest.raises(BadRequest, match="thread not found"):
        await bot.send_message(-100500, "Name?", message_thread_id=8)


async def test_edited_and_forwarded_messages_look_as_they_do_on_the_real_server(server: FakeTelegram, bot: Bot) -> None:
    ada = server.person(ADA)
    ada.edit(ada.write("first"), "second")
    ada.forward("not mine")
    written, edited, forwarded = await bot.get_updates()
    assert written.message is not None and edited.edited_message is not None and forwarded.message is not None
    assert (written.message.text, edited.edited_message.text) == ("first", "second")
    assert forwarded.message.forward_origin is not None


async def test_documents_carry_their_bytes(server: FakeTelegram, bot: Bot) -> None:
    ada = server.person(ADA)
    sent = await bot.send_document(ADA, b"long output", filename="screen.txt", caption="all of it")
    assert sent.document is not None and (sent.document.file_name, sent.document.file_size) == ("screen.txt", 11)
    assert ada.last()["_content"] == b"long output"


async def test_commands_are_checked(server: FakeTelegram, bot: Bot) -> None:
    await bot.set_my_commands([("sessions", "list running sessions")])
    assert server.commands == [{"command": "sessions", "description": "list running sessions"}]
    with pytest.raises(BadRequest):
        await bot.set_my_commands([("Not Good", "x")])


async def test_allowed_updates_keep_other_kinds_out(server: FakeTelegram, bot: Bot) -> None:
    ada = server.person(ADA)
    await bot.get_updates(allowed_updates=["callback_query"])
    ada.write("unheard")
    assert await bot.get_updates() == ()


@pytest.mark.parametrize("kind", ["status", "cut_before", "garbage"])
async def test_planned_faults_look_like_network_errors_and_happen_once(
    server: FakeTelegram, bot: Bot, kind: str
) -> None:
    ada = server.person(ADA)
    server.fail("sendMessage", kind)  # type: ignore[arg-type]
    with pytest.raises(NetworkError):
        await bot.send_message(ADA, "hello")
    assert ada.sees() == []
    await bot.send_message(ADA, "hello")
    assert len(ada.sees()) == 1


async def test_a_cut_after_the_work_leaves_the_message_there(server: FakeTelegram, bot: Bot) -> None:
    ada = server.person(ADA)
    server.fail("sendMessage", "cut_after")
    with pytest.raises(NetworkError):
        await bot.send_message(ADA, "hello")
    assert len(ada.sees()) == 1


async def test_an_outage_keeps_the_queue(server: FakeTelegram, bot: Bot) -> None:
    ada = server.person(ADA)
    server.stop()
    with pytest.raises(NetworkError):
        await bot.get_updates()
    ada.write("while it was down")
    server.start()
    (update,) = await bot.get_updates()
    assert update.message is not None and update.message.text == "while it was down"


def test_the_outside_judge_is_not_ours() -> None:
    assert telegram.__version__.split(".")[0].isdigit() and "site-packages" in str(telegram.__file__)
