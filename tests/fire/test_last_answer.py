"""An answer over which the tool ends was typed all the same, and everybody is told so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.fake_host import FakeHost
from tests.support.hubs import HubProcess, hub_process
from tests.support.waiting import wait_for


@pytest.fixture
def hub() -> Iterator[HubProcess]:
    with hub_process() as running:
        yield running


def test_an_answer_that_ends_the_tool_counts_as_typed_and_taken(hub: HubProcess) -> None:
    with FakeHost(hub.home) as host:
        prompt_id = host.raise_prompt()
        wait_for(hub.is_asked)
        replying = hub.popen("reply", prompt_id, "y")
        host.hear("type")
        host.say("end", exit_code=0, status=0, typed=[[prompt_id, "typed"]])
        assert replying.wait() == 0, replying.communicate()
        replying.communicate()
        events = [entry["event"] for entry in hub.ask("audit", prompt_id=prompt_id)["entries"]]
        assert events[-3:] == ["REPLY_RECEIVED", "REPLY_INJECTED", "PROMPT_RESOLVED"]


def test_an_answer_that_was_not_typed_before_the_tool_ended_is_told_as_such(hub: HubProcess) -> None:
    with FakeHost(hub.home) as host:
        prompt_id = host.raise_prompt()
        wait_for(hub.is_asked)
        replying = hub.popen("reply", prompt_id, "y")
        host.hear("type")
        host.say("end", exit_code=0, status=0, typed=[])
        assert replying.wait() == 3
        replying.communicate()
        events = [entry["event"] for entry in hub.ask("audit", prompt_id=prompt_id)["entries"]]
        assert "PROMPT_FAILED" in events and "REPLY_INJECTED" not in events
