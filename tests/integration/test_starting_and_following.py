"""What scripts rely on: an id that is known once it is printed, a stop that stops, events that outlive a hub."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import Any

import pytest
from tests.support.fake_host import FakeHost
from tests.support.hubs import hub_process
from tests.support.sessions import wait_no_session
from tests.support.waiting import wait_for

from atlasbridge.core.daemon.request import is_starting, lock_holder


def test_a_detached_session_is_known_to_the_hub_when_its_id_is_printed() -> None:
    with hub_process(start=False) as hub:
        started = hub.cli("run", "--detach", "--", "sleep", "60")
        assert started.returncode == 0, started.stderr
        ended = hub.cli("kill", "--force", started.stdout.strip())
        assert ended.returncode == 0, ended.stderr
        wait_no_session(hub.home.root)


def test_a_hub_that_is_just_being_started_is_stopped() -> None:
    with hub_process(start=False) as hub:
        starting = hub.popen("hub", "start")
        wait_for(lambda: is_starting(hub.home.starting) or lock_holder(hub.home.lock) is not None, "a hub begins")
        assert hub.cli("hub", "stop").returncode == 0
        starting.communicate()
        assert lock_holder(hub.home.lock) is None and not is_starting(hub.home.starting)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("telegramm", "did you mean telegram? It is off"),
        ("locl", "did you mean local?"),
        ("pigeon", "there are: local"),
    ],
)
def test_a_channel_that_is_not_there_is_refused_before_anything_starts(name: str, hint: str) -> None:
    with hub_process(start=False) as hub:
        refused = hub.cli("run", "--channel", name, "echo", "started")
        assert refused.returncode == 2 and "started" not in refused.stdout
        assert f"no channel {name!r} is configured" in refused.stderr and hint in refused.stderr


def next_event(following: subprocess.Popen[str]) -> dict[str, Any]:
    assert following.stdout and following.stderr
    line = following.stdout.readline()
    assert line, f"it ended with {following.wait()}: {following.stderr.read()}"
    return dict(json.loads(line))


def test_events_go_on_over_a_restart_of_the_hub_and_say_so() -> None:
    with hub_process() as hub, FakeHost(hub.home, label="night") as host:
        first = host.raise_prompt()
        wait_for(hub.is_asked)
        following = hub.popen("events", "--json", "--follow")
        seen = next_event(following)
        assert seen["prompt_id"] == first and (seen["tool"], seen["label"], seen["cwd"]) == (
            "bash",
            "night",
            "/somewhere",
        )
        assert "subject" in seen
        hub.kill_9()
        hub.start()
        host.reconnect()
        assert next_event(following)["event"] == "hub.reconnected"
        host.withdraw(first)
        second = host.raise_prompt()
        events: list[dict[str, Any]] = []
        while not events or events[-1].get("prompt_id") != second:
            events.append(next_event(following))
        told = [(event["event"], event["prompt_id"]) for event in events if event["event"].startswith("prompt.")]
        assert told == [("prompt.withdrawn", first), ("prompt.raised", second)], "what was told is not told again"
        os.kill(following.pid, signal.SIGTERM)
        following.communicate()
