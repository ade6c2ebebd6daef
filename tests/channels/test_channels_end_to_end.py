"""A real tool under a real hub, asked on a phone and in Slack: from the question in a terminal to the key typed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.fake_slack import APP_TOKEN, BOT_TOKEN, TEAM, FakeSlack
from tests.support.fake_telegram import FakeTelegram
from tests.support.hubs import NO_WEB, HubProcess, hub_process
from tests.support.sessions import stop_process
from tests.support.waiting import wait_for

ADA = 1001
QUESTION = "import sys; a = input('Delete the build folder? (y/n) '); open(sys.argv[1], 'a').write('got ' + a + '\\n')"
TWO = (
    "import sys; out = open(sys.argv[1], 'a', buffering=1)\n"
    "out.write('1 ' + input('Continue? (y/n) ') + '\\n')\n"
    "out.write('2 ' + input('Enter your name: ') + '\\n')\n"
)


def config(telegram: FakeTelegram, slack: FakeSlack) -> str:
    return NO_WEB + (
        f'[channels.telegram]\nbot_token = "{telegram.token}"\nallowed_users = [{ADA}]\napi_url = "{telegram.url}"\n'
        f"backoff_first_s = 0.1\nmessages_per_s = 100\n"
        f'[channels.slack]\nbot_token = "{BOT_TOKEN}"\napp_token = "{APP_TOKEN}"\nteam_id = "{TEAM}"\n'
        f'allowed_users = ["U0ADA"]\napi_url = "{slack.url}/api/"\nbackoff_first_s = 0.1\nmessages_per_s = 100\n'
    )


@pytest.fixture
def hub(server: FakeTelegram, slack: FakeSlack) -> Iterator[HubProcess]:
    server.person(ADA)
    slack.person("U0ADA")
    with hub_process(config(server, slack)) as made:
        wait_for(lambda: all(channel["state"] == "ok" for channel in made.ask("status")["channels"]))
        yield made


def run_tool(hub: HubProcess, script: str, answers: Path) -> str:
    done = hub.cli("run", "--detach", "--", sys.executable, "-c", script, str(answers))
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[-1]


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def asked(messages: list[dict[str, Any]], words: str) -> dict[str, Any] | None:
    found = [message for message in messages if words in str(message) and "⏳ Expires in" in str(message)]
    return found[-1] if found else None


def test_a_tap_on_the_phone_types_the_answer_and_slack_hears_who(
    hub: HubProcess, server: FakeTelegram, slack: FakeSlack, tmp_path: Path
) -> None:
    ada, work = server.person(ADA), slack.person("U0ADA")
    answers = tmp_path / "answers"
    run_tool(hub, QUESTION, answers)
    shown = server.wait_for(lambda: asked(ada.sees(), "Delete the build folder?"), "the question on the phone")
    slack.wait_for(lambda: asked(work.sees(), "Delete the build folder?"), "the question in Slack")
    tap = ada.tap(shown, "Yes")
    wait_for(lambda: read(answers) == "got y\n")
    server.wait_for(lambda: tap.answered, "the toast")
    server.wait_for(lambda: not asked(ada.sees(), "Delete the build folder?"), "the edit on the phone")
    slack.wait_for(lambda: not asked(work.sees(), "Delete the build folder?"), "the edit in Slack")
    assert any("telegram:1001" in str(message) or "Ada" in str(message) for message in work.sees())
    health = {channel["name"]: channel["state"] for channel in hub.json("hub", "status")["channels"]}
    assert health["telegram"] == health["slack"] == "ok"
    assert server.token not in hub.home.log.read_text()


def test_a_click_and_a_thread_in_slack_answer_two_prompts_in_a_row(
    hub: HubProcess, server: FakeTelegram, slack: FakeSlack, tmp_path: Path
) -> None:
    work = slack.person("U0ADA")
    answers = tmp_path / "answers"
    run_tool(hub, TWO, answers)
    work.click(slack.wait_for(lambda: asked(work.sees(), "Continue?"), "the first question"), "No")
    wait_for(lambda: read(answers) == "1 n\n")
    question = slack.wait_for(lambda: asked(work.sees(), "Enter your name"), "the second question")
    work.write("Grace &amp; Ada", thread=question)
    wait_for(lambda: read(answers) == "1 n\n2 Grace & Ada\n")


def test_a_dead_telegram_delays_nobody(hub: HubProcess, server: FakeTelegram, slack: FakeSlack, tmp_path: Path) -> None:
    server.stop()
    work = slack.person("U0ADA")
    answers = tmp_path / "answers"
    run_tool(hub, QUESTION, answers)
    work.click(slack.wait_for(lambda: asked(work.sees(), "Delete the build folder?"), "the question"), "Yes")
    wait_for(lambda: read(answers) == "got y\n")
    server.start()


def test_a_prompt_raised_in_an_outage_is_delivered_after_it(
    hub: HubProcess, server: FakeTelegram, slack: FakeSlack, tmp_path: Path
) -> None:
    ada = server.person(ADA)
    server.stop()
    answers = tmp_path / "answers"
    run_tool(hub, QUESTION, answers)
    wait_for(hub.is_asked)
    server.start()
    ada.tap(server.wait_for(lambda: asked(ada.sees(), "Delete the build folder?"), "the question"), "No")
    wait_for(lambda: read(answers) == "got n\n")


def test_a_hub_that_was_killed_takes_up_the_tap_that_came_meanwhile(
    hub: HubProcess, server: FakeTelegram, slack: FakeSlack, tmp_path: Path
) -> None:
    ada = server.person(ADA)
    answers = tmp_path / "answers"
    run_tool(hub, QUESTION, answers)
    shown = server.wait_for(lambda: asked(ada.sees(), "Delete the build folder?"), "the question")
    os.kill(hub.pid, signal.SIGKILL)
    ada.tap(shown, "Yes")
    ada.tap(shown, "Yes")
    hub.start()
    wait_for(lambda: read(answers) == "got y\n")
    server.wait_for(lambda: server.unconfirmed() == 0, "every confirmation")
    assert read(answers) == "got y\n"


def test_a_click_acknowledged_by_a_hub_that_is_killed_before_it_could_type_is_typed_once_by_the_next(
    hub: HubProcess, slack: FakeSlack, tmp_path: Path
) -> None:
    work, answers = slack.person("U0ADA"), tmp_path / "answers"
    session_id = run_tool(hub, QUESTION, answers)
    shown = slack.wait_for(lambda: asked(work.sees(), "Delete the build folder?"), "the question")
    (session,) = [one for one in hub.json("ps") if one["session_id"].startswith(session_id)]
    hub.kill_9()
    stop_process(session["host_pid"])  # nobody can type while the next hub lives
    try:
        hub.start()
        slack.wait_for(lambda: slack.sockets, "the socket")
        click = work.click(shown, "Yes")
        slack.wait_for(lambda: click.acked, "the acknowledgement")
        hub.kill_9()
    finally:
        os.kill(session["host_pid"], signal.SIGCONT)
    assert read(answers) == ""
    hub.start()
    wait_for(lambda: read(answers) == "got y\n")
    slack.wait_for(lambda: not asked(work.sees(), "Delete the build folder?"), "the edit")
    assert read(answers) == "got y\n"
