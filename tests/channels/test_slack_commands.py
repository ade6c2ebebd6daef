"""What can be said to the bot in Slack: with `!` in its direct messages, or as a slash command from anywhere."""

from __future__ import annotations

from tests.channels.mini_hub import MiniHub
from tests.support.fake_slack import FakeSlack
from tests.support.fake_slack_person import Person

from atlasbridge.channels.slack.channel import SlackChannel


async def say(slack: FakeSlack, ada: Person, text: str, expect: str) -> str:
    count = len(ada.sees())
    ada.write(text)
    await slack.until(lambda: any(expect in str(one) for one in ada.sees()[count:]), f"{expect!r} after {text!r}")
    return str(ada.last())


async def test_a_slash_command_is_acknowledged_and_answered_in_the_direct_messages(
    slack: FakeSlack, hub_api: MiniHub, slack_channel: SlackChannel
) -> None:
    ada = slack.person("U0ADA")
    session = hub_api.add_session()
    said = ada.slash("sessions")
    await slack.until(lambda: session.session_id[:8] in str(ada.sees()), "the list")
    ada.slash("", command="/status")
    await slack.until(lambda: "Nothing is waiting" in str(ada.sees()), "the status")
    ada.slash("")
    await slack.until(lambda: "!sessions:" in str(ada.sees()), "the help")
    assert said.acked


async def test_a_stranger_gets_no_answer_to_a_command(
    slack: FakeSlack, hub_api: MiniHub, slack_channel: SlackChannel
) -> None:
    hub_api.add_session()
    eve, far = slack.person("U0EVE", "eve"), slack.person("U0ADA", team_id="T0OTHER")
    told = [eve.slash("sessions"), far.slash("sessions")]
    await slack.until(lambda: all(one.acked for one in told), "the acknowledgements")
    assert not slack.calls_of("chat.postMessage") and len(hub_api.notes) == 2
