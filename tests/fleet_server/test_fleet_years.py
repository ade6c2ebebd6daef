"""A fleet after years and in trouble: history by rights, retention, limits, notices, and what is not known."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.chat_stage import text_of
from tests.support.fake_telegram import FakeTelegram
from tests.support.fleet import HubApi, fleet_server_on, new_machine, until
from tests.support.old_decisions import add_decisions, history_plans
from tests.support.server_chats import chat_file, sees, telegram_table

from atlasbridge.core.errors import ConfigError, StoreError
from atlasbridge.core.fleet_wire import Invitation
from atlasbridge.fleet.member.joining import join
from atlasbridge.fleet.server import decisions, lists, machines, people, reports


async def joined(fleet_server: HubApi, name: str) -> str:
    invitation: Invitation = await fleet_server.invite()
    membership = await join(invitation, name, ca="", screens=True, rules="none", ephemeral=False)
    return membership.machine_id


async def test_history_is_paged_by_rights_newest_first(fleet_server: HubApi) -> None:
    machine_id = await joined(fleet_server, "box")
    await add_decisions(fleet_server.database, machine_id, 120, "/a")
    await add_decisions(fleet_server.database, machine_id, 30, "/b")
    alice = await fleet_server.person("alice", "admin")
    bert = await fleet_server.person("bert", machine="box", folder="/b", may="see")
    carl = await fleet_server.person("carl")
    first = (await alice.get("/api/v1/decisions", limit=100))["decisions"]
    assert len(first) == 100 and [one["made_at"] for one in first] == sorted(
        (o["made_at"] for o in first), reverse=True
    )
    rest = (await alice.get("/api/v1/decisions", limit=100, before=first[-1]["made_at"]))["decisions"]
    assert len({one["decision_id"] for one in first + rest}) == 150
    assert {one["folder"] for one in (await bert.get("/api/v1/decisions", limit=100))["decisions"]} == {"/b"}
    assert len((await bert.get("/api/v1/decisions", limit=100, person="alice"))["decisions"]) == 30
    assert (await carl.get("/api/v1/decisions"))["decisions"] == []
    assert (await alice.get("/api/v1/decisions", person="bert"))["decisions"] == []


async def test_a_person_gets_the_same_page_from_all_folders_together_and_from_each(
    fleet_server: HubApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last decisions of all folders are read first; where they do not fill a page, each folder is read."""
    database, pages = fleet_server.database, list[list[str]]()
    machine_id = await joined(fleet_server, "box")
    for folder in ("/a", "/b", "/c"):
        await add_decisions(database, machine_id, 20, folder)
    await people.add(database, "alice", "admin", "test")
    await people.add(database, "bert", "member", "test")
    await people.allow(database, "bert", "box", "/c", "see", "test")
    began, statements = database.now(), lists.history_statements
    for last, which in ((500, slice(2)), (5, slice(2)), (500, slice(1, 2))):
        monkeypatch.setattr(lists, "LAST", last)
        monkeypatch.setattr(lists, "history_statements", lambda *given, which=which: statements(*given)[which])
        for limit in (9, 2):  # with more folders than rows, too
            for person, by in (("alice", ""), ("bert", ""), ("alice", "alice"), ("alice", "nobody")):
                before = "" if by else (began - timedelta(seconds=3)).isoformat()
                found = await lists.list_history(database, person, limit, by, before)
                pages.append([one["decision_id"] for one in found])
    assert [len(page) for page in pages[:8]] == [9, 9, 9, 0, 2, 2, 2, 0]
    assert pages[:8] == pages[8:16] == pages[16:]


async def test_decisions_of_one_moment_are_each_on_one_page(fleet_server: HubApi) -> None:
    """Those that came together have one time; a page can end between them."""
    database = fleet_server.database
    machine_id = await joined(fleet_server, "box")
    for folder in ("/a", "/b"):
        await add_decisions(database, machine_id, 20, folder)
    await database.rows("UPDATE decisions SET made_at = %s", database.now())
    alice = await fleet_server.person("alice", "admin")
    bert = await fleet_server.person("bert", machine="box", folder="/b", may="see")
    for visitor, person, count in ((alice, "", 40), (alice, "alice", 40), (bert, "", 20), (bert, "alice", 20)):
        seen, query = list[str](), dict[str, str]()
        while page := (await visitor.get("/api/v1/decisions", limit=7, person=person, **query))["decisions"]:
            seen += [one["decision_id"] for one in page]
            query = {"before": page[-1]["made_at"], "before_id": page[-1]["decision_id"]}
        assert len(seen) == len(set(seen)) == count
        earlier = await visitor.get("/api/v1/decisions", before=query["before"])
        assert earlier["decisions"] == []  # without the id: only those made before that moment


async def test_the_one_plan_for_all_values_finds_decisions_by_an_index(fleet_server: HubApi) -> None:
    """PostgreSQL plans a page once, however often it is read and for whom."""
    database = fleet_server.database
    machine_id = await joined(fleet_server, "box")
    for folder in ("/a", "/b", "/c"):
        await add_decisions(database, machine_id, 8000, folder)
    await database.rows("ANALYZE")
    await people.add(database, "alice", "admin", "test")
    for by in ("", "alice", "bert"):
        last, each = await history_plans(database.url, "alice", by)
        assert "Seq Scan on decisions" not in last + each
        assert ("decisions_by_person on" in last, "decisions_by_place_and_person on" in each) == (by != "", by != "")


async def test_what_ended_long_ago_goes_in_batches_and_nothing_else(
    fleet_server: HubApi, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "BATCH", 50)
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    open_id = machine.sit().ask()
    await alice.sees(1)
    await add_decisions(fleet_server.database, machine.membership.machine_id, 200, "/a")
    since = fleet_server.database.now() - timedelta(seconds=100)
    removed = []
    while gone := await reports.clean(fleet_server.database, 100.0):
        removed.append(gone)
    assert len(removed) >= 2 and max(removed) <= 100
    left = await fleet_server.database.rows("SELECT prompt_id, is_open, ended_at FROM prompts")
    assert all(one["is_open"] or one["ended_at"] > since - timedelta(seconds=5) for one in left)
    assert open_id in {one["prompt_id"] for one in left} and 90 <= len(left) <= 102
    assert len(await fleet_server.database.rows("SELECT 1 FROM decisions")) == len(left) - 1
    assert "JOINED" in await fleet_server.events()
    await machine.stop()


async def test_a_machine_with_too_many_open_prompts_hears_so_and_tells_them_again_once_there_is_room(
    fleet_server: HubApi, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "MOST_OPEN", 4)
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    for number in range(4):
        machine.sit(label=f"old {number}").ask()
    await alice.sees(4)
    late = machine.sit(label="late")
    prompt_id = late.ask()
    await until(lambda: "open prompts" in machine.health.get("notice", ""))
    await machine.told_all()
    assert prompt_id not in {one["prompt_id"] for one in await alice.prompts()}
    for shown in (await alice.prompts())[:3]:
        assert (await alice.decide(shown, "y"))["accepted"]

    async def has_come() -> bool:
        return prompt_id in {one["prompt_id"] for one in await alice.prompts()}

    await until(has_come)
    assert "notice" not in machine.health or "open prompts" not in machine.health["notice"]
    await machine.stop()


async def test_a_prompt_that_is_too_long_is_kept_short_and_says_so(fleet_server: HubApi, root: Path) -> None:
    long = {"state": "routed", "session_id": "s", "cwd": "/", "question": "x" * 1_000_000, "excerpt": "Go?"}
    kept = reports.bounded(long)
    assert kept["whole"] is False and kept["excerpt"] == "Go?" and len(str(kept)) < 1000
    with_screen = {**long, "question": "Go?", "screen": "x" * 1_000_000}
    assert reports.bounded(with_screen) == {**with_screen, "screen": "", "evidence": [], "whole": False}
    assert reports.bounded({"state": "routed"}) == {"state": "routed"}


async def test_a_notice_reaches_the_page_and_the_chats_of_those_who_can_see_the_machine(
    database: str, root: Path
) -> None:
    with FakeTelegram() as telegram:
        config = chat_file(root, telegram=telegram_table(telegram))
        async with fleet_server_on(database, chats=config) as fleet_server:
            await fleet_server.in_chat("ada", "telegram:1001", "admin")
            await fleet_server.in_chat("bob", "telegram:1002")
            ada, bob = telegram.person(1001), telegram.person(1002)
            machine = await new_machine(fleet_server, root)
            await until(lambda: fleet_server.carries)
            machine.hub.router.notify("the nightly build is done")
            assert "box: the nightly build is done" in text_of(await sees(ada, "nightly"))
            visitor = await fleet_server.visitor("ada")
            (told,) = (await visitor.get("/api/v1/notices"))["notices"]
            assert (told["machine"], told["message"]) == ("box", "the nightly build is done")
            assert (await (await fleet_server.visitor("bob")).get("/api/v1/notices"))["notices"] == []
            assert not [one for one in bob.sees() if "nightly" in text_of(one)]
            await machine.stop()


async def test_an_answer_whose_commit_was_not_heard_of_is_found_by_its_key(
    fleet_server: HubApi, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    sitter = machine.sit()
    sitter.ask()
    (shown,) = await alice.sees(1)
    real = decisions.propose

    async def broken(*given: Any) -> Any:
        await real(*given)
        raise StoreError("the connection broke", "")

    monkeypatch.setattr(decisions, "propose", broken)
    lost = await alice.decide(shown, "y", key="k1")
    assert lost["status"] == 503 and lost["reason"] == "unknown" and "not known" in lost["message"]
    monkeypatch.setattr(decisions, "propose", real)

    outcome = f"/api/v1/prompts/{shown['machine_id']}.{shown['prompt_id']}/outcome"

    async def known() -> bool:
        found = await alice.get(outcome, request_key="k1")
        return bool(found["arrived"] and not found["refused"] and found["prompt"]["decided_by"])

    fleet_server.context.wakeups.tell(f"machine:{machine.membership.machine_id}")
    await until(known)
    assert len(sitter.typed) == 1
    assert (await alice.get(outcome, request_key="never-sent"))["arrived"] is False
    await machine.stop()


async def test_rights_of_a_machine_do_not_pass_to_another_one_of_its_name(fleet_server: HubApi) -> None:
    first = await joined(fleet_server, "prod")
    await people.add(fleet_server.database, "bert", "member", "test")
    await people.allow(fleet_server.database, "bert", "prod", "*", "answer", "test")
    bert = await fleet_server.visitor("bert")
    assert [one["machine_id"] for one in (await bert.get("/api/v1/machines"))["machines"]] == [first]
    await machines.remove(fleet_server.database, "prod", "test", "revoked")
    second = await joined(fleet_server, "prod")
    assert (await bert.get("/api/v1/machines"))["machines"] == []
    await people.allow(fleet_server.database, "bert", "prod", "*", "answer", "test")
    assert [one["machine_id"] for one in (await bert.get("/api/v1/machines"))["machines"]] == [second]


async def test_names_that_nobody_has_are_refused(fleet_server: HubApi) -> None:
    await people.add(fleet_server.database, "bert", "member", "test")
    for call in (
        people.set_team(fleet_server.database, "ops", "nobodyhere", True, "test"),
        people.set_team(fleet_server.database, "ops", "bert", False, "test"),
        people.set_team(fleet_server.database, "", "bert", True, "test"),
        people.allow(fleet_server.database, "@ops", "*", "*", "see", "test"),
        people.allow(fleet_server.database, "nobodyhere", "*", "*", "see", "test"),
        people.allow(fleet_server.database, "bert", "no-such-machine", "*", "see", "test"),
    ):
        with pytest.raises(ConfigError):
            await call
    await people.set_team(fleet_server.database, "ops", "bert", True, "test")
    await people.allow(fleet_server.database, "@ops", "*", "*", "see", "test")
    await asyncio.sleep(0)
