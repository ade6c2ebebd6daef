"""What can be said to the bot in Slack: with `!` in its direct messages, or as a slash command from anywhere."""

from __future__ import annotations

from tests.channels import prompts
from tests.channels.mini_hub import MiniHub
from tests.support.fake_slack import FakeSlack
from tests.support.fake_slack_person import Person

from atlasbridge.channels.slack.channel import SlackChannel


async def say(slack: FakeSlack, ada: Person, text: str, expect: str) -> str:
    count = len(ada.sees())
    ada.write(text)
    await slack.until(lambda: any(expect in str(one) for one in ada.sees()[count:]), f"{expect!r} after {text!r}")
    return str(ada.last())


async def test_sessions_and_status_list_what_runs_and_waits(
    slack: FakeSlack, hub_api: MiniHub, slack_channel: SlackChannel
) -> None:
    ada = slack.person("U0ADA")
    session = hub_api.add_session()
    hub_api.add_prompt(session, prompts.YES_NO)
    shown = await say(slack, ada, "!sessions", session.session_id[:8])
    assert "project · Claude Code · waits for you" in shown
    assert "Continue? (y/n)" in await say(slack, ada, "!status", "waiting for your answer")
    assert "!mute 30m" in await say(slack, ada, "!help", "!sessions")
    assert "!help" in await say(slack, ada, "!dance", "Unknown command: !dance")
    assert hub_api.replies == []  # none of it was taken for an answer


async def test_plain_words_go_where_the_person_switched_to(
    slack: FakeSlack, hub_api: MiniHub, slack_channel: SlackChannel
) -> None:
    ada = slack.person("U0ADA")
    first, second = hub_api.add_session(), hub_api.add_session(tool="codex")
    mine, other = hub_api.add_prompt(first, prompts.TEXT), hub_api.add_prompt(second, prompts.TEXT)
    for record in (mine, other):
        await hub_api.ask(slack_channel, record)
    slack.pass_time(5)
    await say(slack, ada, "blue", "Which one do you mean?")
    await say(slack, ada, f"!switch {second.session_id[:8]}", "Messages now go to project (Codex)")
    ada.write("green")
    await slack.until(lambda: other.prompt_id in hub_api.answers, "the answer")
    await say(slack, ada, "!switch off", "no longer go to one session")
    assert mine.prompt_id not in hub_api.answers


async def test_the_screen_comes_in_a_message_or_as_a_file(
    slack: FakeSlack, hub_api: MiniHub, slack_channel: SlackChannel
) -> None:
    ada = slack.person("U0ADA")
    session = hub_api.add_session()
    hub_api.screens[session.session_id] = {"text": "$ make\nall good"}
    await say(slack, ada, "!screen", "all good")
    hub_api.screens[session.session_id] = {"text": "long line\n" * 1000}
    ada.write("!screen")
    await slack.until(lambda: slack.files, "the file")
    assert b"long line" in next(iter(slack.files.values()))


async def test_muting_keeps_notices_away_but_never_prompts(
    slack: FakeSlack, hub_api: MiniHub, slack_channel: SlackChannel
) -> None:
    ada = slack.person("U0ADA")
    session = hub_api.add_session()
    await say(slack, ada, "!mute 30m", "Muted for 30m")
    await slack_channel.notify("Session ended", session)
    await hub_api.ask(slack_channel, hub_api.add_prompt(session, prompts.YES_NO))
    await say(slack, ada, "!mute off", "No longer muted")
    assert not any("Session ended" in str(message) for message in ada.sees())
    assert any("Continue?" in str(message) for message in ada.sees())


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
