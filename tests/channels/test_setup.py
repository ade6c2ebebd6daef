"""`atlasbridge setup` as a person meets it: a real terminal, a real server on loopback, a phone that answers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from ptyprocess import PtyProcessUnicode
from tests.support.fake_discord import TOKEN as DISCORD_TOKEN
from tests.support.fake_discord import FakeDiscord
from tests.support.fake_ntfy import FakeNtfy
from tests.support.fake_slack import APP_TOKEN, BOT_TOKEN, TEAM, FakeSlack
from tests.support.fake_telegram import FakeTelegram
from tests.support.hubs import short_home

from atlasbridge.cli.config import write_table
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.home import Home

ADA = 1001


@pytest.fixture
def home() -> Iterator[Path]:
    with short_home() as made:
        yield made.root


def environ(home: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ATLASBRIDGE_")}
    return {**kept, "ATLASBRIDGE_HOME": str(home), "NO_COLOR": "1", **more}


def setup(home: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "atlasbridge", "setup", *arguments]
    return subprocess.run(command, env=environ(home, **more), capture_output=True, text=True, stdin=subprocess.DEVNULL)


def table(home: Path, channel: str) -> dict:  # type: ignore[type-arg]
    return tomllib.loads((home / "config.toml").read_text())["channels"][channel]


class Wizard:
    """The wizard in a terminal: read until it says something, type an answer."""

    def __init__(self, home: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "atlasbridge", "setup", *arguments]
        self.process = PtyProcessUnicode.spawn(command, env=environ(home), dimensions=(40, 160))
        self.text = ""

    def read_until(self, pattern: str) -> re.Match[str]:
        while not (found := re.search(pattern, self.text)):
            try:
                self.text += self.process.read(1024)
            except EOFError:
                raise AssertionError(f"ended before {pattern!r}: {self.text}") from None
        return found

    def say(self, text: str) -> None:
        self.process.write(text + "\r")

    def end(self) -> int:
        while True:
            try:
                self.text += self.process.read(1024)
            except EOFError:
                return int(self.process.wait())


def test_the_wizard_connects_telegram_from_nothing(home: Path, server: FakeTelegram) -> None:
    ada = server.person(ADA)
    wizard = Wizard(home, "--api-url", server.url)
    wizard.read_until(r"Channel .*:")
    wizard.say("telegram")
    wizard.read_until(r"Bot token:")
    wizard.say(server.token)
    word = wizard.read_until(r"(atlas-[0-9a-f]{4})")[1]
    server.person(6666, "Eve").write("let me in")
    ada.write(word)
    wizard.read_until(r"Hello Ada \(id 1001\)")
    server.wait_for(lambda: ada.sees(), "the test prompt")
    ada.tap(ada.last(), "It works")
    assert wizard.end() == 0, wizard.text
    assert "It works: your tap arrived." in wizard.text
    assert server.token not in wizard.text
    assert table(home, "telegram") == {
        "allowed_users": [ADA],
        "api_url": server.url,
        "bot_token": server.token,
        "enabled": True,
    }
    assert (home / "config.toml").stat().st_mode & 0o777 == 0o600
    assert ada.last()["text"] == "✅ AtlasBridge is connected."
    assert server.unconfirmed() == 0


def test_a_mistyped_token_may_be_typed_again_and_is_never_shown(home: Path, server: FakeTelegram) -> None:
    server.person(ADA)
    wizard = Wizard(home, "--channel", "telegram", "--user", str(ADA), "--no-test", "--api-url", server.url)
    wizard.read_until(r"Bot token:")
    wizard.say("1:mistyped")
    wizard.read_until(r"(?s)Telegram does not know this token.*Bot token:")
    wizard.say(server.token)
    assert wizard.end() == 0, wizard.text
    assert "mistyped" not in wizard.text and table(home, "telegram")["bot_token"] == server.token


def test_a_bad_token_is_told_in_two_lines_and_nothing_is_written(home: Path, server: FakeTelegram) -> None:
    done = setup(
        home, "--channel", "telegram", "--non-interactive", "--token-env", "T", "--user", "1", "--api-url", server.url,
        T="1:bad",
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "atlasbridge: Telegram does not know this token",
        "  copy it again from @BotFather",
    ]
    assert not (home / "config.toml").exists()


def test_without_questions_from_flags_and_a_file_and_the_rest_of_the_configuration_stays(
    home: Path, server: FakeTelegram, tmp_path: Path
) -> None:
    server.person(ADA)
    config = home / "config.toml"
    config.write_text(
        "# mine\n[prompts]\ntimeout_seconds = 60\n\n[channels.telegram]\nbot_token = 'old'\nallowed_users = [5]\n"
        "groups = [{ chat_id = -1005, topic_id = 7 }]\n\n[channels.web]\nport = 0\n"
    )
    token = tmp_path / "token"
    token.write_text(server.token + "\n")
    token.chmod(0o600)
    arguments = ("--channel", "telegram", "--non-interactive", "--token-file", str(token), "--no-test")
    done = setup(home, *arguments, "--user", str(ADA), "--api-url", server.url)
    assert done.returncode == 0, done.stderr
    text = config.read_text()
    assert text.startswith("# mine\n[prompts]\ntimeout_seconds = 60\n") and "[channels.web]" in text
    assert table(home, "telegram") == {
        "bot_token": f"file:{token}",
        "allowed_users": [5, ADA],
        "groups": [{"chat_id": -1005, "topic_id": 7}],
        "api_url": server.url,
        "enabled": True,
    }
    assert server.token not in text + done.stdout + done.stderr
    assert config.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "say which channel"),
        (("--channel", "telegram"), "--token-env or --token-file"),
        (("--channel", "telegram", "--token-env", "NOT_SET"), "NOT_SET is not set"),
        (("--channel", "slack", "--token-env", "HOME"), "--app-token-env or --app-token-file"),
    ],
)
def test_missing_flags_are_named(home: Path, arguments: tuple[str, ...], said: str) -> None:
    done = setup(home, "--non-interactive", *arguments)
    assert done.returncode == 2 and said in done.stderr


def test_there_is_no_flag_that_takes_a_token(home: Path) -> None:
    done = setup(home, "--help")
    flags = re.findall(r"--[a-z-]*token[a-z-]*", done.stdout)
    assert set(flags) == {"--token-env", "--token-file", "--app-token-env", "--app-token-file"}


def test_a_token_file_that_others_may_read_is_refused(home: Path, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("1:x")
    token.chmod(0o644)
    done = setup(home, "--non-interactive", "--channel", "telegram", "--token-file", str(token), "--user", "1")
    assert done.returncode == 2 and "chmod 600" in done.stderr


def test_web_only_needs_nothing(home: Path) -> None:
    done = setup(home, "--channel", "web", "--non-interactive")
    assert done.returncode == 0 and "atlasbridge web" in done.stdout
    assert table(home, "web") == {"enabled": True}


def test_another_poller_is_named(home: Path, server: FakeTelegram) -> None:
    wizard = Wizard(home, "--channel", "telegram", "--api-url", server.url)
    wizard.read_until(r"Bot token:")
    wizard.say(server.token)
    wizard.read_until(r"atlas-[0-9a-f]{4}")
    server.wait_for(lambda: server.calls_of("getUpdates"), "the poll")
    import urllib.request

    urllib.request.urlopen(f"{server.url}/bot{server.token}/getUpdates", timeout=10).close()
    assert wizard.end() == 1
    assert "another program is polling" in wizard.text and "atlasbridge hub stop" in wizard.text


def test_the_wizard_connects_slack(home: Path, slack: FakeSlack) -> None:
    ada = slack.person("U0ADA")
    slack.dm_with("U0ADA")
    wizard = Wizard(home, "--channel", "slack", "--api-url", f"{slack.url}/api/")
    wizard.read_until(r"Bot token:")
    wizard.say(BOT_TOKEN)
    wizard.read_until(r"App-level token.*:")
    wizard.say(APP_TOKEN)
    word = wizard.read_until(r"(atlas-[0-9a-f]{4})")[1]
    slack.wait_for(lambda: slack.sockets, "the socket")
    ada.write(word)
    wizard.read_until(r"Hello Ada \(id U0ADA\)")
    slack.wait_for(lambda: ada.sees(), "the test prompt")
    ada.click(ada.last(), "It works")
    assert wizard.end() == 0, wizard.text
    assert BOT_TOKEN not in wizard.text and APP_TOKEN not in wizard.text
    written = table(home, "slack")
    assert (written["team_id"], written["allowed_users"], written["app_token"]) == (TEAM, ["U0ADA"], APP_TOKEN)


def test_the_wizard_connects_discord(home: Path) -> None:
    with FakeDiscord() as discord:
        ada = discord.person()
        wizard = Wizard(home, "--channel", "discord", "--api-url", f"{discord.url}/api")
        wizard.read_until(r"Bot token:")
        wizard.say(DISCORD_TOKEN)
        word = wizard.read_until(r"(atlas-[0-9a-f]{4})")[1]
        discord.wait_for(lambda: discord.sessions, "the gateway")
        ada.write(word)
        wizard.read_until(rf"Hello Ada \(id {ada.user_id}\)")
        discord.wait_for(lambda: ada.sees(), "the test prompt")
        ada.press(ada.sees()[0], "✅ It works")
        assert wizard.end() == 0, wizard.text
        discord.wait_for(lambda: "connected" in ada.sees()[0]["content"], "the end")
    assert DISCORD_TOKEN not in wizard.text
    assert table(home, "discord")["allowed_users"] == [ada.user_id]


def test_slack_tokens_of_the_wrong_kind_are_told(home: Path, slack: FakeSlack) -> None:
    flags = ("--channel", "slack", "--non-interactive", "--user", "U0ADA", "--api-url", f"{slack.url}/api/")
    done = setup(home, *flags, "--token-env", "B", "--app-token-env", "A", B=BOT_TOKEN, A=BOT_TOKEN)
    assert done.returncode == 1 and "not_allowed_token_type" in done.stderr and "connections:write" in done.stderr


def test_a_channels_settings_are_written_and_the_rest_of_the_file_stays(home: Path) -> None:
    text = "# mine\n[prompts]\nmax_reminders = 3\n\n[channels.telegram] # old\nenabled = false # for now\n"
    (home / "config.toml").write_text(text)
    write_table(Home(home), "telegram", {"bot_token": 'say "hi" \\ ü', "allowed_users": [1, 2], "enabled": True})
    data = tomllib.loads((home / "config.toml").read_text())
    wanted = {"bot_token": 'say "hi" \\ ü', "allowed_users": [1, 2], "enabled": True}
    assert data == {"prompts": {"max_reminders": 3}, "channels": {"telegram": wanted}}
    assert "# mine" in (home / "config.toml").read_text()


def test_a_file_that_is_no_toml_is_named_with_what_to_do(home: Path) -> None:
    (home / "config.toml").write_text("[prompts\n")
    with pytest.raises(ConfigError, match=r"config\.toml cannot be read") as raised:
        write_table(Home(home), "web", {"enabled": True})
    assert "config edit" in raised.value.hint


def test_ntfy_gets_two_topics_that_nobody_can_guess_and_a_tap_that_arrives(home: Path) -> None:
    with FakeNtfy() as server:
        command = [sys.executable, "-m", "atlasbridge", "setup", "--channel", "ntfy", "--non-interactive"]
        process = subprocess.Popen(
            [*command, "--api-url", server.url],
            env=environ(home),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        server.wait_for(
            lambda: [m for found in server.messages.values() for m in found if m.get("actions")], "the test"
        )
        written = table(home, "ntfy")
        server.tap(written["topic"], "It works")
        said, _ = process.communicate()
        assert process.returncode == 0 and "your tap arrived" in said
        assert (
            written["topic"] != written["reply_topic"] and min(len(written["topic"]), len(written["reply_topic"])) > 30
        )
        assert (home / "config.toml").stat().st_mode & 0o077 == 0
