"""A question from inside a session is marked as such; its asker can answer nothing, through no integration."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support import attach_inside, false_host, self_answer
from tests.support.fake_host import FakeHost
from tests.support.hubs import hub_process, live_hub
from tests.support.waiting import wait_for, written

from atlasbridge.core.daemon.session_processes import ASKERS, find_socket, parse_address
from atlasbridge.core.peer import MARK, Peer
from atlasbridge.core.prompt.gate import UNTRACED
from atlasbridge.core.sockdiag import Socket

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real session whose tool asked by socket and by HTTP in every manner, and tried to answer all of it."""
    folder = tmp_path_factory.mktemp("inside")
    with hub_process("[channels.web]\nport = 0\n") as hub:
        token = hub.cli("token", "create", "found", "--scope", "answer").stdout.strip()
        way = {"home": str(hub.home.root), "token": token}
        way["url"] = json.loads(written(hub.home.root / "web.json"))["url"]
        hub.environ |= {self_answer.HOME: way["home"], "PYTHONPATH": str(ROOT)}
        outside = hub.popen("ask", "Outside?", "--label", "a cron job", "--ttl", "5m")
        program = (sys.executable, "-P", attach_inside.__file__, str(folder))
        assert hub.cli("run", "--detach", "--name", "greedy", "--", *program).returncode == 0
        attach_inside.write_whole(folder / "way.json", way)
        wait_for(lambda: len(list(folder.glob("*.json"))) == 1 + len(self_answer.MANNERS), deadline_s=120)
        told = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}
        prompts = hub.ask("prompts")["prompts"]
        audit = hub.ask("audit", event="SELF_REFUSED")["entries"]
        for prompt in prompts:
            assert hub.cli("reply", prompt["prompt_id"], "n").returncode == 0
        wait_for(lambda: len(list(folder.glob("*.answer"))) == len(self_answer.MANNERS))
        answers = [json.loads(path.read_text()) for path in folder.glob("*.answer")]
        outside.communicate()
        yield told, prompts, audit, answers


@pytest.mark.parametrize("manner", self_answer.MANNERS)
def test_what_asks_from_inside_a_session_answers_neither_itself_nor_others(asked: Any, manner: str) -> None:
    told = asked[0][manner]
    assert len(told) == 6
    assert told == dict.fromkeys(told, "self")


def test_every_question_from_inside_says_so_and_one_from_outside_does_not(asked: Any) -> None:
    labels = {prompt["excerpt"]: prompt["label"] for prompt in asked[1]}
    assert labels.pop("Outside?") == "a cron job"
    assert len(labels) == 2 * len(self_answer.MANNERS)
    for excerpt, label in labels.items():
        mark, _, own = label.partition(": ")
        assert mark.startswith("in session ") and mark.endswith(" (greedy)"), (excerpt, label)
        assert own.startswith(("script ", "program "))


def test_the_attempts_are_audited_and_a_person_answers_what_was_asked(asked: Any) -> None:
    assert {entry["op"] for entry in asked[2]} == {"reply"}
    assert asked[3] == [["no", "no"]] * len(self_answer.MANNERS)


def test_what_calls_itself_another_session_says_where_it_comes_from_all_the_same() -> None:
    """Anyone who leaves the word "integration" out of its hello is not believed for that."""
    with hub_process() as hub:
        hub.environ["PYTHONPATH"] = str(ROOT)
        program = (sys.executable, "-P", false_host.__file__, str(hub.home.root))
        assert hub.cli("run", "--detach", "--name", "greedy", "--", *program).returncode == 0
        wait_for(lambda: len(hub.ask("prompts")["prompts"]) == 2)
        labels = {prompt["excerpt"]: prompt["label"] for prompt in hub.ask("prompts")["prompts"]}
        assert labels["Here?"].startswith("in session ") and labels["Here?"].endswith(": release")
        assert labels["Left?"] == f"{ASKERS[UNTRACED]}: release"


async def test_a_question_of_an_earlier_version_that_connects_again_starts_no_session_for_people() -> None:
    """Its hello says `door`; an integration's session is told to nobody when it starts or ends."""
    async with live_hub() as live:
        told = live.person.notices
        with await asyncio.to_thread(FakeHost, live.home, "ask", integration={"door": "ask"}) as question:
            question.end()
            with await asyncio.to_thread(FakeHost, live.home, "later"):
                await live.person.until(lambda: "Session started: later" in told)
            assert live.hub.ledger.session(question.session_id) is not None
            assert told == ["Session started: later"]


async def test_what_a_tool_tells_people_is_not_taken_for_our_own_word() -> None:
    async with live_hub() as live:
        with await asyncio.to_thread(FakeHost, live.home) as host:
            told, operate = live.person.notices, live.hub.operations.operate
            inside = await asyncio.create_subprocess_exec("sleep", "60", env={**os.environ, MARK: host.session_id})
            try:
                await operate({"op": "notify", "message": "Nobody answered in time."}, Peer(inside.pid, os.getuid()))
            finally:
                inside.kill()
                await inside.wait()
            await live.person.until(lambda: any("Nobody answered" in text for text in told))
            (said,) = [text for text in told if "Nobody answered" in text]
            assert said.startswith(f"in session {host.session_id[:8]}")
            gone = Peer(inside.pid, os.getuid())
            await operate({"op": "notify", "message": "It is done.", "label": "make"}, gone)
            await live.person.until(lambda: f"{ASKERS[UNTRACED]}: make: It is done." in told)


TABLE = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2124 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 111 1
   1: 0100007F:D431 0100007F:2124 01 00000000:00000000 00:00000000 00000000  1000        0 222 1
   2: 0100007F:2124 0100007F:D431 01 00000000:00000000 00:00000000 00000000  1001        0 333 1
"""


def test_the_clients_own_end_of_a_connection_is_found_and_not_the_hubs() -> None:
    assert find_socket([TABLE], ("127.0.0.1", 0xD431), ("127.0.0.1", 0x2124)) == Socket(1000, 222)
    assert find_socket([TABLE], ("127.0.0.1", 0xD431), ("127.0.0.2", 0x2124)) is None


def test_addresses_are_read_as_the_kernel_writes_them() -> None:
    assert parse_address("0000000000000000FFFF00000100007F:1F90") == ("127.0.0.1", 8080)
    assert parse_address("00000000000000000000000001000000:0016") == ("::1", 22)
    assert parse_address("0100007F:0050") == ("127.0.0.1", 80)
