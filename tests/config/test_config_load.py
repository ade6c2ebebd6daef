"""The configuration: every fault is named with its line, its setting and what is allowed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from atlasbridge.bootstrap import load_configuration, plan_hub
from atlasbridge.channels.registry import ChannelRegistry, channel_settings
from atlasbridge.config.load import Configuration, setting_paths, table_model, variable
from atlasbridge.config.model import AtlasBridgeConfig
from atlasbridge.config.session import HIDDEN, hide_secrets, part_for_sessions, read_session_config
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.home import Home
from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.session.settings import SessionSettings

TELEGRAM = '[channels.telegram]\nbot_token = "123:abc"\nallowed_users = [42]\n'


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def load(home: Home, text: str, **environ: str) -> Configuration:
    home.config.write_text(text)
    return load_configuration(home, environ)


def test_without_a_file_everything_has_its_default(home: Home) -> None:
    found = load_configuration(home, {})
    assert found.general == AtlasBridgeConfig()
    assert list(found.channels) == ["web"]


@pytest.mark.parametrize(
    ("text", "where", "what", "hint"),
    [
        ("[prompts]\ntimeout_seconds = 0\n", "line 2", "prompts.timeout_seconds should be greater than 0", "600"),
        ("[prompts]\n\ntimout_seconds = 5\n", "line 3", "no setting prompts.timout_seconds", "timeout_seconds?"),
        ("[prompts.safe_default]\nyes_no = 'y'\n", "line 2", "prompts.safe_default.yes_no", "`y` is refused"),
        ('[hub]\nlog_level = "loud"\n', "line 2", "hub.log_level should be 'debug', 'info'", "hub.log"),
        ("[hub]\nlog_backups = 'many'\n", "line 2", "hub.log_backups should be a valid integer", "3"),
        ("[nonsense]\na = 1\n", "line 1", "no setting nonsense", "known here: prompts"),
        ("prompts = 3\n", "line 1", "prompts should be a valid dictionary", ""),
        ("[prompts\n", "line 1", "expected", "config.toml"),
        ("[channels.pigeon]\n", "line 1", "no channel named 'pigeon'", "telegram"),
        ("[channels.web]\ncolour = 1\n", "line 2", "no setting channels.web.colour", "known here"),
        ('[channels.telegram]\nbot_token = "x"\nallowed_users = ["@me"]\n', "line 3", "allowed_users", ""),
        ("[channels.telegram]\nallowed_users = [1]\n", "line 1", "channels.telegram.bot_token is missing", ""),
    ],
)
def test_a_fault_names_line_setting_and_what_is_allowed(
    home: Home, text: str, where: str, what: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(home, text)
    assert str(caught.value).startswith(f"config.toml {where}: "), str(caught.value)
    assert what in str(caught.value)
    assert hint in caught.value.hint
    assert caught.value.exit_code == 2


def test_grants_of_an_earlier_file_are_refused_with_their_successor(home: Home) -> None:
    with pytest.raises(ConfigError, match="there is no setting grants") as caught:
        load(home, '[[grants]]\ntool = "a"\n')
    assert "policy.toml took its place" in caught.value.hint


DOCUMENTED = """
channel = "telegram"
bot_token = "123456:AAbbCCddEEffGGhhIIjjKKllMMnnOOppQQr"
allowed_users = [123456789]
timeout_seconds = 900
free_text_enabled = false
detection_threshold = 0.7
stuck_timeout_seconds = 3.0
stuck_poll_interval_seconds = 0.5
buffer_size_bytes = 8192
inject_settle_ms = 150
injection_timeout_seconds = 4.0
task_timeout_seconds = 20.0
max_task_restarts = 2
session_max_age_hours = 24
"""


def test_settings_without_a_table_as_the_design_documents_write_them_are_understood(home: Home) -> None:
    found = load(home, DOCUMENTED)
    general = found.general
    assert (general.prompts.timeout_seconds, general.prompts.free_text_enabled) == (900, False)
    assert (general.detection.detection_threshold, general.detection.buffer_size_bytes) == (0.7, 8192)
    assert (general.session.inject_settle_ms, general.session.max_task_restarts) == (150, 2)
    assert general.retention.session_max_age_hours == 24
    assert found.channels["telegram"]["allowed_users"] == [123456789]
    assert len(found.hints) == len(DOCUMENTED.split("\n")) - 2
    assert "config.toml line 5: timeout_seconds is understood; its name today is prompts.timeout_seconds" in found.hints


def test_a_channels_table_may_stand_outside_of_channels(home: Home) -> None:
    found = load(home, '[telegram]\nbot_token = "1:x"\nallowed_users = [7]\n')
    assert found.channels["telegram"]["allowed_users"] == [7]
    assert "channels.telegram" in found.hints[0]


def test_a_file_with_todays_names_gets_no_hint(home: Home) -> None:
    assert load(home, "[prompts]\ntimeout_seconds = 900\n").hints == ()


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ("timeout_seconds = 0\n", "config.toml line 1: prompts.timeout_seconds should be greater", "600"),
        ("timeout_seconds = 5\n[prompts]\ntimeout_seconds = 6\n", "line 1: timeout_seconds and prompts.timeout", "one"),
        ("reminder_seconds = 5\n", "line 1: there is no setting reminder_seconds", "mean prompts.reminder_seconds?"),
        ('channel = "pigeon"\n', "line 1: there is no channel named 'pigeon'", "telegram"),
    ],
)
def test_a_fault_in_a_setting_without_a_table_is_named(home: Home, text: str, what: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(home, text)
    assert what in str(caught.value) and hint in caught.value.hint


def test_the_environment_is_laid_over_the_file(home: Home) -> None:
    found = load(home, "[prompts]\ntimeout_seconds = 5\n", ATLASBRIDGE_PROMPTS_TIMEOUT_SECONDS="9.5")
    assert found.general.prompts.timeout_seconds == 9.5


def test_a_fault_in_the_environment_names_the_variable(home: Home) -> None:
    with pytest.raises(ConfigError, match=r"^ATLASBRIDGE_HUB_LOG_LEVEL: hub\.log_level"):
        load(home, "", ATLASBRIDGE_HUB_LOG_LEVEL="loud")
    with pytest.raises(ConfigError, match="ATLASBRIDGE_PROMPTS_TIMEOUT is not a setting"):
        load(home, "", ATLASBRIDGE_PROMPTS_TIMEOUT="3")


def test_a_channel_can_be_set_up_by_the_environment_alone(home: Home) -> None:
    found = load(
        home,
        "",
        ATLASBRIDGE_CHANNELS_TELEGRAM_BOT_TOKEN="123:abc",
        ATLASBRIDGE_CHANNELS_TELEGRAM_ALLOWED_USERS="[42]",
        ATLASBRIDGE_CHANNELS_WEB_ENABLED="false",
    )
    assert list(found.channels) == ["telegram"]
    assert found.channels["telegram"]["bot_token"] == "123:abc"


def test_secrets_may_stand_in_a_variable_or_a_private_file(home: Home, tmp_path: Path) -> None:
    text = TELEGRAM.replace("123:abc", "env:MY_TOKEN")
    assert load(home, text, MY_TOKEN="99:x").channels["telegram"]["bot_token"] == "99:x"
    with pytest.raises(ConfigError, match="MY_TOKEN, which is not set"):
        load(home, text)
    file = tmp_path / "token"
    file.write_text("77:y\n")
    text = TELEGRAM.replace("123:abc", f"file:{file}")
    file.chmod(0o644)
    with pytest.raises(ConfigError, match="other users can read"):
        load(home, text)
    file.chmod(0o600)
    assert load(home, text).channels["telegram"]["bot_token"] == "77:y"


def test_a_secret_of_another_user_may_be_there_for_this_ones_group(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a pod: root's, and readable for the group of the process alone."""
    file = tmp_path / "token"
    file.write_text("77:y\n")
    text = TELEGRAM.replace("123:abc", f"file:{file}")
    monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)
    file.chmod(0o440)
    assert load(home, text).channels["telegram"]["bot_token"] == "77:y"
    file.chmod(0o444)
    with pytest.raises(ConfigError, match="other users can read"):
        load(home, text)


def test_a_bad_token_is_never_repeated_in_the_error(home: Home) -> None:
    with pytest.raises(ConfigError) as caught:
        load(home, "[channels.telegram]\nbot_token = 12345678\nallowed_users = [1]\n")
    assert "12345678" not in str(caught.value)


def test_shown_settings_hide_what_has_a_secrets_name() -> None:
    shown = hide_secrets({"a": [{"bot_token": "x", "port": 1}], "app_token": "", "password": "y"})
    assert shown == {"a": [{"bot_token": HIDDEN, "port": 1}], "app_token": "", "password": HIDDEN}


def test_people_and_defaults_reach_the_hub(home: Home) -> None:
    home.config.write_text(TELEGRAM + '[prompts.safe_default]\nyes_no = "none"\n')
    plan = plan_hub(home, {})
    policy = plan.settings.policy
    assert policy.allowed == {"telegram": frozenset({"telegram:42"}), "web": None}
    assert PromptType.TYPE_YES_NO not in policy.timer_types and PromptType.TYPE_CONFIRM_ENTER in policy.timer_types
    assert [(channel.name, channel.remote) for channel in plan.channels] == [
        ("local", False),
        ("telegram", True),
        ("web", False),
    ]


def test_a_session_reads_its_settings_without_the_full_model_once_they_were_checked(home: Home) -> None:
    home.config.write_text("[session]\nkill_grace_seconds = 1.5\n[detection]\nsettle_ms = 80\n")
    checked = []

    def read() -> dict[str, Any]:
        checked.append(1)
        return part_for_sessions(load_configuration(home, {}))

    for _ in range(2):
        found = read_session_config(home, {}, read)
        assert found.settings.kill_grace_s == 1.5 and found.detection["settle_ms"] == 80
    assert len(checked) == 1
    home.config.write_text("[session]\nkill_grace_seconds = 2\n")
    assert read_session_config(home, {}, read).settings.kill_grace_s == 2
    assert len(checked) == 2
    (home.root / "config.checked").write_text("1234 an older version")
    assert read_session_config(home, {}, read).settings.kill_grace_s == 2


def test_the_light_settings_agree_with_the_full_model() -> None:
    light, full = SessionSettings(), AtlasBridgeConfig()
    assert light.kill_grace_s == full.session.kill_grace_seconds
    assert light.detach_key == full.session.detach_key
    assert light.effect_timeout_s == full.session.effect_timeout_seconds
    assert light.step_timeout_s == full.session.step_timeout_seconds
    assert light.task_timeout_seconds == full.session.task_timeout_seconds
    assert light.max_task_restarts == full.session.max_task_restarts
    assert light.restart_delay_s == full.session.task_restart_delay_seconds
    assert light.injection_timeout_seconds == full.session.injection_timeout_seconds
    assert light.inject_settle_ms == full.session.inject_settle_ms
    assert light.ring_bytes == full.detection.buffer_size_bytes


def test_every_setting_has_a_variable_of_its_own() -> None:
    paths = setting_paths(AtlasBridgeConfig)
    for name in ("web", "telegram"):
        paths += setting_paths(table_model(name, channel_settings(name)), ("channels", name))
    names = [variable(path) for path in paths]
    assert len(names) == len(set(names))


def test_every_built_in_channel_can_say_what_its_settings_are() -> None:
    for name in ChannelRegistry.names():
        assert "enabled" in table_model(name, channel_settings(name)).model_fields


def test_people_of_a_workspace_are_named_with_it(home: Home) -> None:
    home.config.write_text(
        '[channels.slack]\nbot_token = "xoxb-1"\napp_token = "xapp-1"\nteam_id = "T1"\nallowed_users = ["U2"]\n'
    )
    assert plan_hub(home, {}).settings.policy.allowed["slack"] == frozenset({"slack:T1/U2"})


PEOPLE = TELEGRAM + '[[people]]\nname = "Ana"\nidentities = ["telegram:42", "cli:local"]\nquiet = ["22:00-07:00"]\n'


def test_people_have_one_name_for_all_their_identities(home: Home) -> None:
    home.config.write_text(PEOPLE + 'zone = "Europe/Berlin"\n')
    book = plan_hub(home, {}).settings.policy.attention.people
    assert book.person_of("telegram:42") == book.person_of("cli:local") == "Ana"
    assert book.person_of("telegram:43") == "telegram:43"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (PEOPLE.replace("telegram:42", "telegram:24"), "'telegram:24' may not answer in telegram"),
        (PEOPLE.replace("telegram:42", "ana"), "'ana' is not an identity"),
        (PEOPLE.replace("22:00", "22"), "is no time of day"),
        (PEOPLE + 'zone = "Mars"\n', "no time zone 'Mars'"),
        (PEOPLE + '[[people]]\nname = "Bo"\nidentities = ["cli:local"]\n', "belongs to 'Ana' and to 'Bo'"),
        (PEOPLE + '[[escalation]]\nname = "x"\nsteps = [{who = ["Cy"]}]\n', "no person named 'Cy'"),
        (PEOPLE + '[[escalation]]\nname = "x"\nsteps = [{channels = ["fax"]}]\n', "no channel 'fax'"),
    ],
)
def test_a_slip_in_people_or_escalations_stops_the_start(home: Home, text: str, what: str) -> None:
    home.config.write_text(text)
    with pytest.raises(ConfigError) as caught:
        plan_hub(home, {})
    assert what in str(caught.value) and caught.value.hint


def test_an_escalation_policy_of_a_person_s_own_is_taken_over(home: Home) -> None:
    steps = 'steps = [{channels = ["here"]}, {after_seconds = 30, who = ["Ana"]}]\n'
    text = f'[[escalation]]\nname = "prod"\nfolder = "~/prod/*"\nurgent = true\n{steps}'
    home.config.write_text(PEOPLE + text)
    (escalation_policy,) = plan_hub(home, {}).settings.policy.attention.escalation
    assert (
        escalation_policy.urgent
        and escalation_policy.folder.startswith("/")
        and [step.after_s for step in escalation_policy.steps] == [0, 30]
    )


def test_the_older_words_for_escalation_are_understood(home: Home) -> None:
    home.config.write_text(PEOPLE + '[[ladders]]\nname = "prod"\nsteps = [{channels = ["desk"]}]\n')
    (policy,) = plan_hub(home, {}).settings.policy.attention.escalation
    assert policy.name == "prod" and policy.steps[0].channels == ("here",)
