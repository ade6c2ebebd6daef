"""The commands for people: what they print, what they exit with, what they never show."""

from __future__ import annotations

import json
import os
import pty
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.fake_host import YES_NO, FakeHost
from tests.support.hubs import NO_WEB, HubProcess, hub_process
from tests.support.terminal import is_readable
from tests.support.waiting import wait_for

TOKEN = "987654321:AAtokenThatMustNotLeak"


@pytest.fixture(scope="module")
def hub() -> Iterator[HubProcess]:
    with hub_process() as running:
        yield running


def test_help_lists_every_command_and_errors_have_two_lines(hub: HubProcess) -> None:
    shown = hub.cli("--help")
    assert shown.returncode == 0 and "approvals" in shown.stdout and "demo" in shown.stdout
    wrong = hub.cli("nonsense")
    assert wrong.returncode == 2
    assert wrong.stderr.splitlines() == ["atlasbridge: no such command 'nonsense'", "  see: atlasbridge --help"]


def test_ps_has_the_fields_of_the_design(hub: HubProcess) -> None:
    with FakeHost(hub.home, tool="claude", label="my job") as host:
        prompt_id = host.raise_prompt()
        wait_for(hub.is_asked)
        (session,) = [item for item in hub.json("ps") if item["session_id"] == host.session_id]
        fields = {"session_id", "tool", "pid", "state", "attached", "cwd", "started_at", "open_prompt"}
        assert fields <= set(session) and session["open_prompt"] == prompt_id
        table = hub.cli("ps").stdout
        assert "my job" in table and prompt_id[:8] in table
        host.end()
        wait_for(lambda: hub.ask("sessions")["sessions"] == [])


def test_kill_is_passed_to_the_host_and_an_unknown_session_is_an_error(hub: HubProcess) -> None:
    with FakeHost(hub.home) as host:
        wait_for(lambda: hub.ask("sessions")["sessions"] != [])
        assert hub.cli("kill", host.session_id[:8], "--force").returncode == 0
        assert host.hear("kill")["force"] is True
        host.end(-9)
        wait_for(lambda: hub.ask("sessions")["sessions"] == [])
    wrong = hub.cli("kill", "ffffffff")
    assert wrong.returncode == 1 and "atlasbridge ps" in wrong.stderr


def test_what_an_agent_draws_reaches_no_terminal_as_a_control_sequence(hub: HubProcess) -> None:
    from atlasbridge.core.values import replace

    with FakeHost(hub.home) as host:
        host.raise_prompt(replace(YES_NO, excerpt="Run?\x1b[2J\x07 (y/n)"))
        wait_for(hub.is_asked)
        shown = hub.cli("approvals").stdout + hub.cli("status").stdout
        assert "Run?" in shown and "\x1b[2J" not in shown and "\x07" not in shown
        host.end()
        wait_for(lambda: hub.ask("sessions")["sessions"] == [])


def test_audit_commands(hub: HubProcess, tmp_path: Path) -> None:
    assert hub.json("audit", "verify")["ok"] is True
    shown = hub.json("audit", "show", "-n", "3")
    assert len(shown) <= 3 and all("hash" in entry for entry in shown)
    copy = tmp_path / "copy.jsonl"
    assert hub.cli("audit", "export", "-o", str(copy)).returncode == 0
    assert json.loads(copy.read_text().splitlines()[0])["event"] == "HUB_START"


def test_a_changed_audit_log_is_found_with_and_without_a_hub() -> None:
    with hub_process() as hub:
        text = hub.home.audit.read_text()
        hub.home.audit.write_text(text.replace("HUB_START", "HUB_STRAT", 1))
        with_hub = hub.cli("audit", "verify")
        assert with_hub.returncode == 1 and "entry 1 of audit.log" in with_hub.stderr
        hub.cli("hub", "stop")
        without = hub.cli("audit", "verify", "--json")
        assert without.returncode == 1 and json.loads(without.stdout)["bad_entry"] == 1


def test_logs_show_decisions_and_can_be_followed(hub: HubProcess) -> None:
    assert "HUB_START" in hub.cli("logs", "-n", "1000").stdout
    assert "the hub listens" in hub.cli("logs", "--hub", "-n", "1000").stdout
    following = hub.popen("logs", "--tail", "-n", "1000", "--json")
    try:
        with FakeHost(hub.home) as host:
            host.raise_prompt()
            host.end()
            seen = ""
            while "SESSION_END" not in seen:
                assert following.stdout is not None
                seen = following.stdout.readline()
    finally:
        following.terminate()
        following.communicate()


def test_doctor_finds_and_fixes_what_others_could_read() -> None:
    with hub_process(start=False) as hub:
        hub.home.config.chmod(0o644)
        hub.home.root.chmod(0o755)
        sick = {check["name"]: check["state"] for check in json.loads(hub.cli("doctor", "--json").stdout)}
        assert sick["home"] == "fault" and sick["configuration file"] == "fault"
        assert hub.cli("doctor").returncode == 1
        fixed = hub.cli("doctor", "--fix")
        assert fixed.returncode == 0, fixed.stdout + fixed.stderr
        assert "fixed: home" in fixed.stdout and "fixed: configuration file" in fixed.stdout
        assert hub.cli("doctor").returncode == 0 and not hub.pid  # a hub that nobody needs is not started


def test_config_show_hides_secrets_and_check_says_what_is_on() -> None:
    with hub_process(f'{NO_WEB}[channels.telegram]\nbot_token = "{TOKEN}"\nallowed_users = [1]\n', start=False) as hub:
        for arguments in (("config", "show"), ("config", "show", "--json"), ("config", "check")):
            done = hub.cli(*arguments)
            assert done.returncode == 0 and TOKEN not in done.stdout + done.stderr
        assert "telegram" in hub.cli("config", "check").stdout
        assert hub.cli("config", "path").stdout.strip() == str(hub.home.config)


def test_the_debug_bundle_has_no_secret_in_any_member(tmp_path: Path) -> None:
    config = f'{NO_WEB}[channels.telegram]\nenabled = false\nbot_token = "{TOKEN}"\nallowed_users = [1]\n'
    with hub_process(config.replace("enabled = false\nbot", "bot"), start=False) as hub:
        hub.environ["MY_API_KEY"] = "env-secret-value"
        hub.home.log.write_text(f'{{"message": "called https://x/bot{TOKEN}/getMe with env-secret-value"}}\n')
        bundle = tmp_path / "bundle.tar.gz"
        done = hub.cli("debug", "bundle", "-o", str(bundle))
        assert done.returncode == 0, done.stderr
        with tarfile.open(bundle) as archive:
            members = {item.name: _text(archive, item) for item in archive.getmembers()}
        everything = "".join(members.values())
        assert TOKEN not in everything and "env-secret-value" not in everything
        assert "called https://" in everything
        assert {"atlasbridge-debug/config.json", "atlasbridge-debug/logs/hub.log"} <= set(members)


def test_every_shell_gets_its_completions(hub: HubProcess) -> None:
    for shell in ("bash", "zsh", "fish"):
        done = hub.cli("completions", shell)
        assert done.returncode == 0 and "_ATLASBRIDGE_COMPLETE" in done.stdout
    asked = {"_ATLASBRIDGE_COMPLETE": "bash_complete", "COMP_WORDS": "atlasbridge app", "COMP_CWORD": "1"}
    hub.environ.update(asked)
    try:
        assert "approvals" in hub.cli().stdout
    finally:
        for name in asked:
            del hub.environ[name]


def test_approvals_answers_with_a_keystroke(hub: HubProcess) -> None:
    with FakeHost(hub.home) as host:
        host.raise_prompt()
        wait_for(hub.is_asked)
        pid, fd = pty.fork()
        if pid == 0:
            os.execve(sys.executable, hub.command("approvals"), {**hub.environ, "TERM": "xterm"})
        try:
            seen = b""
            while b"Continue?" not in seen:
                seen += _read(fd)
            order = None
            host.be_patient(2)
            while order is None:  # a key within the first moment is ignored on purpose
                os.write(fd, b"y")
                try:
                    order = host.answer_typing()
                except TimeoutError:
                    assert _read(fd) is not None
            assert order["answer"]["kind"] == "yes"
            while b'Sent "' not in seen:
                seen += _read(fd)
            os.write(fd, b"q")
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        finally:
            os.close(fd)
        host.end()


def _read(fd: int) -> bytes:
    assert is_readable(fd, 30), "approvals is silent"
    return os.read(fd, 65536)


def _text(archive: tarfile.TarFile, item: tarfile.TarInfo) -> str:
    file = archive.extractfile(item)
    assert file is not None, f"{item.name} is no file"
    return file.read().decode()
