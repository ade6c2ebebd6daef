"""Names wherever an id is taken, by one rule; and what is said when one is not clear."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.support.fake_host import YES_NO, FakeHost
from tests.support.hubs import HubProcess, hub_process
from tests.support.sessions import wait_no_session
from tests.support.terminal import Terminal, run_in
from tests.support.waiting import wait_for

from atlasbridge.core.values import replace


@pytest.fixture(scope="module")
def hub() -> Iterator[HubProcess]:
    with hub_process() as running:
        yield running


def known(hub: HubProcess, count: int) -> None:
    wait_for(lambda: len(hub.ask("sessions")["sessions"]) == count)


def test_a_session_is_killed_by_name_or_beginning_and_an_unclear_one_is_listed(hub: HubProcess) -> None:
    with FakeHost(hub.home, label="web-api") as one, FakeHost(hub.home, label="web-worker") as two:
        known(hub, 2)
        unclear = hub.cli("kill", "web")
        assert unclear.returncode == 1
        assert "web-api" in unclear.stderr and "web-worker" in unclear.stderr and one.session_id[:8] in unclear.stderr
        wrong = hub.cli("kill", "wep-api")
        assert wrong.returncode == 1 and "did you mean web-api" in wrong.stderr
        assert hub.cli("kill", "web-a", "--force").returncode == 0
        assert one.hear("kill")["force"] is True
        one.end(-9)
        assert hub.cli("kill", two.session_id[:6]).returncode == 0
        two.hear("kill")
        two.end(-15)
        known(hub, 0)


def test_who_starts_beside_many_hears_of_those_with_its_name_alone(hub: HubProcess) -> None:
    with FakeHost(hub.home, label="web") as one, FakeHost(hub.home, label="Build") as two, FakeHost(hub.home) as three:
        known(hub, 3)
        named = {name: hub.ask("sessions", name=name)["sessions"] for name in ("build", "WEB", "bash", "nobody")}
        assert {name: [found["session_id"] for found in some] for name, some in named.items()} == {
            "build": [two.session_id],
            "WEB": [one.session_id],
            "bash": [three.session_id],
            "nobody": [],
        }
        (found,) = hub.ask("sessions", session_id=three.session_id)["sessions"]
        assert found["session_id"] == three.session_id
        for host in (one, two, three):
            host.end(0)
        known(hub, 0)


def test_a_reply_may_name_the_session_that_asks(hub: HubProcess) -> None:
    with FakeHost(hub.home, label="deploy") as host, FakeHost(hub.home, label="deploy-staging") as other:
        prompt_id = host.raise_prompt()
        wait_for(hub.is_asked)
        reply = hub.popen("reply", "deploy", "y")
        assert host.answer_typing()["prompt_id"] == prompt_id
        assert reply.wait() == 0 and "to deploy" in reply.communicate()[0]
        host.raise_prompt()
        other.raise_prompt()
        wait_for(lambda: len(hub.ask("prompts")["prompts"]) == 2)
        unclear = hub.cli("reply", "dep", "y", "--json")
        answer = json.loads(unclear.stdout)
        assert unclear.returncode == 3 and answer["reason"] == "ambiguous" and "deploy-staging" in answer["message"]
        nobody = hub.cli("reply", "nobody", "y")
        assert nobody.returncode == 3 and "atlasbridge approvals" in nobody.stderr
        both = hub.popen("reply", "deploy-staging", "n", "--also", host.session_id[:8])
        assert {other.answer_typing()["answer"]["kind"], host.answer_typing()["answer"]["kind"]} == {"no"}
        both.communicate()
        assert both.returncode == 0
        host.end()
        other.end()
        known(hub, 0)


def test_a_session_that_nobody_named_goes_by_the_name_it_is_listed_with(hub: HubProcess) -> None:
    with FakeHost(hub.home) as host:
        prompt_id = host.raise_prompt()
        wait_for(hub.is_asked)
        listed = hub.cli("approvals", "--once").stdout.splitlines()[-1].split()[1]
        reply = hub.popen("reply", listed, "y")
        assert host.answer_typing()["prompt_id"] == prompt_id
        assert reply.wait() == 0 and f"to {listed}" in reply.communicate()[0]
        assert hub.cli("kill", listed).returncode == 0
        host.hear("kill")
        host.end(-15)
        known(hub, 0)


def test_a_new_name_is_used_everywhere_recorded_and_kept_by_the_host(hub: HubProcess) -> None:
    with FakeHost(hub.home, label="old") as host:
        known(hub, 1)
        done = hub.cli("rename", "old", "new name\x1b[2J")
        assert done.returncode == 0 and "\x1b" not in done.stdout
        label = hub.json("ps")[0]["label"]
        assert label.startswith("new name") and "\x1b" not in label
        assert host.hear("rename")["label"] == label
        (entry,) = hub.json("audit", "show", "--event", "session_renamed", "--session", "new name")
        assert entry["label"] == label
        assert hub.cli("rename", "new", "x" * 81).returncode == 1
        assert host.session_id[:8] in hub.cli("logs", "--session", "new name").stdout
        told = hub.cli("events", "--session", "new").stdout.splitlines()
        assert told and all(host.session_id[:8] in line for line in told)
        assert "did you mean" in hub.cli("audit", "show", "--event", "SESION_START").stderr
        host.end()
        known(hub, 0)


def test_who_gives_a_name_that_another_session_has_is_told(hub: HubProcess) -> None:
    with FakeHost(hub.home, label="web") as host, FakeHost(hub.home, label="api") as other:
        known(hub, 2)
        assert hub.cli("rename", "api", "jobs").stderr == ""
        said = hub.cli("rename", "jobs", "Web").stderr
        assert host.session_id[:8] in said and "has this name, too" in said
        assert hub.cli("rename", other.session_id, "Web").stderr == said
        hub.cli("rename", other.session_id, "jobs")
        started = hub.cli("run", "--detach", "--name", "jobs", "sh", "-c", "exit 0")
        assert started.returncode == 0 and f"{other.session_id[:8]} (jobs) has this name, too" in started.stderr
        host.end()
        other.end()
        known(hub, 0)


def test_a_real_host_keeps_its_new_name_over_a_restart_of_the_hub_and_is_attached_by_it(hub: HubProcess) -> None:
    with run_in(hub.home.root, "sh", "-c", "echo ready; read a", options=("--detach", "--name", "first")) as start:
        assert start.wait_exit() == 0
    assert hub.cli("rename", "first", "second").returncode == 0
    assert hub.cli("hub", "restart").returncode == 0
    wait_for(lambda: [item["label"] for item in hub.json("ps")] == ["second"])
    with Terminal(hub.command("attach", "sec"), hub.home.root) as terminal:
        terminal.wait_for("ready")
        terminal.type("\r")
        assert terminal.wait_exit() == 0
    with Terminal(hub.command("attach", "third"), hub.home.root) as terminal:
        assert terminal.wait_exit() == 1
        assert "there is no session 'third'" in terminal.text()
    wait_no_session(hub.home.root)


def test_unknown_commands_and_options_get_a_suggestion(hub: HubProcess) -> None:
    assert hub.cli("aprovals").stderr.splitlines()[1] == "  did you mean atlasbridge approvals?"
    assert hub.cli("sessions").stderr.splitlines()[1] == "  did you mean atlasbridge ps?"
    assert "did you mean atlasbridge hub start" in hub.cli("hub", "strat").stderr
    assert "--follow" in hub.cli("events", "--folow").stderr
    assert "did you mean --detach?" in hub.cli("run", "--detatch", "true").stderr


def test_what_nobody_answered_in_time_is_asked_again_by_name(hub: HubProcess) -> None:
    with FakeHost(hub.home, label="nightly", ttl_s=0.2) as host:
        host.raise_prompt(replace(YES_NO, safe_default=""))
        wait_for(lambda: hub.ask("prompts")["still_waiting"])
        again = hub.popen("reply", "nightly", "--again")
        host.hear("renew")
        host.raise_prompt()
        assert "Asked again" in again.communicate()[0] and again.returncode == 0
        host.end()
        known(hub, 0)
