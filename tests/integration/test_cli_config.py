"""`config`, tables behind a pipe, the hub in the foreground, and completions: what people see at the terminal."""

from __future__ import annotations

import os
import shlex
import subprocess
import tomllib
from collections.abc import Iterator

import pytest
from tests.support.fake_host import YES_NO, FakeHost
from tests.support.hubs import NO_WEB, HubProcess, hub_process
from tests.support.terminal import Terminal
from tests.support.waiting import wait_for

from atlasbridge.core.values import replace


@pytest.fixture(scope="module")
def hub() -> Iterator[HubProcess]:
    with hub_process() as running:
        yield running


def test_config_show_is_toml() -> None:
    with hub_process('[channels.telegram]\nbot_token = "1:secretsecret"\nallowed_users = [7]\n', start=False) as hub:
        shown = hub.cli("config", "show").stdout
        assert "secretsecret" not in shown
        assert tomllib.loads(shown)["channels"]["telegram"]["allowed_users"] == [7]


def test_a_setting_is_set_and_unset_and_a_bad_one_changes_nothing() -> None:
    with hub_process(f"# mine\n{NO_WEB}", start=False) as hub:
        name = "detection.settle_ms"
        assert hub.cli("config", "set", name, "75").returncode == 0
        text = hub.home.config.read_text()
        assert tomllib.loads(text)["detection"]["settle_ms"] == 75 and text.startswith("# mine")
        assert hub.home.config.stat().st_mode & 0o777 == 0o600
        wrong = hub.cli("config", "set", name, "never")
        assert wrong.returncode == 2 and wrong.stderr.startswith("atlasbridge: detection.settle_ms should be")
        slip = hub.cli("config", "set", "detection.setle_ms", "1")
        assert slip.returncode == 2 and "did you mean settle_ms" in slip.stderr
        assert hub.home.config.read_text() == text
        assert hub.cli("config", "get", name).stdout == "75\n"
        assert tomllib.loads(hub.cli("config", "get", "detection").stdout)["detection"]["settle_ms"] == 75
        slip = hub.cli("config", "get", "detection.setle_ms")
        assert slip.returncode == 2 and "did you mean detection.settle_ms" in slip.stderr
        assert hub.cli("config", "unset", name).returncode == 0
        assert "settle_ms" not in hub.home.config.read_text()


def test_an_edited_file_takes_its_place_only_when_it_is_good() -> None:
    with hub_process(NO_WEB, start=False) as hub:
        editor = hub.home.root / "editor"
        editor.write_text('#!/bin/sh\necho "[detection]\nsettle_ms = 80" >> "$1"\n')
        editor.chmod(0o700)
        hub.environ["VISUAL"] = shlex.quote(str(editor))
        assert hub.cli("config", "edit").returncode == 0
        assert tomllib.loads(hub.home.config.read_text())["detection"]["settle_ms"] == 80
        good = hub.home.config.read_text()
        assert hub.cli("config", "edit", given="n\n").returncode == 2, "a second [detection] is no TOML"
        assert hub.home.config.read_text() == good


def test_a_hub_in_the_foreground_that_cannot_run_says_so_by_its_status(hub: HubProcess) -> None:
    second = hub.cli("hub", "start", "--foreground")
    assert second.returncode == 1 and "already running" in second.stderr


@pytest.mark.parametrize("letters", ["latin-1", "ascii", "cp437"])
@pytest.mark.parametrize("words", [("adapters", "list"), ("hub", "status"), ("doctor",), ("lab", "list"), ()])
def test_what_a_stream_has_no_letter_for_is_a_mark(hub: HubProcess, words: tuple[str, ...], letters: str) -> None:
    """A terminal of an old kind, and what Windows calls a pipe's letters."""
    done = subprocess.run(hub.command(*words), env={**hub.environ, "PYTHONIOENCODING": letters}, capture_output=True)
    assert done.returncode in (0, 1) and done.stdout
    assert b"Error" not in done.stderr and b"error" not in done.stderr, done.stderr


def test_tables_are_whole_behind_a_pipe_and_wrap_on_a_terminal(hub: HubProcess) -> None:
    folder = "/srv/" + "x" * 120
    with FakeHost(hub.home, label="a-name-of-some-length") as host:
        host.record = replace(host.record, cwd=folder)
        host.raise_prompt(replace(YES_NO, excerpt="Delete " + "y" * 120 + "? (y/n)"))
        wait_for(hub.is_asked)
        row = [line for line in hub.cli("approvals").stdout.splitlines() if host.open_id[:8] in line]
        assert len(row) == 1 and "y" * 120 in row[0] and "…" not in row[0]
        assert "…" not in hub.cli("audit", "show").stdout
        with Terminal(hub.command("approvals", "--once"), hub.home.root, 24, 60) as terminal:
            assert terminal.wait_exit() == 0
            printed = terminal.output.decode()
            assert "…" not in printed and host.open_id[:8] in printed and printed.count("y") >= 120
            assert "y" * 20 in printed, "there is room for what is asked"
        host.end()
        wait_for(lambda: hub.ask("sessions")["sessions"] == [])


def complete(hub: HubProcess, shell: str, *words: str) -> str:
    place = str(len(words) - 1)
    asked = {"_ATLASBRIDGE_COMPLETE": f"{shell}_complete", "COMP_WORDS": " ".join(words), "COMP_CWORD": place}
    if shell == "fish":
        asked["COMP_CWORD"] = words[-1]
    done = subprocess.run(hub.command(), env={**hub.environ, **asked}, capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_ids_names_and_options_are_completed(hub: HubProcess, shell: str) -> None:
    with FakeHost(hub.home, label="web-api") as host:
        prompt_id = host.raise_prompt()
        wait_for(hub.is_asked)
        names = (("kill", "we"), ("attach", "we"), ("reply", "we"), ("rename", "we"), ("logs", "--session", "we"))
        for words in names if shell == "bash" else names[:1]:
            assert "web-api" in complete(hub, shell, "atlasbridge", *words)
        assert prompt_id[:8] in complete(hub, shell, "atlasbridge", "reply", prompt_id[:3])
        assert "--detach" in complete(hub, shell, "atlasbridge", "run", "--d")
        if shell == "bash":  # what is offered is the same for each of them
            assert "telegram" in complete(hub, shell, "atlasbridge", "run", "--channel", "te")
            assert "detection.settle_ms" in complete(hub, shell, "atlasbridge", "config", "set", "detection.se")
        host.end()
        wait_for(lambda: hub.ask("sessions")["sessions"] == [])


def test_completing_without_a_hub_is_silent_and_starts_none() -> None:
    with hub_process(start=False) as hub:
        assert complete(hub, "bash", "atlasbridge", "kill", "").strip() == ""
        assert not os.path.exists(hub.home.socket)


def test_a_running_hub_uses_a_channel_as_soon_as_setup_has_written_it() -> None:
    with hub_process() as hub:
        done = hub.cli("setup", "--channel", "web", "--non-interactive")
        assert done.returncode == 0 and "the hub uses it now" in done.stdout, done.stderr
    assert "hub reload" not in done.stdout
