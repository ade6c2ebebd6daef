"""The server's key is replaced, and its database saved and put back, without anybody joining again."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.support.fleet import HubApi, Machine, fleet_server_on, new_machine, until
from tests.support.postgres import programs

from atlasbridge.cli.fleet import command
from atlasbridge.core.clock import ManualClock
from atlasbridge.core.errors import AtlasBridgeError, ChannelError
from atlasbridge.core.fleet_wire import Invitation, rotation_text
from atlasbridge.core.values import replace
from atlasbridge.fleet.keys import new_key, public_of, sign
from atlasbridge.fleet.member.joining import follow_key, join
from atlasbridge.fleet.member.membership import read_membership
from atlasbridge.fleet.server import machines, people
from atlasbridge.fleet.server.database import Database
from atlasbridge.fleet.server.machines import rotate_key
from atlasbridge.fleet.server.migrate import migrate
from atlasbridge.fleet.server.server import SERVING


def signed(old: str, new: str) -> list[str]:
    return [public_of(old), public_of(new), sign(old, rotation_text(public_of(old), public_of(new)))]


def test_a_machine_follows_signed_keys_and_no_others() -> None:
    first, second, third, thief = (new_key() for _ in range(4))
    chain = [signed(first, second), signed(second, third)]
    assert follow_key(public_of(first), {"keys": chain}) == public_of(third)
    assert follow_key(public_of(second), {"keys": chain}) == public_of(third)
    assert follow_key(public_of(third), {"keys": chain}) == public_of(third)  # and never back
    forged = [public_of(first), public_of(thief), sign(thief, rotation_text(public_of(first), public_of(thief)))]
    odds: tuple[Any, ...] = ([forged], [signed(first, second)[:2]], [[1, 2, 3]], "x", None, [None], {})
    for odd in odds:
        assert follow_key(public_of(first), {"keys": odd}) == public_of(first)
    moved = [public_of(first), public_of(thief), signed(first, second)[2]]  # a signature for another key
    assert follow_key(public_of(first), {"keys": [moved]}) == public_of(first)


async def reconnected(machine: Machine) -> None:
    await machine.stop()
    await machine.start()
    await machine.connected()


async def test_a_machine_follows_the_servers_new_key_by_itself(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    early = await fleet_server.invite()
    first = read_membership(machine.home.root)
    assert first is not None
    for _ in range(3):  # it was away for two of them
        newest = await rotate_key(fleet_server.database, "test")
    await reconnected(machine)
    known = read_membership(machine.home.root)
    assert known == replace(first, server_key=newest)
    sitter = machine.sit()
    prompt_id = sitter.ask()
    (shown,) = await alice.sees(1)
    assert (await alice.decide(shown, "y"))["accepted"] and prompt_id in sitter.typed
    options = {"ca": "", "screens": True, "rules": "tighten", "ephemeral": False}
    later = await join(early, "later", **options)  # type: ignore[arg-type]
    assert later.server_key == newest
    assert (await fleet_server.events()).count("KEY_ROTATED") == 3
    kept = await fleet_server.database.rows("SELECT private_key FROM desk_identity")
    assert len(kept) == 1  # of the old ones only the public halves are left
    await machine.stop()


async def test_another_server_is_not_believed_even_if_it_names_keys(fleet_server: HubApi, root: Path) -> None:
    invitation = await fleet_server.invite()
    stranger = Invitation(invitation.url, invitation.token, public_of(new_key()))
    await rotate_key(fleet_server.database, "test")
    with pytest.raises(ChannelError, match="another server answers"):
        await join(stranger, "box", ca="", screens=True, rules="tighten", ephemeral=False)


def run(*words: str) -> str:
    result = CliRunner().invoke(command, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


async def test_a_backup_is_put_back_and_machines_go_on(
    database: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{programs()}:{os.environ['PATH']}")
    monkeypatch.setenv("ATLASBRIDGE_FLEET_DATABASE", database)
    saved = root / "fleet.dump"
    async with fleet_server_on(database) as fleet_server:
        machine = await new_machine(fleet_server, root, clock=ManualClock())
        await fleet_server.person("alice", "admin")
        await asyncio.to_thread(run, "backup", str(saved))
        assert saved.stat().st_mode & 0o077 == 0
        await people.add(fleet_server.database, "bert", "member", "test")
        sitter = machine.sit()
        prompt_id = sitter.ask()
        await machine.told_all()
        port = int(fleet_server.url.rpartition(":")[2])
    told = await asyncio.to_thread(run, "restore", str(saved))
    assert "Start the servers" in told and "entries in its audit log" in told
    looking = Database(database)
    await looking.open()
    (listed,) = await machines.listing(looking)
    assert not listed["connected_to"]  # it was when the backup was made
    await looking.close()
    async with fleet_server_on(database, port=port) as fleet_server:
        assert [one["name"] for one in await people.listing(fleet_server.database)] == ["alice"]
        alice = await fleet_server.visitor("alice")
        await machine.connected()
        (shown,) = await alice.sees(1)
        assert shown["prompt_id"] == prompt_id
        assert (await alice.decide(shown, "y"))["accepted"]

        async def known() -> bool:
            return bool((await machines.listing(fleet_server.database))[0]["went_back"])

        await until(known)
        await machine.stop()


async def test_nothing_is_put_back_while_a_server_runs_or_from_a_file_that_is_none(
    database: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{programs()}:{os.environ['PATH']}")
    monkeypatch.setenv("ATLASBRIDGE_FLEET_DATABASE", database)
    serving = Database(database, name=SERVING)
    await serving.open()
    await migrate(serving)
    await people.add(serving, "alice", "admin", "test")
    saved = root / "fleet.dump"
    await asyncio.to_thread(run, "backup", str(saved))
    with pytest.raises(AtlasBridgeError, match="a fleet server uses this database"):
        await asyncio.to_thread(run, "restore", str(saved))
    await serving.close()
    saved.write_bytes(saved.read_bytes()[:-2000])  # half of one
    with pytest.raises(AtlasBridgeError, match="pg_restore"):
        await asyncio.to_thread(run, "restore", str(saved))
    again = Database(database)
    await again.open()
    assert [one["name"] for one in await people.listing(again)] == ["alice"]  # nothing was changed
    await again.close()
