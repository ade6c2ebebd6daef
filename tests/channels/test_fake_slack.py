"""The Slack fake judged from outside: slack-sdk's own clients must find the manners of the real service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient
from tests.support.fake_slack import APP_TOKEN, BOT_TOKEN, BOT_USER, TEAM, FakeSlack

from atlasbridge.core.clock import ManualClock

ADA = "U0ADA"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def slack(clock: ManualClock) -> Iterator[FakeSlack]:
    with FakeSlack(clock.wall, ack_s=0.5) as fake:
        yield fake


@pytest.fixture
async def client(slack: FakeSlack) -> AsyncIterator[AsyncWebClient]:
    yield AsyncWebClient(BOT_TOKEN, base_url=f"{slack.url}/api/")


class Listener:
    """A Socket Mode client that keeps what it hears; `acks` says whether it acknowledges."""

    def __init__(self, slack: FakeSlack) -> None:
        web = AsyncWebClient(APP_TOKEN, base_url=f"{slack.url}/api/")
        self.client = SocketModeClient(APP_TOKEN, web_client=web, auto_reconnect_enabled=True)
        self.client.socket_mode_request_listeners.append(self.hear)
        self.heard: list[SocketModeRequest] = []
        self.acks = True

    async def hear(self, client: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        self.heard.append(request)
        if self.acks:
            await client.send_socket_mode_response(SocketModeResponse(request.envelope_id))

    def events(self, kind: str = "events_api") -> list[dict[str, Any]]:
        return [request.payload for request in self.heard if request.type == kind]


@pytest.fixture
async def listener(slack: FakeSlack) -> AsyncIterator[Listener]:
    made = Listener(slack)
    await made.client.connect()
    await slack.until(lambda: slack.sockets, "the socket")
    yield made
    await made.client.disconnect()
    await made.client.close()


def button(label: str, value: str = "v", action_id: str = "a") -> dict[str, Any]:
    return {"type": "button", "text": {"type": "plain_text", "text": label}, "value": value, "action_id": action_id}


def actions(*buttons: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "actions", "elements": list(buttons)}]


async def test_a_message_with_buttons_is_posted_clicked_and_updated(
    slack: FakeSlack, client: AsyncWebClient, listener: Listener
) -> None:
    ada = slack.person(ADA)
    room = (await client.conversations_open(users=ADA))["channel"]["id"]
    posted = await client.chat_postMessage(channel=room, text="Continue?", blocks=actions(button("Yes", "y")))
    envelope = ada.click(ada.last(), "Yes")
    await slack.until(lambda: envelope.acked, "the acknowledgement")
    (payload,) = listener.events("interactive")
    assert (payload["actions"][0]["value"], payload["user"]["id"], payload["team"]["id"]) == ("y", ADA, TEAM)
    await client.chat_update(channel=room, ts=posted["ts"], text="done", blocks=[{"type": "divider"}])
    assert ada.last()["text"] == "done"


async def test_who_am_i_and_who_is_that(slack: FakeSlack, client: AsyncWebClient) -> None:
    slack.person(ADA)
    me = await client.auth_test()
    assert (me["team_id"], me["user_id"]) == (TEAM, BOT_USER)
    assert (await client.users_info(user=ADA))["user"]["team_id"] == TEAM
    with pytest.raises(SlackApiError, match="user_not_found"):
        await client.users_info(user="U0NOBODY")


@pytest.mark.parametrize(
    ("token", "error"), [("xoxb-wrong", "invalid_auth"), (APP_TOKEN, "not_allowed_token_type"), ("", "not_authed")]
)
async def test_tokens_are_checked(slack: FakeSlack, token: str, error: str) -> None:
    with pytest.raises(SlackApiError, match=error):
        await AsyncWebClient(token, base_url=f"{slack.url}/api/").auth_test()


@pytest.mark.parametrize(
    "blocks",
    [
        [{"type": "divider"}] * 51,
        [{"type": "section", "text": {"type": "mrkdwn", "text": "x" * 3001}}],
        [{"type": "header", "text": {"type": "mrkdwn", "text": "x"}}],
        actions(button("x" * 76)),
        actions(button("x", "v" * 2001)),
        actions(button("a"), button("b")),
        [{"type": "context", "elements": []}],
        [{"type": "poem"}],
    ],
)
async def test_blocks_are_checked(slack: FakeSlack, client: AsyncWebClient, blocks: list[dict[str, Any]]) -> None:
    slack.person(ADA)
    with pytest.raises(SlackApiError, match="invalid_blocks"):
        await client.chat_postMessage(channel=slack.dm_with(ADA).room_id, text="x", blocks=blocks)


async def test_unknown_rooms_messages_and_threads_are_refused(slack: FakeSlack, client: AsyncWebClient) -> None:
    room = slack.dm_with(ADA).room_id
    with pytest.raises(SlackApiError, match="channel_not_found"):
        await client.chat_postMessage(channel="C0NONE", text="x")
    with pytest.raises(SlackApiError, match="message_not_found"):
        await client.chat_update(channel=room, ts="1.1", text="x")
    with pytest.raises(SlackApiError, match="thread_not_found"):
        await client.chat_postMessage(channel=room, text="x", thread_ts="1.1")


async def test_a_modal_is_opened_by_a_fresh_trigger_once_and_submitted(
    slack: FakeSlack, client: AsyncWebClient, listener: Listener, clock: ManualClock
) -> None:
    ada = slack.person(ADA)
    view = {
        "type": "modal",
        "title": {"type": "plain_text", "text": "Answer"},
        "submit": {"type": "plain_text", "text": "Send"},
        "private_metadata": "p1",
        "blocks": [
            {
                "type": "input",
                "block_id": "answer",
                "label": {"type": "plain_text", "text": "Text"},
                "element": {"type": "plain_text_input", "action_id": "text"},
            }
        ],
    }
    trigger = slack.new_trigger()
    await client.views_open(trigger_id=trigger, view=view)
    with pytest.raises(SlackApiError, match="exchanged_trigger_id"):
        await client.views_open(trigger_id=trigger, view=view)
    stale = slack.new_trigger()
    clock.advance(4)
    with pytest.raises(SlackApiError, match="expired_trigger_id"):
        await client.views_open(trigger_id=stale, view=view)
    ada.submit("blue")
    await slack.until(lambda: listener.events("interactive"), "the submission")
    submitted = listener.events("interactive")[0]["view"]
    assert submitted["private_metadata"] == "p1"
    assert submitted["state"]["values"]["answer"]["text"]["value"] == "blue"


async def test_a_thread_reply_is_an_event_and_so_is_the_bots_own_message(
    slack: FakeSlack, client: AsyncWebClient, listener: Listener
) -> None:
    ada = slack.person(ADA)
    await client.chat_postMessage(channel=ada.dm, text="Name?")
    ada.write("blue", thread=ada.last())
    await slack.until(lambda: len(listener.events()) == 2, "both events")
    own, reply = (payload["event"] for payload in listener.events())
    assert own["bot_id"] == "B0" and reply["user"] == ADA
    assert reply["thread_ts"] == own["ts"] and reply["channel_type"] == "im"


async def test_an_event_that_is_not_acknowledged_comes_again_and_a_click_does_not(
    slack: FakeSlack, client: AsyncWebClient, listener: Listener
) -> None:
    ada = slack.person(ADA)
    await client.chat_postMessage(channel=ada.dm, text="x", blocks=actions(button("Yes")))
    await slack.until(lambda: all(envelope.acked for envelope in slack.envelopes), "quiet")
    listener.acks = False
    ada.write("hello")
    click = ada.click(ada.last(), "Yes")
    await slack.until(lambda: click.failed, "the person's error")
    await slack.until(
        lambda: len([r for r in listener.heard if r.payload.get("event", {}).get("text") == "hello"]) >= 2
    )
    again = [r for r in listener.heard if r.payload.get("event", {}).get("text") == "hello"]
    assert len({request.envelope_id for request in again}) == len(again)
    assert len({request.payload["event_id"] for request in again}) == 1
    assert again[1].retry_attempt == 1 and again[1].retry_reason == "timeout"
    assert len(listener.events("interactive")) == 1


@pytest.mark.parametrize("how", ["disconnect", "cut"])
async def test_a_client_that_is_sent_away_comes_back_and_hears_what_waited(
    slack: FakeSlack, listener: Listener, how: str
) -> None:
    ada = slack.person(ADA)
    slack.dm_with(ADA)
    opened = len(slack.calls_of("apps.connections.open"))
    if how == "disconnect":
        slack.disconnect()
    else:
        slack.cut_sockets()
    await slack.until(lambda: len(slack.calls_of("apps.connections.open")) > opened, "a new ticket")
    await slack.until(lambda: slack.sockets, "a new socket")
    ada.write("still there?")
    await slack.until(lambda: listener.events(), "the event")
    assert listener.events()[-1]["event"]["text"] == "still there?"


async def test_a_flood_is_answered_with_429_and_retry_after(
    slack: FakeSlack, client: AsyncWebClient, clock: ManualClock
) -> None:
    room = slack.dm_with(ADA).room_id
    slack.min_interval_s = 5.0
    await client.chat_postMessage(channel=room, text="one")
    with pytest.raises(SlackApiError) as caught:
        await client.chat_postMessage(channel=room, text="two")
    assert caught.value.response.status_code == 429
    assert caught.value.response.headers["Retry-After"] == "5"
    clock.advance(5)
    await client.chat_postMessage(channel=room, text="two")


async def test_files_carry_their_bytes(slack: FakeSlack, client: AsyncWebClient) -> None:
    room = slack.dm_with(ADA).room_id
    await client.files_upload_v2(channel=room, filename="screen.txt", content="long output", title="screen")
    assert list(slack.files.values()) == [b"long output"]
    assert slack.sent(room)[-1]["files"][0]["title"] == "screen"


async def test_a_ticket_opens_one_socket_only(slack: FakeSlack) -> None:
    web = AsyncWebClient(APP_TOKEN, base_url=f"{slack.url}/api/")
    url = (await web.apps_connections_open(app_token=APP_TOKEN))["url"]
    import aiohttp

    async with aiohttp.ClientSession() as session:
        async with session.ws_connect(url) as socket:
            assert (await socket.receive_json())["type"] == "hello"
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(url)
    await asyncio.sleep(0)
