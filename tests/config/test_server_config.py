"""The file of `fleet serve --config`: what it may say, and that every fault is told with what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from atlasbridge.bootstrap import plan_server_chats
from atlasbridge.core.errors import ConfigError

TELEGRAM = '[channels.telegram]\nbot_token = "env:BOT"\n'
WHO = {"telegram": ("telegram:1001", "telegram:1002")}


def write(folder: Path, text: str) -> Path:
    path = folder / "hub.toml"
    path.write_text(text)
    return path


def test_who_has_an_identity_takes_part_and_a_token_comes_from_the_environment(tmp_path: Path) -> None:
    plan = plan_server_chats(write(tmp_path, TELEGRAM), {"BOT": "1:x"}, WHO)
    (channel,) = plan.channels
    assert channel.name == "telegram" and channel.personal and "1001, 1002" in channel.key and plan.idle == ()


def test_a_channel_in_which_nobody_takes_part_is_left_out_and_named(tmp_path: Path) -> None:
    plan = plan_server_chats(write(tmp_path, TELEGRAM), {}, {})
    assert plan.channels == () and plan.idle == ("telegram",)


def test_people_of_another_workspace_do_not_take_part(tmp_path: Path) -> None:
    table = '[channels.slack]\nbot_token = "b"\napp_token = "a"\nteam_id = "T1"\n'
    plan = plan_server_chats(write(tmp_path, table), {}, {"slack": ("slack:T1/U1", "slack:T2/U2")})
    assert "'U1'" in plan.channels[0].key and "U2" not in plan.channels[0].key


def test_steps_of_an_escalation_name_people_and_teams(tmp_path: Path) -> None:
    text = TELEGRAM + '[[escalation]]\nname = "l"\nsteps = [{ who = ["ada", "@ops"], channels = ["telegram"] }]\n'
    plan = plan_server_chats(write(tmp_path, text), {"BOT": "1:x"}, WHO)
    assert plan.policy.attention.escalation[0].steps[0].who == ("ada", "@ops")


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("[[people]]\nname = 'a'\n", "people of a hub stand in its database", "fleet people add"),
        ("[hub]\nlog_level = 'info'\n", "hub is no setting of a hub", "channels"),
        ("[prompts]\ntimeout_seconds = 5\n", "prompts.timeout_seconds is no setting", "is set on each machine"),
        (TELEGRAM + "allowed_users = [5]\n", "allowed_users", "fleet people identity NAME telegram"),
        ("[channels.web]\nport = 1\n", "the channel web belongs to one machine", "remove"),
        ("[channels.pigeon]\n", "there is no channel named 'pigeon'", "telegram"),
        (TELEGRAM + "poll_timeout_s = 0\n", "line 3: channels.telegram.poll_timeout_s", "poll"),
        (TELEGRAM, "BOT", ""),
        (TELEGRAM + "[[escalation]]\nname = 'l'\nsteps = [{ channels = ['fax'] }]\n", "no channel 'fax'", "away"),
        ("[channels.telegram\n", "line 1", "edit"),
    ],
)
def test_a_fault_says_where_it_is_and_what_to_do(tmp_path: Path, text: str, said: str, hint: str) -> None:
    environ = {} if text == TELEGRAM else {"BOT": "1:x"}
    with pytest.raises(ConfigError) as caught:
        plan_server_chats(write(tmp_path, text), environ, WHO)
    assert said in str(caught.value) and hint in caught.value.hint


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no file"):
        plan_server_chats(tmp_path / "hub.toml", {}, {})
