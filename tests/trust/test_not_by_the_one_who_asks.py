"""Only a person decides: what a session's tool starts may look, and ask, but neither answer nor change the hub."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support import self_answer
from tests.support.fake_host import FakeHost
from tests.support.hubs import NO_WEB, HubProcess, hub_process, live_hub
from tests.support.waiting import wait_for, written

from atlasbridge.core import wire
from atlasbridge.core.daemon.receipts import RefusalLog
from atlasbridge.core.daemon.session_processes import CallerCheck
from atlasbridge.core.operations import OPERATIONS
from atlasbridge.core.peer import (
    Peer,
    Process,
    SessionProcesses,
    decide_inside_session,
    own_tool,
    parse_stat,
    trace_ancestry,
)
from atlasbridge.core.prompt.gate import UNTRACED
from atlasbridge.core.values import replace

WEB = "[channels.web]\nport = 0\n"
PROGRAM = (sys.executable, "-P", self_answer.__file__)


@pytest.fixture(scope="module", params=["auto", "loopback", "loopback of an ordinary user"])
def attacked(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Any:
    """One real session whose tool tried everything, in every manner, while a person had not answered yet."""
    folder: Path = tmp_path_factory.mktemp("told")
    transport, _, user = str(request.param).partition(" ")
    with hub_process(f'{NO_WEB}[hub]\ntransport = "{transport}"\n', ordinary=bool(user)) as hub:
        hub.environ[self_answer.HOME] = str(hub.home.root)
        started = hub.cli("run", "--detach", "--name", "greedy", "--", *PROGRAM, str(folder))
        assert started.returncode == 0, started.stderr
        wait_for(lambda: len(list(folder.glob("*.json"))) == len(self_answer.MANNERS))
        told = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}
        yield hub, told


@pytest.mark.parametrize("manner", self_answer.MANNERS)
def test_whatever_a_tool_leaves_behind_may_look_and_decide_nothing(attacked: Any, manner: str) -> None:
    told = dict(attacked[1][manner])
    assert told.pop("look")["ok"]
    assert {name: answer.get("reason") for name, answer in told.items()} == dict.fromkeys(told, "self")
    assert len(told) == 9


def test_the_attempts_are_audited_and_told(attacked: Any) -> None:
    hub: HubProcess = attacked[0]
    entries = hub.ask("audit", event="SELF_REFUSED")["entries"]
    (session,) = hub.ask("sessions")["sessions"]
    assert {entry["op"] for entry in entries} >= {"reply", "page", "reload", "kill", "stop"}
    assert {entry["session_id"] for entry in entries} == {session["session_id"]}
    assert {entry["decided_by"] for entry in entries} == {f"tool:{session['session_id'][:8]}"}
    refused = hub.ask("audit", event="REPLY_REFUSED")["entries"]
    assert refused and all(entry["reason"] == "self" for entry in refused)


def test_the_question_still_stands_and_a_person_answers_it(attacked: Any) -> None:
    hub: HubProcess = attacked[0]
    (prompt,) = hub.ask("prompts")["prompts"]
    done = hub.cli("reply", prompt["prompt_id"], "n")
    assert done.returncode == 0 and done.stdout.startswith('Sent "No"'), done
    assert "to greedy" in done.stdout


async def test_people_are_told_once_of_many_attempts_and_hear_it_in_every_channel() -> None:
    async with live_hub() as live:
        with await asyncio.to_thread(FakeHost, live.home, channels=()) as host:
            for _ in range(30):
                live.hub.caller_check.refuse(host.session_id, "reply", "", 7)
            await live.person.until(lambda: any("tried to decide by itself" in text for text in live.person.notices))
            assert sum("tried to decide" in text for text in live.person.notices) == 1
            live.advance(61)
            entries = live.hub.ledger.audit_entries(event="SELF_REFUSED")
            assert len(entries) == 21 and entries[-1]["more"] == 10


async def test_a_peer_that_is_gone_or_was_replaced_is_nobody() -> None:
    async with live_hub() as live:
        parts = live.hub.replies.hub
        refusals = RefusalLog(live.hub.ledger, live.clock, live.hub.scheduler)
        alive = {5: Process(5, 1, 100), 1: Process(1, 0, 1)}
        caller_check = CallerCheck(parts, refusals, alive.get)
        assert caller_check.of(Peer(5, os.getuid(), 100)) == ""
        assert caller_check.of(Peer(5, os.getuid(), 99)) == UNTRACED
        assert caller_check.of(Peer(6, os.getuid())) == UNTRACED
        assert caller_check.of(Peer(0, os.getuid())) == UNTRACED
        assert caller_check.of(None) == UNTRACED


async def test_another_user_who_may_ask_here_looks_and_decides_nothing() -> None:
    async with live_hub() as live:
        host = await asyncio.to_thread(FakeHost, live.home)
        with host:
            prompt_id = host.raise_prompt()
            await live.person.until(lambda: bool(live.person.shown))
            guest = Peer(os.getpid(), os.getuid() + 1)
            operate = live.hub.operations.operate
            looked = await operate({"op": "prompts"}, guest)
            refused = await operate({"op": "reply", "prompt_id": prompt_id, "value": "y"}, guest)
            stopped = await operate({"op": "stop"}, guest)
            assert isinstance(looked, dict) and isinstance(refused, dict) and isinstance(stopped, dict)
            assert looked["ok"] and refused["reason"] == stopped["reason"] == "not_allowed"
            assert live.hub.ledger.open_prompts() != []


def test_a_connection_whose_maker_has_left_decides_nothing() -> None:
    with hub_process() as hub, FakeHost(hub.home) as host, FakeHost(hub.home) as messenger:
        prompt_id = host.raise_prompt()
        wait_for(hub.is_asked)
        assert messenger.process.stdin is not None
        messenger.process.stdin.write(f"{hub.home.socket}\n")
        messenger.process.stdin.flush()
        _, (fd,), _, _ = socket.recv_fds(messenger.hatch, 1, 1)
        messenger.die()
        with socket.socket(fileno=fd) as link:
            link.sendall(wire.encode({"op": "reply", "prompt_id": prompt_id, "value": "y"}))
            answer = json.loads(link.recv(65536))
        assert answer["reason"] == "self" and hub.is_asked()


def test_nobody_speaks_for_a_session_that_another_host_runs() -> None:
    with hub_process() as hub, FakeHost(hub.home) as host, FakeHost(hub.home) as thief:
        prompt_id = host.raise_prompt()
        wait_for(hub.is_asked)
        thief.record = host.record
        with pytest.raises(AssertionError, match="closed the connection"):
            thief.reconnect()
        replying = hub.popen("reply", prompt_id, "y")
        host.answer_typing()
        _, err = replying.communicate()
        assert replying.returncode == 0, err


def test_nothing_on_disk_opens_the_page() -> None:
    with hub_process(WEB) as hub:
        record = json.loads(written(hub.home.root / "web.json"))
        assert "key" not in record
        link = hub.json("web", "--no-open")
        assert link["links"]["local"].startswith(record["url"])


def test_operations_are_for_people_unless_they_only_look() -> None:
    """A new operation decides until somebody says that it does not."""
    looking = {one.name for one in OPERATIONS if one.inside}
    assert {"reply", "kill", "reload", "stop", "page", "launch", "grant.add", "rename"}.isdisjoint(looking)
    assert {"prompts", "sessions", "events", "notify", "later"} <= looking


LINE = (Process(9, 8, 50, "34816"), Process(8, 7, 40, "34816"), Process(7, 1, 30), Process(1, 0, 1))


@pytest.mark.parametrize(
    ("home", "inside_session"),
    [
        (SessionProcesses("s", 7, 100), "s"),
        (SessionProcesses("s", 7, 100, host_started=30), "s"),
        (SessionProcesses("s", 7, 100, host_started=31), ""),
        (SessionProcesses("s", 100, 8), "s"),
        (SessionProcesses("s", 100, 101, tty="34816"), "s"),
        (SessionProcesses("s", 100, 101, tty="34817"), ""),
        (SessionProcesses("s", 100, 101), ""),
    ],
)
def test_inside_session_is_told_by_host_tool_or_terminal(home: SessionProcesses, inside_session: str) -> None:
    assert decide_inside_session(LINE, [home]) == inside_session


def test_a_mark_in_any_ancestor_s_environment_is_enough() -> None:
    marked = (*LINE[:2], Process(7, 1, 30, mark="of-long-ago"), LINE[3])
    assert decide_inside_session(marked, []) == "of-long-ago"


def test_a_line_with_a_parent_younger_than_its_child_is_walked_again() -> None:
    looks: list[int] = []
    table = {9: Process(9, 8, 50), 8: Process(8, 1, 60), 1: Process(1, 0, 1)}

    def look(pid: int) -> Process | None:
        looks.append(pid)
        if len(looks) > 4:
            table[9] = Process(9, 1, 50)
        return table.get(pid)

    assert [process.pid for process in trace_ancestry(9, look)] == [9, 1]
    assert trace_ancestry(77, look) == ()


def test_a_name_full_of_brackets_does_not_move_what_is_read() -> None:
    rest = "S 41 42 43 34816 44 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 1 2 3"
    assert parse_stat(40, f"40 (a) R 1 (b)) {rest}") == Process(40, 41, 987654, "34816", name="a) R 1 (b)")
    assert parse_stat(40, "40 (a)") is None


def test_this_very_process_has_a_line_to_the_first_one() -> None:
    from atlasbridge.core.peer import look_at

    line = trace_ancestry(os.getpid(), look_at)
    assert line[0].pid == os.getpid() and line[1].pid == os.getppid() and len(line) >= 2


@pytest.mark.parametrize("later", [False, True], ids=["in its hello", "afterwards"])
def test_no_host_can_have_a_person_s_process_taken_for_its_tool(later: bool) -> None:
    """Else anyone who says hello could keep every command of a person's out."""
    with hub_process() as hub, FakeHost(hub.home) as host, FakeHost(hub.home) as liar:
        prompt_id = host.raise_prompt()
        wait_for(hub.is_asked)
        for pid in (1, os.getpid()):
            if later:
                liar.say("state", pid=pid)
            else:
                liar.record = replace(liar.record, pid=pid)
                liar.reconnect()
            liar.say("state", attached=True)
        wait_for(lambda: any(one["attached"] for one in hub.ask("sessions")["sessions"]))
        replying = hub.popen("reply", prompt_id, "y")
        host.answer_typing()
        _, err = replying.communicate()
        assert replying.returncode == 0, err


def test_whose_tool_a_process_is_the_kernel_says() -> None:
    family = {1: Process(1, 0, 1), 5: Process(5, 1, 2), 7: Process(7, 5, 3), 8: Process(8, 7, 4)}
    assert own_tool(8, 7, look=family.get) == 8 and own_tool(7, 7, look=family.get) == 7
    assert own_tool(99, 7, look=family.get) == 99, "one that has ended is nobody's"
    assert own_tool(5, 7, look=family.get) == 7 and own_tool(1, 7, look=family.get) == 7
    assert own_tool(5, 7, "mcp", family.get) == 5, "the agent that started its MCP server"
    assert own_tool(1, 5, "mcp", family.get) == 5 and own_tool(1, 7, "mcp", family.get) == 7
