"""The Slack channel against the strict fake: what approvers see, click and write, and what reaches the gate."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest
from tests.channels import prompts
from tests.channels.conftest import serving, slack_settings
from tests.channels.mini_hub import MiniHub
from tests.support.fake_slack import APP_TOKEN, BOT_TOKEN, FakeSlack

from atlasbridge.channels.slack.blocks import plain_text
from atlasbridge.channels.slack.channel import SlackChannel
from atlasbridge.core.clock import ManualClock, SystemClock
from atlasbridge.core.errors import ChannelError, StoreError
from atlasbridge.core.prompt.model import Receipt

ADA, BOB = "U0ADA", "U0BOB"


def rows(message: dict[str, Any]) -> list[list[str]]:
    found = [block for block in message["blocks"] if block["type"] == "actions"]
    return [[element["text"]["text"] for element in block["elements"]] for block in found]


def written(message: dict[str, Any]) -> str:
    """Everything a person reads in a message."""
    return json.dumps(message["blocks"], ensure_ascii=False)


async def test_a_prompt_is_asked_clicked_and_marked_as_answered(
    slack: FakeSlack, hub_api: MiniHub, slack_channel: SlackChannel
) -> None:
    ada = slack.person(ADA)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    await hub_api.ask(slack_channel, record)
    shown = ada.last()
    assert shown["text"] == "❓ “Continue? (y/n)” · project"  # the notification; the message does not say it twice
    assert shown["blocks"][0]["text"]["text"] == "❓ project asks:" and written(shown).count("Continue?") == 1
    assert "⏳ Expires in " in written(shown) and "— default: n" in written(shown)
    assert rows(shown) == [["✅ Yes"], ["❌ No"], ["⏩ Use default (n)", "🔎 Show all"]]
    click = ada.click(shown, "Yes")
    await slack.until(lambda: rows(ada.last()) == [], "the edit")
    assert click.acked
    reply = hub_api.answers[record.prompt_id]
    assert (reply.value, reply.identity, reply.nonce) == ("y", "slack:T0TEAM/U0ADA", record.nonce)
    assert ada.last()["blocks"][0]["text"]["text"].lower().startswith("✅ yes · ada · ")


async def test_hostile_text_is_quoted_and_never_read_as_markup(
    slack: FakeSlack, hub_api: MiniHub, slack_channel: SlackChannel
) -> None:
    ada = slack.person(ADA)
    await hub_api.ask(slack_channel, hub_api.add_prompt(hub_api.add_session(tool="<!channel>"), prompts.HOSTILE))
    quoted = [block for block in ada.last()["blocks"] if block["type"] == "rich_text"]
    assert quoted[0]["elements"][0]["type"] == "rich_text_preformatted"
    assert "^[[31mred<U+202E>gnp.exe" in quoted[0]["elements"][0]["elements"][0]["text"]
    assert "mrkdwn" not in written(ada.last()) and "<!channel>" not in ada.last()["text"]


async def test_a_modal_takes_free_text(slack: FakeSlack, hub_api: MiniHub, slack_channel: SlackChannel) -> None:
    ada = slack.person(ADA)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.TEXT)
    await hub_api.ask(slack_channel, record)
    ada.click(ada.last(), "Write an answer")
    await slack.until(lambda: slack.views, "the modal")
    assert ada.modal()["blocks"][1]["element"]["max_length"] == 20
    submitted = ada.submit("blue & <green>")
    await slack.until(lambda: record.prompt_id in hub_api.answers, "the answer")
    reply = hub_api.answers[record.prompt_id]
    assert (reply.value, reply.as_text, reply.nonce) == ("blue & <green>", True, record.nonce)
    await slack.until(lambda: submitted.acked, "the word that it arrived")


async def test_a_trigger_that_is_too_old_is_answered_with_another_way(slack: FakeSlack, hub_api: MiniHub) -> None:
    ada = slack.person(ADA)
    slack_channel = SlackChannel(slack_settings(slack), hub_api, SystemClock())
    async with serving(hub_api, slack_channel):
        await slack.until(lambda: slack.sockets, "the socket")
        await hub_api.ask(slack_channel, hub_api.add_prompt(hub_api.add_session(), prompts.TEXT))
        slack.fail("views.open", "status", status=500)
        ada.click(ada.last(), "Write an answer")
        await slack.until(lambda: "Reply in the thread" in written(ada.last()), "the other way")


async def test_an_event_is_acknowledged_before_it_is_worked_on(slack: FakeSlack) -> None:
    hub = MiniHub()
    ada = slack.person(ADA)
    channel = SlackChannel(slack_settings(slack), hub, SystemClock())
    await channel.start()  # and nobody ever takes a reply
    try:
        await slack.until(lambda: slack.sockets, "the socket")
        await hub.ask(channel, hub.add_prompt(hub.add_session(), prompts.YES_NO))
        click = ada.click(ada.last(), "Yes")
        await slack.until(lambda: click.acked, "the acknowledgement")
        assert hub.replies == [] and len(hub.inbox) == 1
    finally:
        await channel.close()


async def test_what_is_not_in_the_inbox_is_not_acknowledged_and_comes_again(slack: FakeSlack) -> None:
    class BrokenInbox(MiniHub):
        failures = 1

        async def accept_update(self, channel: str, update_id: str, payload: str) -> bool:
            if self.failures:
                self.failures -= 1
                raise StoreError("disk full")
            return await super().accept_update(channel, update_id, payload)

    hub = BrokenInbox()
    ada = slack.person(ADA)
    channel = SlackChannel(slack_settings(slack), hub, SystemClock())
    async with serving(hub, channel):
        await slack.until(lambda: slack.sockets, "the socket")
        record = hub.add_prompt(hub.add_session(), prompts.TEXT)
        await hub.ask(channel, record)
        ada.write("blue", thread=ada.last())
        await slack.until(lambda: record.prompt_id in hub.answers, "the answer, at the second try")
        mine = [e for e in slack.envelopes if e.payload.get("event", {}).get("text") == "blue"]
        await slack.until(lambda: mine[0].acked, "the acknowledgement")
    assert mine[0].attempts == 2


async def test_copies_of_an_event_and_of_a_click_have_no_effect(
    slack: FakeSlack, hub_api: MiniHub, slack_channel: SlackChannel
) -> None:
    ada = slack.person(ADA)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.TEXT)
    await hub_api.ask(slack_channel, record)
    ada.write("blue", thread=ada.last())
    await slack.until(lambda: record.prompt_id in hub_api.answers, "the answer")
    event = next(e for e in slack.envelopes if e.payload.get("event", {}).get("text") == "blue")
    copies = [slack.emit("events_api", event.payload) for _ in range(3)]
    await slack.until(lambda: all(copy.acked for copy in copies), "the acknowledgements")
    yes_no = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    await hub_api.ask(slack_channel, yes_no)
    click = ada.click(ada.last(), "Yes")
    again = slack.emit("interactive", click.payload)
    await slack.until(lambda: again.acked and yes_no.prompt_id in hub_api.answers, "the click")
    assert len(hub_api.replies) == 2


@pytest.mark.parametrize("how", ["disconnect", "cut", "down"])
async def test_the_connection_comes_back_after(
    slack: FakeSlack, hub_api: MiniHub, slack_channel: SlackChannel, how: str
) -> None:
    ada = slack.person(ADA)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.TEXT)
    await hub_api.ask(slack_channel, record)
    opened = len(slack.calls_of("apps.connections.open"))
    if how == "disconnect":
        slack.disconnect()
    elif how == "cut":
        slack.cut_sockets()
    else:
        slack.stop()
        slack.start()
    ada.write("blue", thread=ada.last())
    await slack.until(lambda: len(slack.calls_of("apps.connections.open")) > opened, "a new ticket")
    await slack.until(lambda: record.prompt_id in hub_api.answers, "the answer")


async def test_strangers_and_other_workspaces_are_told_nothing_and_logged_once(
    slack: FakeSlack, hub_api: MiniHub, slack_channel: SlackChannel, caplog: pytest.LogCaptureFixture
) -> None:
    ada, eve = slack.person(ADA), slack.person("U0EVE", "eve")
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    await hub_api.ask(slack_channel, record)
    before = len(ada.sees())
    eve.dm  # noqa: B018 - opens the room
    with caplog.at_level(logging.WARNING):
        clicks = [eve.click(ada.last(), "Yes", ada.dm), eve.click(ada.last(), "Yes", ada.dm)]
        eve.write("y")
        twin = slack.person(ADA, team_id="T0EVIL")  # the same user id in another workspace
        clicks.append(twin.click(ada.last(), "Yes"))
        await slack.until(lambda: all(click.acked for click in clicks), "the acknowledgements")
    assert hub_api.replies == [] and hub_api.inbox == {}
    assert eve.sees() == [] and len(ada.sees()) == before
    assert sum("U0EVE" in line for line in caplog.messages) == 1
    assert {fields["identity"] for _, fields in hub_api.notes} == {"slack:T0TEAM/U0EVE", "slack:T0EVIL/U0ADA"}


async def test_a_bot_of_another_workspace_is_refused_at_the_start(slack: FakeSlack, hub_api: MiniHub) -> None:
    channel = SlackChannel(slack_settings(slack, team_id="T0OTHER"), hub_api, SystemClock())
    async with serving(hub_api, channel):
        await slack.until(lambda: len(slack.calls_of("auth.test")) > 1, "the checks")
        assert "another workspace" in channel.health()["detail"]
        assert slack.sockets == []


async def test_a_forged_button_never_answers(slack: FakeSlack, hub_api: MiniHub, slack_channel: SlackChannel) -> None:
    ada = slack.person(ADA)
    one = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    two = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    await hub_api.ask(slack_channel, one)
    await hub_api.ask(slack_channel, two)
    first, second = ada.sees()
    button = second["blocks"][3]["elements"][0]
    forged = [
        ada.click_raw(first, button),
        ada.click_raw(second, button | {"value": button["value"].replace(two.nonce[:16], "0" * 16)}),
        ada.click_raw(second, button | {"value": button["value"].replace(two.session_id[:8], one.session_id[:8])}),
        ada.click_raw(second, button | {"value": "nonsense"}),
    ]
    await slack.until(lambda: all(click.acked for click in forged), "the acknowledgements")
    await slack.until(lambda: len(ada.sees()) == 6, "four refusals")
    assert hub_api.answers == {}


async def test_whoever_answered_in_words_is_named(slack: FakeSlack, hub_api: MiniHub) -> None:
    ada = slack.person(ADA)
    channel = SlackChannel(slack_settings(slack), hub_api, SystemClock())
    async with serving(hub_api, channel):
        await slack.until(lambda: slack.calls_of("users.info"), "the question for the name")
        await hub_api.ask(channel, hub_api.add_prompt(hub_api.add_session(), prompts.TEXT))
        ada.write("blue", thread=ada.last())
        await slack.until(lambda: "“blue” · Ada · " in str(ada.last()), "her name on the prompt")


async def test_a_channel_takes_part_only_when_opted_in_and_only_in_threads(slack: FakeSlack, hub_api: MiniHub) -> None:
    ada = slack.person(ADA)
    slack.room("C0TEAM", ADA)
    slack.room("C0OTHER", ADA)
    channel = SlackChannel(slack_settings(slack, channels=["C0TEAM"]), hub_api, SystemClock())
    async with serving(hub_api, channel):
        await slack.until(lambda: slack.sockets, "the socket")
        record = hub_api.add_prompt(hub_api.add_session(), prompts.TEXT)
        await hub_api.ask(channel, record)
        slack.pass_time(5)
        ada.write("chatter", "C0TEAM")
        ada.write("elsewhere", "C0OTHER")
        ada.write("blue", "C0TEAM", thread=ada.last("C0TEAM"))
        await slack.until(lambda: record.prompt_id in hub_api.answers, "the answer")
    assert [reply.value for reply in hub_api.replies] == ["blue"]
    assert slack.sent("C0OTHER") == []


async def test_an_outage_is_a_channel_error_and_edits_wait_for_its_end(
    slack: FakeSlack, hub_api: MiniHub, slack_channel: SlackChannel
) -> None:
    ada = slack.person(ADA)
    record = hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO)
    message_id = await hub_api.ask(slack_channel, record)
    slack.stop()
    await slack_channel.update_prompt(message_id, record, Receipt("withdrawn", "The tool moved on."))
    with pytest.raises(ChannelError, match="cannot be reached"):
        await hub_api.ask(slack_channel, hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO))
    slack.start()
    await slack.until(lambda: "↩ the tool moved on" in written(ada.sees()[0]), "the edit")


async def test_tokens_are_in_no_log(slack: FakeSlack, hub_api: MiniHub, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    slack.person(ADA)
    channel = SlackChannel(slack_settings(slack), hub_api, SystemClock())
    async with serving(hub_api, channel):
        slack.fail("apps.connections.open", "garbage", times=2)
        await slack.until(lambda: slack.sockets, "the socket")
        slack.fail("chat.postMessage", "cut_before")
        with pytest.raises(ChannelError):
            await hub_api.ask(channel, hub_api.add_prompt(hub_api.add_session(), prompts.YES_NO))
        slack.cut_sockets()
        await slack.until(lambda: len(slack.calls_of("apps.connections.open")) > 3, "a new ticket")
    for secret in (BOT_TOKEN, APP_TOKEN, BOT_TOKEN[-12:], APP_TOKEN[-12:], "link/ticket"):
        assert secret not in caplog.text


def test_settings_take_ids_only() -> None:
    good = {"bot_token": "xoxb-1", "app_token": "xapp-1", "team_id": "T0TEAM", "allowed_users": ["U012AB3CD"]}
    assert SlackChannel(good, MiniHub(ManualClock()), ManualClock()).name == "slack"
    bad: dict[str, Any]
    for bad in (
        {"allowed_users": ["ada"]},
        {"allowed_users": ["u012"]},
        {"allowed_users": []},
        {"allowed_users": ["U0 OR 1"]},
        {"team_id": "team"},
        {"channels": ["#general"]},
    ):
        with pytest.raises(ValueError):
            SlackChannel(good | bad, MiniHub(ManualClock()), ManualClock())


@pytest.mark.parametrize(
    ("raw", "typed"),
    [
        ("a &amp; b &lt;c&gt;", "a & b <c>"),
        ("see <https://a.example|a.example>", "see a.example"),
        ("see <https://a.example>", "see https://a.example"),
        ("&amp;lt;", "&lt;"),
    ],
)
def test_slack_text_is_read_as_it_was_typed(raw: str, typed: str) -> None:
    assert plain_text(raw) == typed


async def test_closing_ends_in_time_even_when_slack_hangs(slack: FakeSlack, hub_api: MiniHub) -> None:
    slack.person(ADA)
    slack.fail("*", "slow", seconds=60.0, times=1000)
    channel = SlackChannel(slack_settings(slack), hub_api, SystemClock())
    await channel.start()
    await channel.notify("never arrives")
    await slack.until(lambda: slack.calls, "a request")
    await asyncio.wait_for(channel.close(), 10)


async def test_a_reply_whose_acknowledgement_is_lost_counts_all_the_same(slack: FakeSlack, hub_api: MiniHub) -> None:
    ada = slack.person(ADA)
    channel = SlackChannel(slack_settings(slack), hub_api, SystemClock())
    async with serving(hub_api, channel):
        await slack.until(lambda: slack.sockets, "the socket")
        record = hub_api.add_prompt(hub_api.add_session(), prompts.TEXT)
        await hub_api.ask(channel, record)
        slack.silent_to_acks = True
        ada.write("blue", thread=ada.last())
        await slack.until(lambda: record.prompt_id in hub_api.answers, "the answer")
        event = slack.envelopes[-1]
        await slack.until(lambda: event.attempts >= 2, "the event once more")
        slack.silent_to_acks = False
        await slack.until(lambda: event.acked, "the acknowledgement")
    assert len(hub_api.replies) == 1
