"""`atlasbridge events` as other programs use it: one JSON object per line, at once, from what is open on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.fake_host import FakeHost
from tests.support.hubs import HubProcess, hub_process
from tests.support.waiting import wait_for

RAISED = {
    *("event", "at", "session_id", "prompt_id", "type", "confidence", "excerpt", "screen", "choices", "constraints"),
    *("evidence", "safe_default", "expires_at"),
}


@pytest.fixture
def hub() -> Iterator[HubProcess]:
    with hub_process() as running:
        yield running


def lines(process: Any) -> Iterator[dict[str, Any]]:
    for line in process.stdout:
        yield json.loads(line)


def test_follow_prints_what_is_open_and_goes_on_through_a_whole_life(hub: HubProcess) -> None:
    with FakeHost(hub.home) as host:
        prompt_id = host.raise_prompt()
        wait_for(hub.is_asked)
        following = hub.popen("events", "--json", "--follow")
        events = lines(following)
        first = next(events)
        assert first["event"] == "prompt.raised" and first["prompt_id"] == prompt_id and set(first) >= RAISED
        assert first["constraints"] == {"secret": False, "idle": False}
        replying = hub.popen("reply", prompt_id, "y")
        host.answer_typing()
        replying.communicate()
        hub.cli("reply", prompt_id, "n")
        host.end(7)
        seen = [next(events) for _ in range(5)]
        assert [event["event"] for event in seen] == [
            "reply.received",
            "prompt.injected",
            "prompt.resolved",
            "reply.refused",
            "session.ended",
        ]
        assert seen[3]["reason"] == "not_open" and seen[4]["exit_code"] == 7
        following.terminate()
        following.communicate()


def test_a_session_can_be_singled_out(hub: HubProcess) -> None:
    with FakeHost(hub.home) as one, FakeHost(hub.home) as other:
        one.raise_prompt()
        other.raise_prompt()
        wait_for(lambda: len(hub.ask("prompts")["prompts"]) == 2)
        found = [
            json.loads(line)
            for line in hub.cli("events", "--json", "--session", one.session_id[:8]).stdout.splitlines()
        ]
        assert {event["session_id"] for event in found} == {one.session_id}
        assert [event["event"] for event in found][:2] == ["session.started", "prompt.raised"]


def test_withdrawal_says_why(hub: HubProcess) -> None:
    with FakeHost(hub.home) as host:
        prompt_id = host.raise_prompt()
        wait_for(hub.is_asked)
        host.withdraw(prompt_id, "answered_at_terminal")
        wait_for(lambda: not hub.is_asked())
        last = json.loads(hub.cli("events", "--json").stdout.splitlines()[-1])
        assert last["event"] == "prompt.withdrawn" and last["reason"] == "answered_at_terminal"


def test_following_starts_the_hub_and_waits_for_the_next_one() -> None:
    with hub_process(start=False) as hub:
        following = hub.popen("events", "--json", "--follow")
        wait_for(lambda: hub.pid != 0 and hub.home.socket.exists())
        with FakeHost(hub.home) as host:
            host.raise_prompt()
            assert next(lines(following))["session_id"] == host.session_id
        hub.cli("hub", "stop")
        hub.start()
        assert "hub.reconnected" in (event["event"] for event in lines(following))
        following.terminate()
        following.communicate()
