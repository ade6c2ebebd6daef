"""Whatever `config get` says is what `run`, the hub and the fleet use: for every key and every spelling."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.tier import examples

from atlasbridge.bootstrap import channel_names, load_configuration, plan_hub, plan_server_chats, settle_session
from atlasbridge.channels.registry import channel_settings
from atlasbridge.cli.run import UsageError, parse_run
from atlasbridge.config.load import setting_paths, variable
from atlasbridge.config.model import AtlasBridgeConfig
from atlasbridge.config.server import PROMPTS, load_server_config
from atlasbridge.config.session import FIELDS, apart, part_for_sessions, read_session_config
from atlasbridge.core.clock import parse_duration
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.home import Home
from atlasbridge.core.session.settings import Plan

KEYS = [path for path in setting_paths(AtlasBridgeConfig) if path[0] not in ("channels", "grants", "launchers")]
HUB = {
    ("prompts", "timeout_seconds"): lambda plan: plan.settings.policy.prompt_ttl_s,
    ("prompts", "idle_timeout_seconds"): lambda plan: plan.settings.policy.idle_ttl_s,
    ("prompts", "free_text_enabled"): lambda plan: plan.settings.policy.free_text_enabled,
    ("prompts", "notify_idle"): lambda plan: plan.settings.policy.notify_idle,
    ("prompts", "reminder_seconds"): lambda plan: plan.settings.policy.reminder_s,
    ("prompts", "max_reminders"): lambda plan: plan.settings.policy.max_reminders,
    ("prompts", "replies_per_minute"): lambda plan: plan.settings.rate_limit_per_minute,
    ("hub", "channel_timeout_seconds"): lambda plan: plan.settings.worker.call_timeout_s,
    ("hub", "type_timeout_seconds"): lambda plan: plan.settings.type_timeout_s,
    ("hub", "host_lost_seconds"): lambda plan: plan.settings.host_lost_s,
    ("hub", "graceful_timeout_seconds"): lambda plan: plan.settings.graceful_timeout_s,
    ("retention", "cleanup_every_seconds"): lambda plan: plan.settings.cleanup_every_s,
    ("retention", "prompts_days"): lambda plan: plan.settings.retention.prompts_s / 86_400,
    ("retention", "session_max_age_hours"): lambda plan: plan.settings.retention.listed_s / 3600,
    ("attention", "digest_seconds"): lambda plan: plan.settings.policy.attention.digest_s,
    ("attention", "notices_per_hour"): lambda plan: plan.settings.policy.attention.notices_per_hour,
}


def spell(number: int) -> list[str]:
    """One number in the ways in which people and programs write it."""
    plain = [str(number), f" {number} ", f"+{number}", f"{number}.0", f"{number / 1000}e3", f"{number:_}"]
    other = [f"0x{number:x}", f"0o{number:o}", f"0b{number:b}", f'"{number}"', f"'{number}'", f'" {number} "']
    return plain + other + [f"{number}s", f'"{number}m"', f"{number}ms", "true", " false", "yes", '"off"', "nan", "-1"]


@st.composite
def spellings(draw: st.DrawFn) -> str:
    number = draw(st.one_of(st.integers(0, 200), st.integers(0, 100_000)))
    return draw(st.sampled_from([*spell(number), "^] d", '"^] d"', "^]d", "", '""', "[]", '["a"]', "debug", '"info"']))


def read(home: Home, environ: dict[str, str], path: tuple[str, ...]) -> Any:
    """As `config get` shows it."""
    found: Any = load_configuration(home, environ).general.model_dump(mode="json")
    for part in path:
        found = found[part]
    return found


def run_uses(home: Home, environ: dict[str, str], path: tuple[str, ...]) -> Any:
    config = read_session_config(home, environ, lambda: part_for_sessions(load_configuration(home, environ)))
    if path[0] == "detection" and path not in FIELDS:
        return config.detection[path[1]]
    return getattr(config.settings, FIELDS[path[0], path[1]])


def fleet_uses(file: Path, environ: dict[str, str], path: tuple[str, ...]) -> Any:
    config, _ = load_server_config(file, environ, channel_settings, channel_names(), {})
    return getattr(getattr(config.general, path[0]), path[1])


def toml_of(path: tuple[str, ...], spelling: str) -> str:
    return f"[{'.'.join(path[:-1])}]\n{path[-1]} = {spelling}\n" if path[:-1] else f"{path[0]} = {spelling}\n"


@pytest.mark.parametrize("source", ["environment", "file"])
@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(path=st.sampled_from(KEYS), spelling=spellings())
def test_whatever_config_get_says_is_what_everything_uses(source: str, path: tuple[str, ...], spelling: str) -> None:
    with TemporaryDirectory() as folder:
        home = Home(Path(folder))
        environ = {variable(path): spelling} if source == "environment" else {}
        home.config.write_text("" if environ else toml_of(path, spelling))
        fleet_file = home.root / "fleet.toml"
        fleet_file.write_text(home.config.read_text())
        try:
            said = read(home, environ, path)
        except ConfigError:
            if path[0] in ("session", "detection"):
                with pytest.raises(ConfigError):
                    run_uses(home, environ, path)
            with pytest.raises(ConfigError):
                plan_hub(home, environ)
            return
        if path[0] in ("session", "detection"):
            for _ in range(2):  # read, then kept
                used = run_uses(home, environ, path)
                assert used == said and type(used) is type(said), (path, spelling)
        if path in HUB:
            assert HUB[path](plan_hub(home, environ)) == pytest.approx(said)
        if path[0] == "attention" or (path[0] == "prompts" and path[1] in PROMPTS):
            assert fleet_uses(fleet_file, environ, path) == said


def test_the_number_that_stopped_the_watchdog_is_a_number(tmp_path: Path) -> None:
    environ = {"ATLASBRIDGE_DETECTION_SETTLE_MS": "0x64"}
    assert read(Home(tmp_path), environ, ("detection", "settle_ms")) == 100
    assert run_uses(Home(tmp_path), environ, ("detection", "settle_ms")) == 100


def test_every_key_of_a_session_has_its_default_in_both_places(tmp_path: Path) -> None:
    """Without a file and without variables nothing is read at all."""
    home = Home(tmp_path)
    bare = read_session_config(home, {}, lambda: pytest.fail("nothing was to be read"))
    home.config.write_text("# nothing is set\n")
    full = read_session_config(home, {}, lambda: part_for_sessions(load_configuration(home, {})))
    assert bare.settings == full.settings and bare.channels == full.channels


@pytest.mark.parametrize(
    ("spelling", "seconds"),
    [("90", 90), ("90s", 90), ("30m", 1800), ("1h30m", 5400), ("1h 30m", 5400), ("7d", 604_800), ("250ms", 0.25)],
)
def test_a_duration_means_the_same_in_a_setting_and_as_an_option(tmp_path: Path, spelling: str, seconds: float) -> None:
    home = Home(tmp_path)
    home.config.write_text(f'[prompts]\ntimeout_seconds = "{spelling}"\n[retention]\nlogs_days = "{spelling}"\n')
    found = load_configuration(home, {}).general
    assert found.prompts.timeout_seconds == parse_duration(spelling) == seconds
    days = seconds if spelling == "90" else seconds / 86_400  # a bare number counts in the setting's own unit
    assert found.retention.logs_days == pytest.approx(days)
    assert parse_run(["--ttl", spelling, "cat"]).ttl_s == seconds


@pytest.mark.parametrize("word", ["", "m", "30x", "1h30", "-5m", "5 m m", "1e3s", "٣m"])
def test_what_is_no_duration_is_refused(word: str) -> None:
    assert parse_duration(word) is None
    with pytest.raises(UsageError):
        parse_run([f"--ttl={word}", "cat"])


@pytest.mark.parametrize("spelling", ["false", '"false"', "no", "off", " false", "0", "'no'"])
def test_a_channel_that_is_off_is_off_in_every_spelling(tmp_path: Path, spelling: str) -> None:
    environ = {"ATLASBRIDGE_CHANNELS_WEB_ENABLED": spelling}
    assert list(load_configuration(Home(tmp_path), environ).channels) == []
    config = read_session_config(
        Home(tmp_path), environ, lambda: part_for_sessions(load_configuration(Home(tmp_path), environ))
    )
    assert config.channels == ()


def test_a_text_of_a_variable_that_looks_like_a_number_stays_a_text(tmp_path: Path) -> None:
    environ = {
        "ATLASBRIDGE_CHANNELS_TELEGRAM_BOT_TOKEN": "0123",
        "ATLASBRIDGE_CHANNELS_TELEGRAM_ALLOWED_USERS": "[42]",
        "ATLASBRIDGE_HUB_SOCKET": "5",
    }
    found = load_configuration(Home(tmp_path), environ)
    assert found.channels["telegram"]["bot_token"] == "0123" and found.general.hub.socket == "5"


@pytest.mark.parametrize(
    ("wrong", "hint"), [("ntfyy", "did you mean ntfy?"), ("telegrm", "did you mean telegram?"), ("webb", "mean web?")]
)
def test_a_channel_that_is_misspelt_gets_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, hint: str
) -> None:
    monkeypatch.setenv("ATLASBRIDGE_HOME", str(tmp_path))
    plan = Plan(("cat",), "a" * 36, channels=(wrong,), cwd=str(tmp_path))
    with pytest.raises(ConfigError) as caught:
        settle_session(plan)
    assert hint in caught.value.hint


def test_a_configuration_that_is_read_apart_is_the_same_and_its_faults_are_told_here(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.config.write_text('[session]\ndetach_key = "^a x"\n')

    def whole() -> dict[str, Any]:
        return part_for_sessions(load_configuration(home, {}))

    assert apart(whole)() == whole()
    home.config.write_text("[session]\ndetach_key = 1\n")
    with pytest.raises(ConfigError, match="line 2"):
        apart(whole)()


def test_the_fleet_reads_durations_too(tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text('[prompts]\nreminder_seconds = "5m"\n[attention]\ndigest_seconds = "0x1e"\n')
    with pytest.raises(ConfigError, match=r"fleet\.toml line 4"):
        plan_server_chats(file, {}, {})
    file.write_text('[prompts]\nreminder_seconds = "5m"\n[attention]\ndigest_seconds = 0x1e\n')
    plan = plan_server_chats(file, {}, {})
    assert plan.policy.reminder_s == 300 and plan.policy.attention.digest_s == 30
