"""The hub as a process: started once however many ask, found again after a crash, stopped without losing anything."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.fake_host import SECRET, YES_NO, FakeHost
from tests.support.hubs import NO_WEB, HubProcess, hub_process
from tests.support.waiting import wait_for

from atlasbridge.core.daemon.request import lock_holder
from atlasbridge.core.prompt.model import Prompt


@pytest.fixture
def hub() -> Iterator[HubProcess]:
    with hub_process() as running:
        yield running


def test_many_starters_at_once_make_one_hub() -> None:
    with hub_process(start=False, cold=True) as hub:
        starters = [hub.popen("hub", "start") for _ in range(4)]
        outputs = [starter.communicate()[0] for starter in starters]
        assert all(starter.returncode == 0 for starter in starters)
        assert {output.split("process ")[1] for output in outputs} == {f"{hub.pid})\n"}
        assert sum("was already running" not in output for output in outputs) == 1


def test_the_home_and_its_socket_are_private(hub: HubProcess) -> None:
    assert stat.S_IMODE(hub.home.root.stat().st_mode) == 0o700
    assert stat.S_IMODE(hub.home.socket.stat().st_mode) == 0o600
    for name in ("hub.log", "atlasbridge.db", "audit.log", "hub.lock", "hub.version"):
        assert stat.S_IMODE((hub.home.root / name).stat().st_mode) == 0o600, name


def test_status_is_the_machine_interface_of_the_design(hub: HubProcess) -> None:
    with FakeHost(hub.home) as host:
        host.raise_prompt()
        wait_for(hub.is_asked)
        status = hub.json("hub", "status")
        assert status["pid"] == hub.pid and status["uptime_s"] >= 0 and status["sessions"] == 1
        assert [channel["name"] for channel in status["channels"]] == ["local"]
        assert status["audit_head"]["count"] >= 3 and status["audit_head"]["hash"].startswith("sha256:")


def test_stopping_removes_the_socket_and_a_second_stop_says_so(hub: HubProcess) -> None:
    assert "has stopped" in hub.cli("hub", "stop").stdout
    assert not (hub.home.root / "hub.version").exists()
    assert not hub.home.socket.exists() and lock_holder(hub.home.lock) is None
    assert "not running" in hub.cli("hub", "stop").stdout


def test_without_a_hub_status_says_what_to_do() -> None:
    with hub_process(start=False, cold=True) as hub:
        done = hub.cli("hub", "status")
        assert done.returncode == 1
        assert done.stderr == "atlasbridge: the hub is not running\n  start it with: atlasbridge hub start\n"


def test_a_socket_left_by_a_killed_hub_is_replaced(hub: HubProcess) -> None:
    hub.kill_9()
    assert hub.home.socket.exists()
    hub.start()
    assert hub.json("hub", "status")["pid"] == hub.pid


def test_restart_changes_the_process_and_keeps_the_prompt() -> None:
    with hub_process(cold=True) as hub, FakeHost(hub.home) as host:
        prompt_id = host.raise_prompt()
        wait_for(hub.is_asked)
        before = hub.pid
        assert hub.cli("hub", "restart").returncode == 0
        assert hub.pid != before
        host.reconnect()
        replying = hub.popen("reply", prompt_id, "y")
        assert host.answer_typing()["prompt_id"] == prompt_id
        assert replying.wait() == 0
        replying.communicate()


def test_an_answer_accepted_before_a_crash_is_typed_after_it(hub: HubProcess) -> None:
    with FakeHost(hub.home) as host:
        prompt_id = host.raise_prompt()
        wait_for(hub.is_asked)
        replying = hub.popen("reply", prompt_id, "y")
        host.hear("type")  # claimed and on disk; the host dies with its answer to the hub untold
        hub.kill_9()
        replying.communicate()
        assert replying.returncode == 1
        hub.start()
        host.reconnect()
        order = host.answer_typing()
        assert order["prompt_id"] == prompt_id and order["answer"]["kind"] == "yes"
        wait_for(lambda: "PROMPT_RESOLVED" in hub.home.audit.read_text())


def test_an_answer_typed_while_the_hub_was_dead_is_not_typed_again(hub: HubProcess) -> None:
    with FakeHost(hub.home) as host:
        prompt_id = host.raise_prompt()
        wait_for(hub.is_asked)
        replying = hub.popen("reply", prompt_id, "y")
        host.hear("type")
        hub.kill_9()
        replying.communicate()
        host.typed.append([prompt_id, "taken"])
        host.open = None
        hub.start()
        host.reconnect()
        wait_for(lambda: "PROMPT_RESOLVED" in hub.home.audit.read_text())
        host.say("raise", prompt_id=prompt_id, prompt={**_encoded(YES_NO)})
        host.be_patient(0.5)
        with pytest.raises(TimeoutError):
            host.hear("type")


def _encoded(prompt: Prompt) -> dict[str, Any]:
    from atlasbridge.core.prompt.codec import encode_prompt

    return encode_prompt(prompt)


def test_a_secret_that_was_not_typed_before_a_crash_is_never_on_disk_and_is_asked_again(hub: HubProcess) -> None:
    with FakeHost(hub.home) as host:
        prompt_id = host.raise_prompt(SECRET)
        wait_for(hub.is_asked)
        replying = subprocess.Popen(
            hub.command("reply", prompt_id, "-"),
            env=hub.environ,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert replying.stdin is not None and replying.stderr is not None
        replying.stdin.write("hunter2\n")
        replying.stdin.close()
        assert host.hear("type")["answer"]["value"] == "hunter2"
        hub.kill_9()
        replying.wait()
        replying.stderr.close()
        written = b"".join(path.read_bytes() for path in hub.home.root.iterdir() if path.is_file())
        assert b"hunter2" not in written
        hub.start()
        host.reconnect()
        renewal = host.hear("renew")
        assert renewal["prompt_id"] == prompt_id


def test_a_session_whose_host_is_dead_has_crashed(hub: HubProcess) -> None:
    host = FakeHost(hub.home)
    prompt_id = host.raise_prompt()
    wait_for(hub.is_asked)
    host.die()
    wait_for(lambda: hub.ask("sessions")["sessions"] == [])
    (session,) = hub.json("ps", "--all")
    assert session["state"] == "crashed" and session["exit_code"] is None
    refused = hub.cli("reply", prompt_id, "y", "--json")
    assert refused.returncode == 3 and json.loads(refused.stdout)["reason"] == "not_open"


def test_a_reload_takes_a_good_configuration_and_refuses_a_bad_one(hub: HubProcess) -> None:
    hub.home.config.write_text(NO_WEB + "[prompts]\ntimeout_seconds = -1\n")
    refused = hub.cli("hub", "reload")
    assert refused.returncode == 2 and "line 4" in refused.stderr and "prompts.timeout_seconds" in refused.stderr
    hub.home.config.write_text(NO_WEB + '[channels.desktop]\nprogram = "true"\n')
    os.kill(hub.pid, signal.SIGHUP)
    wait_for(lambda: len(hub.ask("status")["channels"]) == 2)


def test_a_bad_configuration_starts_nothing() -> None:
    with hub_process(NO_WEB + '[prompts.safe_default]\nyes_no = "y"\n', start=False) as hub:
        done = hub.cli("hub", "start")
        assert done.returncode == 2
        assert "config.toml line 4: prompts.safe_default.yes_no" in done.stderr
        assert hub.pid == 0 and not hub.home.database.exists()


def test_garbage_on_the_socket_hurts_nobody(hub: HubProcess) -> None:
    for garbage in (b"\xff\xfe\n", b"[]\n", b'{"m":"hello"}\n', b'{"op":"no such thing"}\n', b"x" * 5_000_000 + b"\n"):
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(str(hub.home.socket))
            try:
                link.sendall(garbage)
                link.settimeout(60)
                link.recv(1000)
            except ConnectionError:
                pass
    assert hub.json("hub", "status")["pid"] == hub.pid


def test_a_host_cannot_speak_of_another_sessions_prompt(hub: HubProcess) -> None:
    with FakeHost(hub.home) as owner, FakeHost(hub.home) as other:
        prompt_id = owner.raise_prompt()
        wait_for(hub.is_asked)
        other.say("withdraw", prompt_id=prompt_id, reason="moved_on")
        wait_for(lambda: "not its own" in hub.home.log.read_text())
        assert hub.json("approvals")[0]["prompt_id"] == prompt_id


def test_the_log_is_json_lines(hub: HubProcess) -> None:
    entries = [json.loads(line) for line in hub.home.log.read_text().splitlines()]
    assert entries and all({"ts", "level", "logger", "message"} <= set(entry) for entry in entries)


def test_the_page_is_on_unless_it_is_turned_off() -> None:
    with hub_process("[channels.web]\nport = 0\n") as hub:
        wait_for(lambda: [channel["state"] for channel in hub.ask("status")["channels"]] == ["ok", "ok"])
        assert hub.json("hub", "status")["channels"][1]["url"].startswith("http://localhost:")
