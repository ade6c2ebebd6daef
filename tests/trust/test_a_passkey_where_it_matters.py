"""A rule that says `proof = "passkey"`: nothing but an enrolled key agrees, and the log shows it without the hub."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest
from tests.integration.test_hub_rules import ask, asking, local, ruled_hub
from tests.support.fake_host import FakeHost
from tests.support.hubs import LiveHub
from tests.support.soft_authenticator import PRESENT, VERIFIED, SoftAuthenticator
from tests.support.waiting import in_thread, until

from atlasbridge.channels.templates import Role, render_buttons, render_hint
from atlasbridge.core.audit.passkeys import LogWalk, PasskeyRefused, Passkeys, digest_question, why_not_here
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.policy.reader import read_policy
from atlasbridge.core.prompt.model import InboundReply, PromptRecord, Receipt, Refusal, Reject
from atlasbridge.core.prompt.redact import redact_data
from atlasbridge.core.routing.shell_parser import ShellParser
from atlasbridge.core.store.verify import verify_home
from atlasbridge.core.values import replace

PAGE = "http://localhost:8484"
RULES = """
[[rule]]
name = "deploys"
verdict = "ask"
command = ["terraform", "apply", "**"]
proof = "passkey"

[[rule]]
name = "allow-echo"
verdict = "allow"
command = ["echo", "**"]
"""
DEPLOY = "terraform apply -auto-approve"


def enrol(keys: Passkeys, phone: SoftAuthenticator, *, code: str | None = None, **more: Any) -> dict[str, Any]:
    begun = keys.begin(phone.rp_id)
    wanted = {**phone.create(begun["challenge"]), "name": "phone", **more}
    return keys.add({**wanted, "code": keys.make_code() if code is None else code}, [phone.origin], "web:phone")


def signed(keys: Passkeys, phone: SoftAuthenticator, record: PromptRecord, value: str = "1", **lies: Any) -> Any:
    wanted = keys.ask(record, value, False, phone.rp_id)
    assert not isinstance(wanted, Reject) and wanted["needed"], wanted
    return phone.sign(wanted["challenge"], **lies)


def from_page(record: PromptRecord, value: str, passkey: Any, origins: tuple[str, ...] = (PAGE,)) -> InboundReply:
    passkey = {**passkey, "origins": list(origins)} if passkey else {}
    return InboundReply("memory", "memory:ada", record.prompt_id, value, passkey=passkey)


async def asked(live: LiveHub, text: str = DEPLOY, host: FakeHost | None = None) -> tuple[FakeHost, PromptRecord]:
    asker, prompt_id = await ask(live, asking(text), host)
    return asker, live.record(prompt_id)


async def give(live: LiveHub, host: FakeHost, reply: InboundReply) -> Receipt | Reject:
    """The hub's verdict; where it types, the host does as it is told."""
    replying = asyncio.create_task(live.hub.replies.reply(reply))
    typing = asyncio.create_task(in_thread(host.answer_typing))
    await asyncio.wait({replying, typing}, return_when=asyncio.FIRST_COMPLETED)
    if replying.done() and isinstance(replying.result(), Reject):
        typing.cancel()
    return await replying


async def test_an_agreement_with_the_enrolled_key_is_typed_and_its_signature_is_in_the_log() -> None:
    async with ruled_hub(RULES) as live:
        phone = SoftAuthenticator()
        enrol(live.hub.replies.passkeys, phone)
        host, record = await asked(live)
        assert record.prompt.constraints["proof"]["rule"] == "deploys"
        outcome = await give(live, host, from_page(record, "1", signed(live.hub.replies.passkeys, phone, record)))
        assert isinstance(outcome, Receipt), outcome
        (entry,) = live.hub.ledger.audit_entries(prompt_id=record.prompt_id, event="REPLY_RECEIVED")
        assert entry["passkey"]["key_id"] == phone.key_id
        assert entry["passkey"]["question"] == digest_question(record.prompt)
        verdict = await asyncio.to_thread(live.hub.ledger.prepare_verify())
        assert verdict.ok, verdict.sentence
        host.close()


@pytest.mark.parametrize("value", ["3", "n", "no"])
async def test_refusing_never_needs_a_key(value: str) -> None:
    async with ruled_hub(RULES) as live:
        enrol(live.hub.replies.passkeys, SoftAuthenticator())
        host, record = await asked(live)
        assert isinstance(await give(live, host, from_page(record, value, None)), Receipt)
        assert (await asyncio.to_thread(live.hub.ledger.prepare_verify())).ok
        host.close()


async def test_a_worded_refusal_needs_no_key_either() -> None:
    async with ruled_hub(RULES) as live:
        host, prompt_id = await ask(live, asking(DEPLOY, words=True))
        reply = replace(from_page(live.record(prompt_id), "use staging first", None), as_text=True)
        assert isinstance(await give(live, host, reply), Receipt)
        assert (await asyncio.to_thread(live.hub.ledger.prepare_verify())).ok
        host.close()


@pytest.mark.parametrize("who", ["cli:local", "memory:ada", "hub:Grace", "web:token/ci"])
async def test_whoever_has_no_key_agrees_to_nothing(who: str) -> None:
    """A command, a chat, a fleet's server that somebody has taken over, a stolen token or cookie."""
    async with ruled_hub(RULES) as live:
        live.hub.ledger.remember("web.page", PAGE)
        host, record = await asked(live)
        channel = "local" if who == "cli:local" else "memory"
        outcome = await live.hub.replies.reply(InboundReply(channel, who, record.prompt_id, "1"))
        assert isinstance(outcome, Reject) and outcome.reason is Refusal.NEEDS_PASSKEY
        assert f"{PAGE}/#prompt/{record.prompt_id}" in outcome.sentence
        assert live.record(record.prompt_id).state is record.state
        assert host.typed == []
        host.close()


OTHER = SoftAuthenticator()
LIES: dict[str, dict[str, Any]] = {
    "another page of this machine": {"origin": "http://localhost:9999"},
    "another site": {"origin": "https://evil.example"},
    "another name": {"rp_id": "evil.example"},
    "nobody touched it": {"flags": VERIFIED},
    "nobody unlocked it": {"flags": PRESENT},
    "another key": {"key": OTHER.key},
    "made for enrolling": {"kind": "webauthn.create"},
    "inside another page": {"crossOrigin": True},
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_signature_that_is_not_all_right_agrees_to_nothing(lie: str) -> None:
    async with ruled_hub(RULES) as live:
        phone = SoftAuthenticator()
        enrol(live.hub.replies.passkeys, phone)
        host, record = await asked(live)
        passkey = signed(live.hub.replies.passkeys, phone, record, **LIES[lie])
        outcome = await live.hub.replies.reply(from_page(record, "1", passkey))
        assert isinstance(outcome, Reject) and outcome.reason is Refusal.NEEDS_PASSKEY, outcome
        host.close()


async def test_a_signature_counts_for_one_answer_to_one_prompt() -> None:
    async with ruled_hub(RULES) as live:
        phone = SoftAuthenticator()
        keys = live.hub.replies.passkeys
        enrol(keys, phone)
        host, record = await asked(live)
        once = signed(keys, phone, record, "1")
        always = await live.hub.replies.reply(from_page(record, "2", once))
        assert isinstance(always, Reject) and always.reason is Refusal.NEEDS_PASSKEY
        host.withdraw(record.prompt_id)
        await live.event("prompt.withdrawn")
        _, again = await asked(live, host=host)  # the same words once more are another prompt
        late = await live.hub.replies.reply(from_page(again, "1", once))
        assert isinstance(late, Reject) and late.reason is Refusal.NEEDS_PASSKEY
        host.close()


async def test_a_counter_that_goes_back_is_a_copied_key() -> None:
    async with ruled_hub(RULES) as live:
        phone = SoftAuthenticator()
        phone.count = 7
        enrol(live.hub.replies.passkeys, phone)
        host, record = await asked(live)
        phone.count = 3
        outcome = await live.hub.replies.reply(from_page(record, "1", signed(live.hub.replies.passkeys, phone, record)))
        assert isinstance(outcome, Reject) and "count" in outcome.sentence
        host.close()


async def test_a_removed_key_agrees_to_nothing_and_everybody_is_told() -> None:
    async with ruled_hub(RULES) as live:
        keys = live.hub.replies.passkeys
        phone = SoftAuthenticator()
        await until(lambda: live.people, "the channel")
        enrol(keys, phone)
        host, record = await asked(live)
        passkey = signed(keys, phone, record)
        assert keys.remove(phone.key_id[:12], "cli:local") == "phone"
        outcome = await live.hub.replies.reply(from_page(record, "1", passkey))
        assert isinstance(outcome, Reject) and "removed" in outcome.sentence
        await until(lambda: any("was removed" in told for told in live.person.notices), f"{live.person.notices}")
        assert any("was added" in told for told in live.person.notices)
        events = [entry["event"] for entry in live.hub.ledger.audit_entries() if "PASSKEY" in entry["event"]]
        assert events == ["PASSKEY_ADDED", "PASSKEY_REMOVED"]
        host.close()


async def test_nobody_enrols_a_key_with_a_login_alone() -> None:
    async with ruled_hub(RULES) as live:
        keys = live.hub.replies.passkeys
        for code in ("", "0" * 32):
            with pytest.raises(PasskeyRefused, match="needs a code"):
                enrol(keys, SoftAuthenticator(), code=code)
        code = keys.make_code()
        enrol(keys, SoftAuthenticator(), code=code)
        with pytest.raises(PasskeyRefused, match="needs a code"):
            enrol(keys, SoftAuthenticator(), code=code)
        live.advance(1)
        code = keys.make_code()
        live.advance(601)
        with pytest.raises(PasskeyRefused, match="needs a code"):
            enrol(keys, SoftAuthenticator(), code=code)
        assert len(keys.list_all()) == 1


async def test_an_enrolled_key_confirms_another_one_of_its_page() -> None:
    async with ruled_hub(RULES) as live:
        keys = live.hub.replies.passkeys
        first, second, stranger = SoftAuthenticator(), SoftAuthenticator(), SoftAuthenticator()
        enrol(keys, first)
        begun = keys.begin("localhost")
        assert begun["keys"] == [first.key_id]
        confirmed = {**second.create(begun["challenge"]), "confirm": first.sign(begun["challenge"])}
        keys.add(confirmed, [PAGE], "web:laptop")
        begun = keys.begin("localhost")
        forged = {**stranger.create(begun["challenge"]), "confirm": stranger.sign(begun["challenge"])}
        with pytest.raises(PasskeyRefused, match="not enrolled"):
            keys.add(forged, [PAGE], "web:laptop")
        assert [key["key_id"] for key in keys.list_all()] == [first.key_id, second.key_id]


async def test_a_new_key_must_come_from_the_pages_own_address_with_a_fresh_challenge() -> None:
    async with ruled_hub(RULES) as live:
        keys, phone = live.hub.replies.passkeys, SoftAuthenticator()
        begun = keys.begin("localhost")
        made = {**phone.create(begun["challenge"], origin="http://localhost:9999"), "code": keys.make_code()}
        with pytest.raises(PasskeyRefused, match="not taken"):
            keys.add(made, [PAGE], "web:x")
        with pytest.raises(PasskeyRefused, match="Begin again"):
            keys.add({**phone.create("ab" * 32), "code": keys.make_code()}, [PAGE], "web:x")
        with pytest.raises(PasskeyRefused, match="only for a name"):
            keys.begin("127.0.0.1")


async def test_what_a_rule_wants_signed_is_neither_granted_nor_given_for_later_nor_typed_from_afar() -> None:
    async with ruled_hub(RULES) as live:
        enrol(live.hub.replies.passkeys, SoftAuthenticator())
        host, record = await asked(live)
        grant = await live.asked("grant.add", prompt_id=record.prompt_id, for_s=60)
        assert not grant["ok"]
        later = live.hub.later.postpone(local(record.prompt_id, "1"), "in 1h")
        assert isinstance(later, Reject) and later.reason is Refusal.NEEDS_PASSKEY
        assert not await live.hub.hub_api.type_keys(record.session_id, b"1", "web:stolen")
        assert await live.hub.hub_api.type_keys(record.session_id, b"\x1b", "web:stolen")
        raw = await live.hub.replies.reply(replace(local(record.prompt_id, "1"), as_keys=True))
        assert isinstance(raw, Reject) and raw.reason is Refusal.NEEDS_PASSKEY
        host.close()


async def test_a_rule_that_allows_it_later_does_not_sign_for_the_person() -> None:
    async with ruled_hub(RULES) as live:
        host, record = await asked(live)
        parser = ShellParser()
        allowing = RULES.replace('verdict = "ask"', 'verdict = "allow"').replace('proof = "passkey"', "")
        live.hub.rules.use(replace(live.hub.rules.rules, policy=read_policy(allowing, parser)))
        session = live.hub.ledger.session(record.session_id)
        assert session is not None and not live.hub.life.answer_by_rule(record, session)
        host.close()


async def test_chats_offer_only_the_refusal_and_link_to_the_card() -> None:
    async with ruled_hub(RULES) as live:
        live.hub.ledger.remember("web.page", "https://hub.example")
        host, record = await asked(live)
        roles = {button.role for button in render_buttons(record.prompt)}
        assert Role.REFUSE in roles and not roles & {Role.ANSWER, Role.ALWAYS, Role.GRANT}
        assert f"https://hub.example/#prompt/{record.prompt_id}" in render_hint(record.prompt, record.prompt_id)
        host.close()


async def test_two_people_who_must_agree_sign_both() -> None:
    rules = RULES.replace('proof = "passkey"', 'proof = "passkey"\napprovals = 2')
    async with ruled_hub(rules) as live:
        keys, ada, grace = live.hub.replies.passkeys, SoftAuthenticator(), SoftAuthenticator()
        enrol(keys, ada)
        enrol(keys, grace)
        host, record = await asked(live)
        first = await live.hub.replies.reply(from_page(record, "1", signed(keys, ada, record)))
        assert isinstance(first, Receipt) and first.stage == "voted"
        second = replace(from_page(record, "1", None), identity="memory:grace")
        refused = await live.hub.replies.reply(second)
        assert isinstance(refused, Reject) and refused.reason is Refusal.NEEDS_PASSKEY
        passkey = {**signed(keys, grace, record), "origins": [PAGE]}
        assert isinstance(await give(live, host, replace(second, passkey=passkey)), Receipt)
        assert (await asyncio.to_thread(live.hub.ledger.prepare_verify())).ok
        host.close()


# the log


async def written_log(phone: SoftAuthenticator) -> list[dict[str, Any]]:
    """A log with one signed agreement, as entries."""
    async with ruled_hub(RULES) as live:
        enrol(live.hub.replies.passkeys, phone)
        host, record = await asked(live)
        await give(live, host, from_page(record, "1", signed(live.hub.replies.passkeys, phone, record)))
        host.close()
        return live.hub.ledger.audit_entries(limit=10_000)


def first_fault(entries: list[dict[str, Any]]) -> str:
    walk = LogWalk()
    return next((fault.problem for entry in entries if (fault := walk.take(entry))), "")


async def test_the_log_alone_shows_a_signature_that_was_taken_away_or_changed() -> None:
    entries = await written_log(SoftAuthenticator())
    assert first_fault(entries) == ""
    (at,) = [place for place, entry in enumerate(entries) if "passkey" in entry]
    bare = {name: value for name, value in entries[at].items() if name != "passkey"}
    changed = {**entries[at], "value": "2"}
    elsewhere = {**entries[at], "prompt_id": "0" * 36}
    unknown = [entry for entry in entries if entry["event"] != "PASSKEY_ADDED"]
    assert "without the passkey" in first_fault([*entries[:at], bare])
    assert "another answer" in first_fault([*entries[:at], changed])
    assert "does not fit" in first_fault([*entries[:at], elsewhere])
    assert "not enrolled" in first_fault(unknown)


async def test_verify_finds_an_agreement_that_somebody_wrote_into_the_store_without_a_key() -> None:
    """Who rewrites the store, the log and its head together has no key all the same."""
    async with ruled_hub(RULES) as live:
        host, record = await asked(live)
        with live.hub.ledger.journal.write() as work:
            work.audit(
                "REPLY_RECEIVED", session_id=record.session_id, prompt_id=record.prompt_id, kind="choice", value="1"
            )
        verdict = await asyncio.to_thread(live.hub.ledger.prepare_verify())
        assert not verdict.ok and "without the passkey" in verdict.problem
        host.close()


async def test_verify_says_how_many_signatures_it_could_not_check(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ruled_hub(RULES) as live:
        phone = SoftAuthenticator()
        enrol(live.hub.replies.passkeys, phone)
        host, record = await asked(live)
        await give(live, host, from_page(record, "1", signed(live.hub.replies.passkeys, phone, record)))
        host.close()
        monkeypatch.setitem(__import__("sys").modules, "webauthn", None)
        verdict = verify_home(live.home.root)
        assert verdict.ok and any("1 signatures of passkeys were not checked" in one for one in verdict.incidents)


def test_the_redactor_leaves_signatures_whole() -> None:
    """They are written in hexadecimal, which it must never take for a token."""
    for _ in range(3000):
        field = {
            "signature": os.urandom(72).hex(),
            "client_data": os.urandom(120).hex(),
            "key_id": os.urandom(16).hex(),
        }
        assert redact_data(field) == field


# rules and pages


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('verdict = "ask"\nproof = "password"', 'proof is "passkey"'),
        ('verdict = "ask"\nproof = ""', 'proof is "passkey"'),
        ('verdict = "ask"\nproof = 1', 'proof is "passkey"'),
        ('verdict = "allow"\nproof = "passkey"\ncommand = ["ls"]', "rules that ask"),
        ('verdict = "deny"\nproof = "passkey"', "rules that ask"),
    ],
)
def test_a_rule_with_a_wrong_proof_is_not_loaded(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        read_policy(f'[[rule]]\nname = "x"\n{text}\n', ShellParser())


@pytest.mark.parametrize("name", ["localhost", "hub.example", "laptop.tail1234.ts.net", "nas.local"])
def test_a_page_with_a_name_can_use_passkeys(name: str) -> None:
    assert why_not_here(name) == ""


@pytest.mark.parametrize("name", ["127.0.0.1", "192.168.1.20", "::1", "fe80::1", ""])
def test_a_page_without_a_name_cannot(name: str) -> None:
    assert why_not_here(name)
