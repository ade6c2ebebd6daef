"""The audit logs of the machines, anchored at the server: who cuts or rewrites one is named."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest
from tests.support.fleet import HubApi, Machine, let_in, new_machine, until

from atlasbridge.core.audit.chain import RESERVED, Head, parse_entry, seal_entry
from atlasbridge.fleet.server.audit import verify_all


async def verdict(fleet_server: HubApi) -> dict[str, str]:
    found = await verify_all(fleet_server.database, 20.0)
    return {one["machine"]: one["verdict"] for one in found["machines"]} | {"ok": str(found["ok"])}


async def busy(machine: Machine, rounds: int = 30) -> None:
    for _ in range(rounds):
        sitter = machine.sit()
        sitter.answer_here(sitter.ask())
    await machine.told_all()


async def test_a_whole_log_is_followed_entry_by_entry(fleet_server: HubApi, root: Path) -> None:
    one, two = await new_machine(fleet_server, root, "one"), await new_machine(fleet_server, root, "two")
    await busy(one)
    assert await verdict(fleet_server) == dict.fromkeys(("one", "two"), "whole, followed entry by entry") | {
        "ok": "True"
    }
    await busy(one, 3)
    assert (await verdict(fleet_server))["ok"] == "True"
    await two.stop()
    await until(lambda: _parted(fleet_server))
    assert "not reached" in (await verdict(fleet_server))["two"]
    await one.stop()


async def _parted(fleet_server: HubApi) -> bool:
    return bool(await fleet_server.database.rows("SELECT 1 FROM machines WHERE name = 'two' AND connected_to = ''"))


async def test_a_log_that_was_cut_is_named(fleet_server: HubApi, root: Path) -> None:
    machine, other = await new_machine(fleet_server, root, "cut"), await new_machine(fleet_server, root, "whole")
    await machine.stop()
    shutil.copytree(machine.home.root, root / "before", ignore=shutil.ignore_patterns("*.sock"))
    await (await machine.start()).connected()
    await busy(machine)
    await machine.stop()
    shutil.rmtree(machine.home.root)
    (root / "before").rename(machine.home.root)  # as from a backup: everything agrees, and is older
    machine.sitters.clear()
    await let_in(fleet_server, await machine.start())
    await until(lambda: _named(fleet_server, "cut"))
    found = await verdict(fleet_server)
    assert "it was cut" in found["cut"] and "whole" in found["whole"] and found["ok"] == "False"
    assert "LOG_FAULT" in await fleet_server.events()
    await machine.stop()
    await other.stop()


async def _named(fleet_server: HubApi, name: str) -> bool:
    return bool(await fleet_server.database.rows("SELECT 1 FROM machines WHERE name = %s AND log_fault <> ''", name))


@pytest.mark.parametrize("rounds", [1, 40])
async def test_a_log_that_was_rewritten_to_the_same_length_and_beyond_is_named(
    fleet_server: HubApi, root: Path, rounds: int
) -> None:
    """Anyone who owns the machine makes a chain that is whole in itself; it does not lead to what was anchored."""
    machine = await new_machine(fleet_server, root, "rewritten")
    await busy(machine, rounds)
    await machine.stop()
    rewrite(machine.home.root / "atlasbridge.db")
    (machine.home.root / "audit.log").unlink()
    (machine.home.root / "audit.head").unlink()
    machine.sitters.clear()
    await (await machine.start()).connected()
    await busy(machine, 2)
    found = await verdict(fleet_server)
    assert "rewritten" in found["rewritten"] and found["ok"] == "False"
    await machine.stop()


def rewrite(path: Path) -> None:
    """The whole chain again, with one word changed in its first entry."""
    store = sqlite3.connect(path)
    for name in ("audit_events_are_never_changed", "audit_events_are_never_deleted"):
        store.execute(f"DROP TRIGGER {name}")
    head = Head(0, "genesis")
    for seq, line in store.execute("SELECT seq, entry FROM audit_events ORDER BY seq").fetchall():
        entry = parse_entry(line)
        assert entry is not None
        fields = {name: value for name, value in entry.items() if name not in RESERVED}
        fields |= {"innocent": True} if seq == 1 else {}
        made, head = seal_entry(head, entry["ts"], entry["event"], fields)
        store.execute("UPDATE audit_events SET entry = ? WHERE seq = ?", (made, seq))
    store.execute("UPDATE audit_head SET count = ?, hash = ?", head)
    store.commit()
    store.close()
