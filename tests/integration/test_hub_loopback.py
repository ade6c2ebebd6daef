"""The hub at a port of this machine, as it is where there are no Unix sockets: every command, every crash."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.hubs import NO_WEB, HubProcess, hub_process
from tests.support.operator import Operator
from tests.support.sessions import end_sessions
from tests.support.terminal import run_in
from tests.support.waiting import wait_for

from atlasbridge.client import Client, Refused
from atlasbridge.core.hub_connection import pass_file, read_pass

pytestmark = pytest.mark.landing

LOOPBACK = NO_WEB + '[hub]\ntransport = "loopback"\n'
ASK = 'read -p "Continue? (y/n) " a; echo got=$a; read b; echo then=$b'


@pytest.fixture
def hub() -> Iterator[HubProcess]:
    with hub_process(LOOPBACK) as running:
        yield running


def port_of(hub: HubProcess) -> int:
    found = read_pass(pass_file(hub.home.socket))
    return found.port if found else 0


def test_the_port_and_its_key_are_private_and_go_with_the_hub(hub: HubProcess) -> None:
    file = pass_file(hub.home.socket)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not hub.home.socket.exists()
    assert hub.json("hub", "status")["pid"] == hub.pid
    assert "has stopped" in hub.cli("hub", "stop").stdout
    assert not file.exists()
    assert "not running" in hub.cli("hub", "status").stderr


def test_a_second_hub_leaves_the_first_ones_address_alone(hub: HubProcess) -> None:
    before = port_of(hub)
    assert "was already running" in hub.cli("hub", "start").stdout
    assert port_of(hub) == before


def test_a_session_asks_and_is_answered_over_the_port(home: Path) -> None:
    (home / "config.toml").write_text(LOOPBACK)
    (home / "config.toml").chmod(0o600)
    operator = Operator(home)
    try:
        with run_in(home, "bash", "-c", ASK, options=()) as terminal:
            prompt = operator.open_prompt()
            assert not (home / "hub.sock").exists()
            assert [item["tool"] for item in operator.sessions()] == ["bash"]
            assert operator.reply(prompt["prompt_id"], "y")[0] == 0
            terminal.wait_for("got=y")
            status, answer = operator.reply(prompt["prompt_id"], "y")
            assert (status, answer["reason"]) == (3, "not_open")
            os.kill(operator.hub_pid(), signal.SIGKILL)
            old = read_pass(home / "hub.tcp")
            # its host starts the next hub, at another port and with another key, and says what is open
            wait_for(lambda: read_pass(home / "hub.tcp") not in (None, old), "a new hub")
            terminal.type(b"mine\r")
            terminal.wait_for("then=mine")
            terminal.wait_exit()
        for words in (
            ["events", "--json"],
            ["ps"],
            ["status", "--all"],
            ["audit", "verify"],
            ["doctor"],
            ["approvals"],
        ):
            done = operator.command(*words)
            assert done.returncode == 0 and "Traceback" not in done.stderr, (words, done)
        assert operator.command("hub", "restart").returncode == 0
    finally:
        end_sessions(home)
        operator.command("hub", "stop")


def test_after_kill_9_a_stranger_at_the_old_port_is_passed_by(hub: HubProcess) -> None:
    old = port_of(hub)
    hub.kill_9()
    with socket.create_server(("127.0.0.1", old)) as stranger:
        assert hub.cli("doctor", "--json").returncode in (0, 1)
        hub.start()
        assert port_of(hub) != old
        assert hub.json("hub", "status")["pid"] == hub.pid
        stranger.setblocking(False)
        peer, _ = stranger.accept()  # the starter looked there first
        with peer:
            peer.settimeout(10)
            assert len(peer.recv(4096)) == 32  # a number that it made up, and nothing else


def test_programs_ask_and_answer_over_the_port(hub: HubProcess) -> None:
    client = Client(hub.home.root)
    asking = hub.popen("ask", "Deploy?")
    wait_for(hub.is_asked, "the question")
    (prompt,) = client.prompts()
    assert "Deploy?" in prompt.excerpt
    with pytest.raises(Refused):
        client.reply(prompt.prompt_id, "perhaps so")
    client.reply(prompt.prompt_id, "y")
    assert asking.wait() == 0
    asking.communicate()


def test_other_users_are_told_that_they_need_a_socket() -> None:
    config = NO_WEB + '[hub]\ntransport = "loopback"\nusers = ["0"]\n'
    with hub_process(config, start=False) as hub:
        done = hub.cli("hub", "start")
        assert done.returncode == 2 and "need a Unix socket" in done.stderr


def test_the_environment_asks_for_it_as_the_file_does() -> None:
    with hub_process(NO_WEB, start=False) as hub:
        hub.environ["ATLASBRIDGE_HUB_TRANSPORT"] = "loopback"
        hub.start()
        del hub.environ["ATLASBRIDGE_HUB_TRANSPORT"]
        assert json.loads(hub.cli("hub", "status", "--json").stdout)["pid"] == hub.pid
        assert port_of(hub) > 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a hub that is not root who has come to its port")
def test_an_ordinary_users_commands_decide_at_a_port_too() -> None:
    """It may not see what others have open, for our processes hide it; each says who it is, and the kernel vouches."""
    with hub_process(LOOPBACK, ordinary=True) as hub:
        started = hub.cli("run", "--detach", "--name", "asking", "--", "bash", "-c", ASK)
        assert started.returncode == 0, started.stderr
        wait_for(hub.is_asked, "the question")
        (session,) = hub.json("ps")
        (prompt,) = hub.ask("prompts")["prompts"]
        assert hub.cli("reply", prompt["prompt_id"], "y").returncode == 0
        wait_for(lambda: any(event["event"] == "prompt.resolved" for event in events(hub)), "its effect")
        assert hub.cli("kill", "asking").returncode == 0
        wait_for(lambda: not hub.json("ps"), "its end")
        assert session["tool"] == "bash"


def events(hub: HubProcess) -> list[dict[str, object]]:
    return [json.loads(line) for line in hub.cli("events", "--json").stdout.splitlines()]
