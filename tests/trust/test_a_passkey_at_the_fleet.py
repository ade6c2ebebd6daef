"""A rule's `proof = "passkey"` at a fleet's page: the machine decides which keys count, whatever the server says."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.fleet_server.conftest import database, fleet_server, root, server
from tests.integration.test_hub_rules import ruled_hub
from tests.support.fleet import HubApi, Machine, Sitter, Visitor, new_machine, until
from tests.support.hubs import hub_process
from tests.support.soft_authenticator import VERIFIED, SoftAuthenticator
from tests.trust.test_a_passkey_where_it_matters import RULES as LOCAL_RULES
from tests.trust.test_a_passkey_where_it_matters import asked
from tests.trust.test_a_passkey_where_it_matters import enrol as local_key

from atlasbridge.core.audit.passkeys import LogWalk, PasskeyRefused, Passkeys, challenge_of
from atlasbridge.core.prompt.answer import decide_answer
from atlasbridge.core.prompt.keys import Step
from atlasbridge.core.prompt.model import (
    Answer,
    Choice,
    InboundReply,
    Prompt,
    PromptType,
    Refusal,
    Reject,
    Subject,
    SubjectKind,
    SubjectSource,
)
from atlasbridge.fleet.server import decisions, machines, people

__all__ = ["database", "fleet_server", "root", "server"]
pytestmark = pytest.mark.heavy

RULES = '[[rule]]\nname = "signed"\nverdict = "ask"\nproof = "passkey"\ncommand = ["git", "push", "**"]\n'
PUSH = Prompt(
    PromptType.TYPE_MULTIPLE_CHOICE,
    0.95,
    "Run it?",
    choices=(
        Choice("1", "Yes", (Step(b"1"),)),
        Choice("2", "Yes, and don't ask again", (Step(b"2"),), always=True),
        Choice("3", "No", (Step(b"3"),), refuses=True),
    ),
    digest="d9",
    subject=Subject(SubjectKind.COMMAND, "git push", "/srv", SubjectSource.HOOK, True, "git push"),
)
FLEET = "https://fleet.example"


def phone_of(fleet_server: HubApi) -> SoftAuthenticator:
    return SoftAuthenticator("localhost", by_name(fleet_server.url))


def by_name(url: str) -> str:
    return url.replace("127.0.0.1", "localhost")


async def person(fleet_server: HubApi, name: str = "alice", role: str = "admin") -> Visitor:
    """Somebody who opened the page by its name, as passkeys need it."""
    await people.add(fleet_server.database, name, role, "test")
    return await fleet_server.visitor(name, by_name(fleet_server.url))


async def enrol(visitor: Visitor, phone: SoftAuthenticator, name: str = "phone") -> str:
    """On the page. Returns the command for the machines."""
    begun = (await visitor.post("/api/v1/passkeys/begin")).json()
    made = await visitor.post("/api/v1/passkeys", **phone.create(begun["challenge"]), name=name)
    assert made.status_code == 200, made.text
    (kept,) = [one for one in (await visitor.get("/api/v1/passkeys"))["passkeys"] if one["key_id"] == phone.key_id]
    return str(kept["accept"])


def accept(machine: Machine, command: str) -> dict[str, Any]:
    """In a terminal of the machine."""
    words = shlex.split(command)
    assert words[:3] == ["atlasbridge", "passkey", "accept"] and words[4] == "--"
    who, page, key = words[5:]
    return keys_of(machine).accept(who, page, key, words[3].partition("=")[2], "cli:local")


def keys_of(machine: Machine) -> Passkeys:
    return machine.hub.replies.passkeys


async def sign(
    visitor: Visitor, phone: SoftAuthenticator, prompt: dict[str, Any], value: str, offered: bool = True, **lies: Any
) -> Any:
    path = f"/api/v1/prompts/{prompt['machine_id']}.{prompt['prompt_id']}/challenge"
    answer = await visitor.post(path, value=value)
    assert answer.status_code == 200, answer.text
    assert answer.json()["needed"] and (phone.key_id in answer.json()["keys"]) is offered
    return phone.sign(answer.json()["challenge"], **lies)


@asynccontextmanager
async def asking(fleet_server: HubApi, root: Path, rules: str = RULES) -> AsyncIterator[tuple[Machine, Sitter]]:
    """A machine with the rule."""
    machine = await new_machine(fleet_server, root)
    digest = await machines.set_rules(fleet_server.database, rules, "test")
    fleet_server.context.wakeups.tell(f"job:{machine.membership.machine_id}")

    async def uses() -> bool:
        query = "SELECT 1 FROM machines WHERE policy = %s AND policy_fault = ''"
        return bool(await fleet_server.database.rows(query, digest))

    await until(uses)
    yield machine, machine.sit()
    await machine.stop()


async def test_whoever_signs_at_the_fleets_page_with_an_accepted_key_approves_once(
    fleet_server: HubApi, root: Path
) -> None:
    phone = phone_of(fleet_server)
    async with asking(fleet_server, root) as (machine, sitter):
        alice = await person(fleet_server)
        accept(machine, await enrol(alice, phone))
        push = sitter.ask(PUSH)
        (shown,) = await alice.sees(1)
        signed = await sign(alice, phone, shown, "1")
        told = await alice.decide(shown, "1", key="once", passkey=signed)
        assert told["accepted"] and sitter.typed[push]["value"] == "1", told
        again = await alice.decide(shown, "1", key="once", passkey=signed)
        assert again["accepted"] and sitter.orders == [push]
        late = await alice.decide(shown, "1", passkey=signed)
        assert not late["accepted"] and late["stage"] == "not_open"
        (entry,) = machine.hub.ledger.audit_entries(prompt_id=push, event="REPLY_RECEIVED")
        assert entry["passkey"]["key_id"] == phone.key_id and entry["decided_by"] == "server:alice"
        assert machine.hub.ledger.prepare_verify()().ok


async def test_the_page_asks_for_the_key_that_the_machine_has_accepted(fleet_server: HubApi, root: Path) -> None:
    phone, other = phone_of(fleet_server), phone_of(fleet_server)
    async with asking(fleet_server, root) as (machine, sitter):
        alice = await person(fleet_server)
        await enrol(alice, other, "another machine's")
        accept(machine, await enrol(alice, phone))
        sitter.ask(PUSH)
        (shown,) = await alice.sees(1)
        path = f"/api/v1/prompts/{shown['machine_id']}.{shown['prompt_id']}/challenge"
        assert (await alice.post(path, value="1")).json()["keys"] == [phone.key_id]
        unsigned = await alice.decide(shown, "1")
        assert unsigned["stage"] == "needs_passkey" and "on the fleet's page" in unsigned["message"], unsigned


async def test_refusing_at_the_fleets_page_needs_no_key(fleet_server: HubApi, root: Path) -> None:
    async with asking(fleet_server, root) as (_, sitter):
        alice = await person(fleet_server)
        push = sitter.ask(PUSH)
        (shown,) = await alice.sees(1)
        path = f"/api/v1/prompts/{shown['machine_id']}.{shown['prompt_id']}/challenge"
        assert (await alice.post(path, value="3")).json()["needed"] is False
        wanted = await alice.post(path, value="1")
        assert wanted.status_code == 403 and "no passkey for this page" in wanted.json()["message"]
        assert (await alice.decide(shown, "3"))["accepted"] and sitter.typed[push]["value"] == "3"


async def test_a_server_that_enrols_a_key_of_its_own_approves_nothing(fleet_server: HubApi, root: Path) -> None:
    """It signs everything right, in the name of a person whose key the machine accepts."""
    phone, own = phone_of(fleet_server), phone_of(fleet_server)
    async with asking(fleet_server, root) as (machine, sitter):
        alice = await person(fleet_server)
        accept(machine, await enrol(alice, phone))
        await enrol(alice, own, "the server's")  # nobody accepted it on the machine
        push = sitter.ask(PUSH)
        (shown,) = await alice.sees(1)
        told = await alice.decide(shown, "1", passkey=await sign(alice, own, shown, "1", offered=False))
        assert not told["accepted"] and told["stage"] == "needs_passkey" and "not enrolled" in told["message"], told
        assert sitter.orders == [] and push not in sitter.typed
        renamed = {
            **await sign(alice, own, shown, "1", offered=False),
            "key_id": phone.key_id,
        }  # it says that it is the right one
        told = await alice.decide(shown, "1", passkey=renamed)
        assert not told["accepted"] and told["stage"] == "needs_passkey" and sitter.orders == []


async def test_no_message_of_the_server_adds_a_key(fleet_server: HubApi, root: Path) -> None:
    """Whatever it sends down the link, and in anyone's name."""
    own = phone_of(fleet_server)
    async with asking(fleet_server, root) as (machine, sitter):
        alice = await person(fleet_server)
        push = sitter.ask(PUSH)
        (shown,) = await alice.sees(1)
        await enrol(alice, own)
        signed = {**await sign(alice, own, shown, "1"), "origins": [own.origin], "public_key": "00", "person": ""}
        wish = decisions.Proposal(shown["machine_id"], push, "alice", "1", passkey=signed)
        made = await decisions.propose(fleet_server.database, wish)
        assert isinstance(made, decisions.Decision)
        done = await fleet_server.context.pass_on(made, "alice", 20.0)
        assert done.settled and not done.ok and done.stage == "needs_passkey", done
        assert sitter.orders == [] and keys_of(machine).all() == []


LIES: dict[str, dict[str, Any]] = {
    "another page": {"origin": "https://evil.example"},
    "another port": {"origin": "http://localhost:1"},
    "nobody touched it": {"flags": VERIFIED},
    "inside another page": {"crossOrigin": True},
}


async def test_a_signature_counts_for_its_page_prompt_and_answer_alone(fleet_server: HubApi, root: Path) -> None:
    phone = phone_of(fleet_server)
    async with asking(fleet_server, root) as (machine, sitter):
        alice = await person(fleet_server)
        accept(machine, await enrol(alice, phone))
        sitter.ask(PUSH)
        (shown,) = await alice.sees(1)
        for lie in LIES.values():
            told = await alice.decide(shown, "1", passkey=await sign(alice, phone, shown, "1", **lie))
            assert not told["accepted"] and told["stage"] == "needs_passkey", lie
        once = await sign(alice, phone, shown, "1")
        always = await alice.decide(shown, "2", passkey=once)
        assert not always["accepted"] and always["stage"] == "needs_passkey"
        sitter.answer_here(shown["prompt_id"])
        await alice.sees(0)
        again = sitter.ask(PUSH)  # the same words once more are another prompt
        (shown_again,) = await alice.sees(1)
        late = await alice.decide(shown_again, "1", passkey=once)
        assert not late["accepted"] and late["stage"] == "needs_passkey" and again not in sitter.typed
        assert sitter.orders == []


async def test_a_key_that_was_removed_on_the_machine_approves_nothing(fleet_server: HubApi, root: Path) -> None:
    phone = phone_of(fleet_server)
    async with asking(fleet_server, root) as (machine, sitter):
        alice = await person(fleet_server)
        accept(machine, await enrol(alice, phone))
        sitter.ask(PUSH)
        (shown,) = await alice.sees(1)
        signed = await sign(alice, phone, shown, "1")
        assert keys_of(machine).remove("phone", "cli:local") == "phone"
        told = await alice.decide(shown, "1", passkey=signed)
        assert not told["accepted"] and "removed" in told["message"] and sitter.orders == []


async def test_one_signature_is_not_two_peoples_approval(fleet_server: HubApi, root: Path) -> None:
    phone = phone_of(fleet_server)
    async with asking(fleet_server, root, RULES + "approvals = 2\n") as (machine, sitter):
        alice, bert = await person(fleet_server), await person(fleet_server, "bert")
        accept(machine, await enrol(alice, phone))
        push = sitter.ask(PUSH)
        (shown,) = await alice.sees(1)
        signed = await sign(alice, phone, shown, "1")
        assert (await alice.decide(shown, "1", passkey=signed))["stage"] == "voted"
        told = await bert.decide(shown, "1", passkey=signed)
        assert not told["accepted"] and "belongs to server:alice" in told["message"] and push not in sitter.typed
        other = phone_of(fleet_server)
        accept(machine, await enrol(bert, other))
        told = await bert.decide(shown, "1", passkey=await sign(bert, other, shown, "1"))
        assert told["accepted"] and sitter.typed[push]["value"] == "1", told
        assert machine.hub.ledger.prepare_verify()().ok


async def test_a_person_enrols_and_removes_their_own_passkeys_in_a_browser_alone(
    fleet_server: HubApi, root: Path
) -> None:
    alice, bert, phone = await person(fleet_server), await person(fleet_server, "bert"), phone_of(fleet_server)
    await enrol(alice, phone)
    assert (await bert.get("/api/v1/passkeys"))["passkeys"] == []
    path = f"/api/v1/passkeys/{phone.key_id}"
    assert (await bert.client.delete(path)).status_code == 404
    stolen = await alice.post("/api/v1/passkeys/begin")
    made = phone_of(fleet_server).create(stolen.json()["challenge"])
    assert (await bert.post("/api/v1/passkeys", **made)).status_code == 409  # it was begun by somebody else
    token, _ = await people.add_token(fleet_server.database, "alice", "ci", "admin", "test")
    program = Visitor(by_name(fleet_server.url))
    program.client.headers["Authorization"] = f"Bearer {token}"
    refused = await program.post("/api/v1/passkeys/begin")
    assert refused.status_code == 409 and refused.json()["error"] == "not_a_browser"
    assert (await alice.client.delete(path)).json() == {"removed": True}
    assert {"PASSKEY_ADDED", "PASSKEY_REMOVED"} <= set(await fleet_server.events())
    by_address = await fleet_server.visitor("alice")
    assert "only for a name" in (await by_address.post("/api/v1/passkeys/begin")).json()["message"]
    await program.client.aclose()


# What needs no server: the machine's own list.


def test_a_person_accepts_lists_and_removes_a_key_by_commands_and_a_tool_does_not() -> None:
    phone = SoftAuthenticator("fleet.example", FLEET)
    cose = phone.create("00" * 32)["attestation"]
    public_key = cose[cose.index(phone.key_id) + len(phone.key_id) :]
    words = ("passkey", "accept", "--name=laptop", "--", "alice", FLEET, f"{phone.key_id}.{public_key}")
    with hub_process("[channels.web]\nport = 0\n") as hub:
        inside = hub.cli("run", "--", *hub.command(*words))
        assert inside.returncode != 0 and hub.json("passkey", "list") == []
        done = hub.cli(*words)
        assert done.returncode == 0 and 'Accepted "laptop" of alice' in done.stdout, done.stderr
        (kept,) = hub.json("passkey", "list")
        assert (kept["person"], kept["rp_id"], kept["name"]) == ("server:alice", "fleet.example", "laptop")
        (entry,) = hub.json("audit", "show", "--event", "PASSKEY_ADDED")
        assert (entry["person"], entry["origin"], entry["confirmed_by"]) == ("server:alice", FLEET, "terminal")
        again = hub.cli(*words)
        assert again.returncode != 0 and "already" in again.stderr
        assert hub.cli("passkey", "remove", "laptop").returncode == 0 and hub.json("passkey", "list") == []


def text_of(phone: SoftAuthenticator, keys: Passkeys) -> str:
    """The key as a fleet's page shows it."""
    from atlasbridge.core.audit.passkeys import check_new_key

    begun = keys.begin(phone.rp_id)
    key_id, public_key, _ = check_new_key(
        phone.create(begun["challenge"]), bytes.fromhex(begun["challenge"]), phone.rp_id, [phone.origin]
    )
    return f"{key_id}.{public_key}"


async def test_what_is_no_key_of_a_fleets_page_is_not_accepted() -> None:
    async with ruled_hub(LOCAL_RULES) as live:
        keys = live.hub.replies.passkeys
        key = text_of(SoftAuthenticator("fleet.example", FLEET), keys)
        for origin in (
            "http://fleet.example",
            "https://10.0.0.7",
            "fleet.example",
            "https://fleet.example/x",
            "https://[",
            "",
        ):
            with pytest.raises(PasskeyRefused):
                keys.accept("alice", origin, key, "", "cli:local")
        for wrong in ("", "ab", "ab.", "zz.zz", key[:-2], "ab.a10102", f"{key}.00"):
            with pytest.raises(PasskeyRefused):
                keys.accept("alice", FLEET, wrong, "", "cli:local")
        for nobody in ("", " ", "a\nb"):
            with pytest.raises(PasskeyRefused):
                keys.accept(nobody, FLEET, key, "", "cli:local")
        kept = keys.accept("alice", FLEET + "/", key, "phone", "cli:local")
        assert (kept["person"], kept["rp_id"], kept["by"]) == ("server:alice", "fleet.example", "cli:local")
        with pytest.raises(PasskeyRefused, match="already"):
            keys.accept("bert", FLEET, key, "", "cli:local")


@pytest.mark.parametrize("who", ["web:phone", "cli:local", "telegram:1001", "server:bert"])
async def test_a_fleets_key_signs_for_its_person_alone(who: str) -> None:
    """Not at the hub's own page either, and it enrols no other key there."""
    async with ruled_hub(LOCAL_RULES) as live:
        keys = live.hub.replies.passkeys
        phone = SoftAuthenticator("localhost", "http://localhost:8460")
        keys.accept("alice", phone.origin, text_of(phone, keys), "", "cli:local")
        host, record = await asked(live)
        answer = decide_answer(record.prompt, "1")
        assert isinstance(answer, Answer)
        signed = {**phone.sign(challenge_of(record, answer).hex()), "origins": [phone.origin]}
        refused = keys.check(record, InboundReply("memory", who, record.prompt_id, "1", passkey=signed), answer)
        assert isinstance(refused, Reject) and refused.reason is Refusal.NEEDS_PASSKEY
        begun = keys.begin("localhost")
        assert begun["keys"] == []
        other = SoftAuthenticator()
        confirmed = {**other.create(begun["challenge"]), "confirm": phone.sign(begun["challenge"])}
        with pytest.raises(PasskeyRefused, match="not enrolled"):
            keys.add(confirmed, [phone.origin, other.origin], "web:phone")
        host.close()


async def test_a_key_of_the_hubs_own_page_signs_nothing_for_a_fleet() -> None:
    """The server could say that any page of this machine is the hub's own, and such a page could ask for the key."""
    async with ruled_hub(LOCAL_RULES) as live:
        keys = live.hub.replies.passkeys
        phone = SoftAuthenticator("localhost", "http://localhost:9999")
        local_key(keys, phone)
        host, record = await asked(live)
        answer = decide_answer(record.prompt, "1")
        assert isinstance(answer, Answer)
        signed = {**phone.sign(challenge_of(record, answer).hex()), "origins": [phone.origin]}
        reply = InboundReply("server", "server:alice", record.prompt_id, "1", passkey=signed)
        refused = keys.check(record, reply, answer)
        assert isinstance(refused, Reject) and refused.reason is Refusal.NEEDS_PASSKEY
        host.close()


async def test_the_log_names_another_persons_signature_and_another_page() -> None:
    async with ruled_hub(LOCAL_RULES) as live:
        keys = live.hub.replies.passkeys
        phone = SoftAuthenticator("fleet.example", FLEET)
        keys.accept("alice", FLEET, text_of(phone, keys), "", "cli:local")
        host, record = await asked(live)
        answer = decide_answer(record.prompt, "1")
        assert isinstance(answer, Answer)
        wanted = challenge_of(record, answer).hex()
        reply = InboundReply("server", "server:alice", record.prompt_id, "1", passkey=phone.sign(wanted))
        noted = keys.check(record, reply, answer)
        assert isinstance(noted, dict)
        ids = {"prompt_id": record.prompt_id, "session_id": record.session_id, "kind": "choice", "value": "1"}
        cast = {**ids, **noted, "event": "VOTE_CAST", "seq": 99, "decided_by": "server:alice"}
        elsewhere = phone.sign(wanted, origin="https://fleet.example:8443")
        entries = live.hub.ledger.audit_entries(limit=1000)
        for entry, fault in (
            (cast, ""),
            ({**cast, "decided_by": "server:bert"}, "another person's"),
            ({**cast, "event": "REPLY_RECEIVED"}, ""),
            ({**cast, "event": "REPLY_RECEIVED", "decided_by": "server:bert"}, "another person's"),
            ({**cast, "passkey": {**noted["passkey"], **elsewhere}}, "does not fit"),
        ):
            walk = LogWalk()
            assert [found for one in entries if (found := walk.take(one))] == []
            found = walk.take(entry)
            assert (found is None) if not fault else (found is not None and fault in found.problem), found
        host.close()
