"""Attacks on a server that aim at everybody: a machine, a page or a stranger whose words no table can keep, who
wants to
be told what is not theirs, or whose rights ended a moment ago."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.fleet_server.conftest import database, fleet_server, root, server
from tests.support.fake_telegram import FakeTelegram
from tests.support.fleet import HubApi, fleet_server_on, new_machine, until
from tests.support.postgres import Postgres
from tests.support.server_chats import chat_file, sees, telegram_table
from tests.trust.test_the_server_refuses import dial, hears, say

from atlasbridge.core.daemon.audit_heads import parse_head
from atlasbridge.core.errors import ChannelError, ConfigError
from atlasbridge.core.fleet_wire import PATH, Invitation, decode_message, from_text, parse_invitation, to_text
from atlasbridge.core.values import replace
from atlasbridge.fleet.keys import new_key
from atlasbridge.fleet.member.joining import WebSocket, ask_heads, join, leave
from atlasbridge.fleet.member.membership import FleetMembership, read_membership, write_membership
from atlasbridge.fleet.server import machines, people
from atlasbridge.fleet.server.audit import verify_all
from atlasbridge.fleet.server.database import Database

__all__ = ["database", "fleet_server", "root", "server"]
pytestmark = pytest.mark.heavy
LONG = "x" * 9000
DEEP = "[" * 8000

# each is one message of a machine that is known; none of them may reach beyond its own link
WORDS: list[str] = [
    json.dumps({"m": "outcome", "id": LONG, "ok": True, "stage": "typed", "sentence": ""}),
    json.dumps({"m": "outcome", "id": "a\x00b", "ok": True, "stage": "typed", "sentence": ""}),
    json.dumps({"m": "outcome", "id": "a\ud800b", "ok": False, "reason": "\x00", "sentence": ""}),
    json.dumps({"m": "proof", "request": LONG, "lines": []}),
    json.dumps({"m": "proof", "request": "\x00", "lines": []}),
    json.dumps({"m": "screen", "session_id": LONG, "screen": {"lines": []}}),
    json.dumps({"m": "screen", "session_id": "\x00", "screen": {"lines": ["\x00"]}}),
    json.dumps({"m": "policy", "digest": "\x00", "fault": "\ud800"}),
    '{"m": "up", "seq": 1e999, "items": []}',
    '{"m": "up", "seq": 99999999999999999999999, "items": []}',
    '{"m": "up", "seq": 1, "items": [{"seq": 1, "kind": "session", "id": "s", "body": {"state": "a\\u0000"}}]}',
    '{"m": "up", "seq": 1, "items": [{"seq": 1, "kind": "prompt", "id": "p", "ttl_s": 1e999, "body": '
    '{"state": "created", "session_id": "s", "x": NaN}}]}',
    '{"m": "up", "seq": 1, "items": ' + DEEP + "}",
    DEEP,
]


@pytest.mark.parametrize("words", WORDS, ids=range(len(WORDS)))
async def test_what_one_machine_says_ends_nobody_elses_fleet_server(
    fleet_server: HubApi, root: Path, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    honest, evil = await new_machine(fleet_server, root, "honest"), await new_machine(fleet_server, root, "evil")
    alice = await fleet_server.person("alice", "admin")
    await evil.stop()
    link = await dial(fleet_server, evil)
    with caplog.at_level(logging.WARNING):
        await link.send(words)
        await say(link, "beat", head=[0, "genesis"])
        await _answered_or_ended(link)
        honest.sit().ask()
        (shown,) = await alice.sees(1)
        assert (await alice.decide(shown, "y"))["accepted"]
    await link.close()
    assert not fleet_server.context_ended, "the server's own work has ended"
    assert "Traceback" not in caplog.text
    await honest.stop()


async def _answered_or_ended(link: WebSocket) -> None:
    while (text := await link.receive()) is not None:
        if decode_message(text)["m"] == "beat":
            return


NOBODY: list[str] = [
    json.dumps({"m": "enter", "machine": "\x00", "signature": "", "nonce": ""}),
    json.dumps({"m": "enter", "machine": "\ud800", "signature": "", "nonce": ""}),
    json.dumps({"m": "join", "token": "\ud800", "key": "", "signature": "", "name": "x", "nonce": ""}),
    DEEP,
]


@pytest.mark.parametrize("words", NOBODY, ids=range(len(NOBODY)))
async def test_what_a_stranger_says_is_turned_away_without_a_fault_of_ours(
    fleet_server: HubApi, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        link = await WebSocket.dial(fleet_server.url, PATH)
        await link.send(words)
        while await link.receive() is not None:
            pass
        await link.close()
    assert "Traceback" not in caplog.text


JSON = {"content-type": "application/json"}
REQUESTS: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/api/v1/prompts/%00.p/reply", {"json": {"value": "y"}}),
    ("POST", "/api/v1/prompts/%ED%A0%80.p/reply", {"json": {"value": "y"}}),
    ("POST", "/api/v1/prompts/m.p/reply", {"json": {"value": "y", "request_key": "\x00"}}),
    ("POST", "/api/v1/prompts/m.p/reply", {"content": json.dumps({"value": "\ud800"}), "headers": JSON}),
    ("POST", "/api/v1/prompts/m.p/reply", {"content": DEEP, "headers": JSON}),
    ("POST", "/api/v1/login", {"content": DEEP, "headers": JSON}),
    ("POST", "/api/v1/login", {"content": json.dumps({"link": "\ud800"}), "headers": JSON}),
    ("POST", "/api/v1/login", {"content": b"\xff\xfe\x00", "headers": JSON}),
    ("POST", "/api/v1/login", {"content": b"{}"}),
    ("GET", "/api/v1/prompts/%00.%00/outcome?request_key=%00", {}),
    ("GET", "/api/v1/prompts?q=%00", {}),
    ("GET", "/api/v1/prompts?machine=%00&folder=%00&limit=9&offset=9999999", {}),
    ("GET", "/api/v1/decisions?person=%00", {}),
    ("GET", "/api/v1/sessions/%00.%00/screen/stream", {}),
    ("GET", "/api/v1/me", {"headers": {"host": "["}}),
    ("GET", "/api/v1/me", {"headers": {"host": "localhost:99999999"}}),
    ("POST", "/api/v1/logout", {"headers": {"origin": "http://["}}),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=range(len(REQUESTS)))
async def test_a_request_that_no_table_can_keep_is_refused_and_is_no_fault(
    fleet_server: HubApi, request_: tuple[str, str, dict[str, Any]]
) -> None:
    alice = await fleet_server.person("alice", "admin")
    method, path, given = request_
    answer = await alice.client.request(method, path, **given)
    assert answer.status_code in (200, 400, 403, 404, 415, 421, 422), (answer.status_code, answer.text)


@pytest.mark.parametrize("origin", ["http://127.0.0.1:{other}", "http://localhost:{other}", "https://127.0.0.1:{port}"])
async def test_a_page_on_another_port_of_this_host_decides_nothing(
    fleet_server: HubApi, root: Path, origin: str
) -> None:
    """For a browser it is the same site, so the cookie comes along: anyone who may open a port here could answer."""
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    machine.sit().ask()
    (shown,) = await alice.sees(1)
    port = httpx.URL(fleet_server.url).port or 0
    path = f"/api/v1/prompts/{shown['machine_id']}.{shown['prompt_id']}/reply"
    headers = {"origin": origin.format(port=port, other=port + 1)}
    answer = await alice.client.post(path, json={"value": "y"}, headers=headers)
    assert answer.status_code == 403 and machine.sitters[0].orders == []
    own = await alice.client.post(path, json={"value": "y"}, headers={"origin": fleet_server.url})
    assert own.status_code == 200 and own.json()["stage"] == "typed"
    await machine.stop()


@pytest.mark.parametrize("how", ["removed", "denied", "out of the team", "only to see"])
async def test_what_somebody_wanted_who_may_not_any_more_is_not_sent(
    fleet_server: HubApi, root: Path, how: str
) -> None:
    """The machine was cut off; in between the person lost the right."""
    machine = await new_machine(fleet_server, root)
    bert = await fleet_server.person("bert")
    team = how == "out of the team"
    if team:
        await people.set_team(fleet_server.database, "ops", "bert", True, "test")
    await people.allow(fleet_server.database, "@ops" if team else "bert", "box", "*", "answer", "test")
    alice = await fleet_server.person("alice", "admin")
    sitter = machine.sit()
    sitter.ask()
    (shown,) = await bert.sees(1)
    await machine.told_all()
    await machine.stop()
    deciding = asyncio.create_task(bert.decide(shown, "y"))
    await until(lambda: _count(fleet_server, "decisions"))
    if how == "removed":
        await people.remove(fleet_server.database, "bert", "test")
    elif team:
        await people.set_team(fleet_server.database, "ops", "bert", False, "test")
    else:
        await people.deny(fleet_server.database, "bert", "box", "*", "test")
        if how == "only to see":
            await people.allow(fleet_server.database, "bert", "box", "*", "see", "test")
    await (await machine.start()).connected()
    told = await deciding
    assert not told.get("accepted") and told["stage"] == "not_allowed", told
    assert sitter.orders == [] and sitter.typed == {}
    (again,) = await alice.sees(1)
    assert (await alice.decide(again, "n"))["accepted"]
    await machine.stop()


async def _count(fleet_server: HubApi, table: str) -> bool:
    return bool(await fleet_server.database.rows(f"SELECT 1 FROM {table}"))


async def test_a_log_that_was_cut_behind_what_was_followed_is_named(fleet_server: HubApi, root: Path) -> None:
    """The proof went further than the last head that was told: a shorter log, or another one, is still one that
    was cut."""
    machine = await new_machine(fleet_server, root)
    for _ in range(3):
        machine.sit()
    await machine.told_all()
    verdict = await verify_all(fleet_server.database, 20.0)
    assert verdict["ok"], verdict
    (row,) = await fleet_server.database.rows("SELECT id, proved_count, proved_hash, head_count FROM machines")
    assert row["proved_count"] > 1
    await machine.stop()
    # as if the head had not come along with the proof
    await fleet_server.database.rows("UPDATE machines SET head_count = 1, head_hash = 'h'")
    link = await dial(fleet_server, machine, head=[row["proved_count"] - 1, "another"])
    await say(link, "beat", head=[row["proved_count"] - 1, "another"])
    await hears(link, "beat")
    (after,) = await fleet_server.database.rows("SELECT log_fault FROM machines")
    assert "it was cut" in after["log_fault"]
    await link.close()


async def test_a_log_of_which_another_head_was_proved_is_named(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root)
    machine.sit()
    await machine.told_all()
    assert (await verify_all(fleet_server.database, 20.0))["ok"]
    (row,) = await fleet_server.database.rows("SELECT proved_count FROM machines")
    await machine.stop()
    await fleet_server.database.rows("UPDATE machines SET head_count = 0, head_hash = 'genesis'")
    link = await dial(fleet_server, machine, head=[row["proved_count"], "another"])
    await say(link, "beat", head=[row["proved_count"], "another"])
    await hears(link, "beat")
    (after,) = await fleet_server.database.rows("SELECT log_fault FROM machines")
    assert "it was rewritten" in after["log_fault"]
    await link.close()


async def test_what_was_proved_is_a_head_that_may_not_go_back(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root)
    machine.sit()
    await machine.told_all()
    assert (await verify_all(fleet_server.database, 20.0))["ok"]
    (row,) = await fleet_server.database.rows("SELECT head_count, head_hash, proved_count, proved_hash FROM machines")
    assert row["head_count"] >= row["proved_count"] > 0
    await machine.stop()


async def test_a_machine_whose_log_was_put_back_is_told_so_by_the_server(fleet_server: HubApi, root: Path) -> None:
    """Nothing on the machine's own disk knows better, and its hub is down."""
    machine = await new_machine(fleet_server, root)
    await machine.told_all()
    await machine.stop()
    home, before = machine.home.root, root / "before"
    before.mkdir()
    for name in ("atlasbridge.db", "audit.log", "audit.head"):
        shutil.copy(home / name, before)
    await (await machine.start()).connected()
    machine.sit()
    await machine.told_all()
    await machine.stop()
    assert (await asyncio.to_thread(audit_verify, home)) == (0, "")
    for path in before.iterdir():
        shutil.copy(path, home / path.name)
    for left in home.glob("atlasbridge.db-*"):
        left.unlink()
    code, said = await asyncio.to_thread(audit_verify, home)
    assert code == 1 and "seen elsewhere" in said


async def test_a_server_that_is_not_reached_is_named_and_nobody_else_is_told_heads(
    fleet_server: HubApi, root: Path
) -> None:
    machine = await new_machine(fleet_server, root)
    machine.sit()
    await machine.told_all()
    membership = read_membership(machine.home.root)
    assert membership is not None
    heads = await ask_heads(membership)
    assert heads and all(parse_head(one) for one in heads)
    with pytest.raises(ChannelError, match="key it joined with"):
        await ask_heads(replace(membership, key=new_key()))
    await machine.stop()
    write_membership(machine.home.root, replace(membership, url="http://127.0.0.1:9"))
    code, said = await asyncio.to_thread(audit_verify, machine.home.root)
    assert code == 0 and "the fleet server was not asked" in said


def audit_verify(home: Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "atlasbridge", "audit", "verify"],
        env={**os.environ, "ATLASBRIDGE_HOME": str(home)},
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stderr if done.returncode else done.stdout.partition("\n")[2]


@pytest.mark.parametrize("path", ["/events", "/screen/stream"])
async def test_a_browser_that_was_logged_out_is_shown_nothing_more(fleet_server: HubApi, root: Path, path: str) -> None:
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    other = await fleet_server.visitor("alice")
    sitter = machine.sit()
    await machine.told_all()
    own = (machine.membership.machine_id, sitter.session_id)
    whole = f"/api/v1{path}" if path == "/events" else f"/api/v1/sessions/{own[0]}.{own[1]}{path}"
    async with alice.client.stream("GET", whole) as stream:
        lines = stream.aiter_lines()
        assert await anext(lines)
        await alice.post("/api/v1/logout")
        async for _ in lines:
            fleet_server.context.wakeups.tell("board", f"screen:{own[0]}:{own[1]}")
    assert (await other.get("/api/v1/me"))["status"] == 200
    await machine.stop()


async def test_a_flood_of_strangers_does_not_fill_the_log(fleet_server: HubApi) -> None:
    """Of what nobody known does, the first of a minute stand there one by one; the rest is counted."""
    async with httpx.AsyncClient(base_url=fleet_server.url) as client:
        for number in range(60):
            answer = await client.post("/api/v1/login", json={"link": f"guess {number}"})
            assert answer.status_code == 403
    for number in range(40):
        await machines.refuse_entry(fleet_server.database, f"nobody{number}", "unknown")
    events = await fleet_server.events()
    assert events.count("LOGIN_REFUSED") == 20 and events.count("ENTER_REFUSED") == 20
    token = await people.login_link(fleet_server.database, (await _alice(fleet_server)))
    async with httpx.AsyncClient(base_url=fleet_server.url) as client:
        assert (await client.post("/api/v1/login", json={"link": token})).status_code == 200


async def _alice(fleet_server: HubApi) -> str:
    await people.add(fleet_server.database, "alice", "admin", "test")
    return "alice"


async def test_who_asks_whether_the_fleet_server_is_well_is_told_nothing_of_its_database(
    server: Postgres, database: str
) -> None:
    async with fleet_server_on(database) as running:

        async def away(*_: object) -> None:
            from atlasbridge.core.errors import StoreError

            raise StoreError('PostgreSQL is away: connection to server at "10.1.2.3", port 5432 failed: user "dba"', "")

        running.database.rows = away  # type: ignore[method-assign,assignment]
        async with httpx.AsyncClient(base_url=running.url, cookies={"atlasbridge_server": "x"}) as client:
            for path in ("/ready", "/api/v1/me"):
                answer = await client.get(path)
                assert answer.status_code == 503
                assert "10.1.2.3" not in answer.text and "dba" not in answer.text


@pytest.mark.parametrize("text", ["AA!!AA", "AAAA\n", "AB", "A A A A", "AA==", "ÄÄ"])
def test_a_key_is_written_in_one_way_only(text: str) -> None:
    found = from_text(text)
    assert found == b"" or to_text(found) == text


def test_the_password_in_an_address_of_a_database_is_not_printed() -> None:
    with pytest.raises(Exception) as caught:
        Database("mysql://ada:swordfish@db/x")
    assert "swordfish" not in str(caught.value)


async def test_a_number_without_end_stops_nobodys_chat(server: Postgres, root: Path) -> None:
    with FakeTelegram() as telegram:
        ada = telegram.person(1001)
        async with fleet_server_on(
            server.new_database(), chats=chat_file(root, telegram=telegram_table(telegram))
        ) as fleet_server:
            await fleet_server.in_chat("ada", "telegram:1001", "admin")
            evil, honest = (
                await new_machine(fleet_server, root, "evil"),
                await new_machine(fleet_server, root, "honest"),
            )
            await evil.stop()
            link = await dial(fleet_server, evil)
            body = {"state": "awaiting_reply", "session_id": "s", "question": "Whole?", "excerpt": "Whole?"}
            odd = {"evidence": [{"signal": "x", "score": 10**400}], "constraints": {"max_length": 10**400}}
            items = [{"seq": 1, "kind": "prompt", "id": "p", "ttl_s": 600, "body": {**body, **odd}}]
            await say(link, "up", seq=1, items=items, head=[0, "genesis"])
            await hears(link, "ack")
            honest.sit().ask()
            await sees(ada, "Continue?")
            await link.close()
            await honest.stop()


@pytest.mark.parametrize("url", ["http://desk.example", "http://10.0.0.7:8460", "http://127.0.0.1.evil.example/"])
async def test_nothing_is_said_to_a_fleet_server_in_the_clear(url: str) -> None:
    """Who sits in between could read the token, and decide in everybody's name."""
    with pytest.raises(ConfigError, match="in the clear"):
        parse_invitation(f"{url}#token.key")
    with pytest.raises(ChannelError, match="in the clear"):
        await join(Invitation(url, "token", "key"), "box", ca="", screens=True, rules="tighten", ephemeral=False)
    with pytest.raises(ChannelError, match="in the clear"):
        await leave(FleetMembership(url, "m", "box", new_key(), "key"))
