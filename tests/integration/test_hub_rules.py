"""Rules, grants and several people, in a hub with a host and people, on a clock that is set by hand."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.fake_host import SECRET, FakeHost
from tests.support.hubs import LiveHub, channel_named, live_hub
from tests.support.waiting import in_thread, until

from atlasbridge.core.daemon.rules import HubRules
from atlasbridge.core.errors import ConfigError
from atlasbridge.core.policy.reader import read_policy
from atlasbridge.core.prompt.keys import Step
from atlasbridge.core.prompt.model import (
    Choice,
    InboundReply,
    Prompt,
    PromptType,
    Receipt,
    Reject,
    Subject,
    SubjectKind,
    SubjectSource,
)
from atlasbridge.core.routing.router import LOCAL
from atlasbridge.core.routing.shell_parser import ShellParser
from atlasbridge.core.values import replace

RULES = """
[[rule]]
name = "tests"
verdict = "allow"
command = ["npm", "run", "test*", "**"]

[[rule]]
name = "no-rm"
verdict = "deny"
command = ["rm", "-rf", "**"]
reason = "use the bin"

[[rule]]
name = "two-push"
verdict = "ask"
command = ["git", "push", "**"]
approvals = 2
"""


REFUSED = {"kind": "choice", "value": "3", "reason": "use the bin"}


def asking(text: str, *, certain: bool = True, words: bool = False, **changes: Any) -> Prompt:
    """As Claude Code asks: yes, yes for ever, no."""
    subject = Subject(SubjectKind.COMMAND, text, "/somewhere", SubjectSource.HOOK, certain, text)
    prompt = Prompt(
        PromptType.TYPE_MULTIPLE_CHOICE,
        0.99,
        "Do you want to proceed?",
        choices=(
            Choice("1", "Yes", (Step(b"1"),), default=True),
            Choice("2", "Yes, and don't ask again", (Step(b"2"),), always=True),
            Choice("3", "No", (Step(b"3"),), refuses=True),
        ),
        safe_default="3",
        digest="d",
        line_mode=False,
        text_steps=(Step(b"3"),) if words else (),
        subject=subject,
    )
    return replace(prompt, **changes)


@asynccontextmanager
async def ruled_hub(text: str = RULES, named: bool = True, **options: Any) -> AsyncIterator[LiveHub]:
    """`named`: who speaks is told by the name behind the channel's."""
    async with live_hub(**options) as live:
        parser = ShellParser()
        live.hub.rules.use(HubRules(read_policy(text, parser), parser, "/home/x"))
        if named:
            live.hub.replies.person_of = lambda identity: identity.partition(":")[2]
        yield live


async def ask(live: LiveHub, prompt: Prompt, host: FakeHost | None = None) -> tuple[FakeHost, str]:
    asker = host if host is not None else await in_thread(FakeHost, live.home)
    prompt_id = asker.raise_prompt(prompt)
    await until(lambda: live.hub.hub_api.prompt(prompt_id), "the question")
    return asker, prompt_id


def local(prompt_id: str, value: str) -> InboundReply:
    return InboundReply(channel=LOCAL, identity="cli:local", prompt_id=prompt_id, value=value)


async def test_allow_types_the_choice_that_allows_once_and_says_which_rule_it_was() -> None:
    async with ruled_hub() as live:
        host, prompt_id = await ask(live, asking("npm run test:unit"))
        assert (await in_thread(host.answer_typing))["answer"] == {"kind": "choice", "value": "1"}
        await live.event("prompt.resolved")
        assert live.record(prompt_id).decided_by == "rule:tests"
        (entry,) = live.hub.ledger.audit_entries(prompt_id=prompt_id, event="REPLY_RECEIVED")
        assert entry["source"] == "rule:tests" and entry["rule"] == "tests" and len(entry["rule_digest"]) == 32
        assert live.person.shown == []
        host.close()


@pytest.mark.parametrize(
    "prompt",
    [
        asking("npm run test && curl x"),
        asking("npm run test", certain=False),
        asking("npm run test", choices=(Choice("1", "Yes, always", (Step(b"1"),), always=True),)),
        asking("npm run test", choices=(Choice("1", "Yes", (Step(b"1"),)), Choice("2", "Yes, fast", (Step(b"2"),)))),
        asking("npm run test", constraints={"multi_select": True}),
        asking("npm run test", type=PromptType.TYPE_UNKNOWN),
        asking("npm run test", subject=None),
        replace(SECRET, subject=asking("npm run test").subject),
    ],
    ids=["more", "cut", "always", "two", "several", "unknown", "no-subject", "secret"],
)
async def test_what_is_not_certain_is_asked(prompt: Prompt) -> None:
    async with ruled_hub() as live:
        host, prompt_id = await ask(live, prompt)
        await live.person.until(lambda: live.person.shown)
        assert live.record(prompt_id).decided_by == ""
        host.close()


def editing(*paths: str) -> Prompt:
    subject = Subject(SubjectKind.EDIT, "+x", "/somewhere", SubjectSource.HOOK, True, "+x", "\n".join(paths))
    return asking("", subject=subject)


@pytest.mark.parametrize(
    "prompt",
    [
        editing("/home/x/.ab/policy.toml"),
        editing("/somewhere/a", "/home/x/.ab/config.toml"),
        editing("/somewhere/../home/x/.ab/policy.toml"),
        asking("cp a /home/x/.ab/policy.toml"),
        asking("cp a ../home/x/.ab/policy.toml"),
        asking("cd /home/x/.ab && cp a policy.toml"),
        asking("cp --target-directory=/home/x/.ab a"),
    ],
)
async def test_no_rule_lets_a_tool_change_what_the_hub_goes_by(prompt: Prompt) -> None:
    wide = "".join(
        f'[[rule]]\nname = "{name}"\nverdict = "allow"\n{line}\n'
        for name, line in (("cp", 'command = ["cp", "**"]'), ("cd", 'command = ["cd", "*"]'), ("edit", 'kind = "edit"'))
    )
    async with ruled_hub(wide) as live:
        live.hub.rules.use(replace(live.hub.rules.rules, own=("/home/x/.ab",)))
        host, prompt_id = await ask(live, prompt)
        await live.person.until(lambda: live.person.shown)
        assert live.record(prompt_id).decided_by == ""
        host.close()


async def test_a_trusted_projects_rules_hold_for_what_runs_in_it_wherever_the_session_began(tmp_path: Path) -> None:
    (tmp_path / ".atlasbridge").mkdir()
    rule = '[[rule]]\nname = "calm"\nverdict = "deny"\ncommand = ["npm", "**"]\n'
    (tmp_path / ".atlasbridge" / "policy.toml").write_text(rule)
    async with ruled_hub() as live:
        live.hub.rules.trust(tmp_path, "cli:local")
        inside = asking("npm run test", subject=replace(asking("npm run test").subject, folder=str(tmp_path / "deep")))
        host, prompt_id = await ask(live, inside)
        assert (await in_thread(host.answer_typing))["answer"]["value"] == "3"
        assert live.record(prompt_id).decided_by == "rule:calm"
        host.close()


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "link to itself"])
async def test_a_project_file_that_is_none_does_not_hold_the_hub_up(tmp_path: Path, kind: str) -> None:
    """Anyone who works in the folder can put anything there."""
    place = tmp_path / ".atlasbridge" / "policy.toml"
    place.parent.mkdir()
    match kind:
        case "pipe":
            os.mkfifo(place)
        case "device":
            place.symlink_to("/dev/zero")
        case "folder":
            place.mkdir()
        case _:
            place.symlink_to(place)
    async with ruled_hub() as live:
        inside = asking("npm run test", subject=replace(asking("npm run test").subject, folder=str(tmp_path)))
        host, _ = await ask(live, inside)
        assert (await in_thread(host.answer_typing))["answer"]["value"] == "1"
        with pytest.raises(ConfigError):
            live.hub.rules.trust(tmp_path, "cli:local")
        host.close()


async def test_how_an_answer_came_to_its_tool_is_counted() -> None:
    async with ruled_hub() as live:
        host, _ = await ask(live, asking("npm run test:unit"))
        await in_thread(host.answer_typing)
        await live.event("prompt.resolved")
        assert live.hub.ledger.ways() == {"keys": 1}
        _, prompt_id = await ask(live, asking("npm run test:all"), host)
        order = await in_thread(host.hear, "type")
        host.say("typed", prompt_id=order["prompt_id"], outcome="typed", detail="hook")
        await until(lambda: live.hub.ledger.ways() == {"keys": 1, "hook": 1}, "the other way")
        (entry,) = live.hub.ledger.audit_entries(prompt_id=prompt_id, event="REPLY_INJECTED")
        assert entry["way"] == "hook"
        host.close()


async def test_deny_types_the_refusing_choice() -> None:
    async with ruled_hub() as live:
        host, prompt_id = await ask(live, asking("ls; rm -rf /"))
        assert (await in_thread(host.answer_typing))["answer"] == REFUSED
        assert live.record(prompt_id).decided_by == "rule:no-rm"
        host.close()


async def test_deny_gives_its_reason_where_the_tool_takes_words_with_a_refusal() -> None:
    async with ruled_hub() as live:
        host, _ = await ask(live, asking("rm -rf /", words=True))
        assert (await in_thread(host.answer_typing))["answer"] == {"kind": "text", "value": "use the bin"}
        host.close()


async def test_two_people_must_agree_and_one_alone_types_nothing() -> None:
    async with ruled_hub(channels=(channel_named("memory"), channel_named("other"))) as live:
        host, prompt_id = await ask(live, asking("git push"))
        for person in live.people.values():
            await person.until(lambda person=person: person.shown)
        shown = live.person.shown[0]
        assert shown.prompt.constraints["quorum"]["approvals"] == 2
        live.person.say(shown, "1", identity="memory:anna")
        await live.person.until(lambda: live.person.outcomes)
        receipt = live.person.outcomes[0][1]
        assert isinstance(receipt, Receipt) and receipt.stage == "voted" and "one more person" in receipt.sentence
        live.person.say(shown, "1", identity="memory:anna")
        await live.person.until(lambda: len(live.person.outcomes) == 2)
        assert live.record(prompt_id).decided_by == ""
        live.people["other"].say(shown, "1", identity="other:bert")
        assert (await in_thread(host.answer_typing))["answer"] == {"kind": "choice", "value": "1"}
        assert live.record(prompt_id).decided_by == "anna, bert"
        host.close()


async def test_one_refusal_ends_what_two_people_should_have_agreed_to() -> None:
    async with ruled_hub() as live:
        host, prompt_id = await ask(live, asking("git push"))
        await live.person.until(lambda: live.person.shown)
        live.person.say(live.person.shown[0], "1", identity="memory:anna")
        await live.person.until(lambda: live.person.outcomes)
        answering = asyncio.create_task(live.hub.replies.reply(local(prompt_id, "no")))
        assert (await in_thread(host.answer_typing))["answer"] == {"kind": "choice", "value": "3"}
        assert isinstance(await answering, Receipt)
        host.close()


async def test_people_count_and_not_the_channels_they_speak_through() -> None:
    async with ruled_hub(channels=(channel_named("memory"), channel_named("other"))) as live:
        host, prompt_id = await ask(live, asking("git push"))
        for name, person in live.people.items():
            await person.until(lambda person=person: person.shown)
            person.say(person.shown[0], "1", identity=f"{name}:anna")
            await person.until(lambda person=person: person.outcomes)
        assert live.record(prompt_id).decided_by == ""
        host.close()


async def test_two_devices_that_nobody_is_named_for_are_not_two_people() -> None:
    """One person with two browsers, or a chat and a terminal, must not make up two."""
    async with ruled_hub(named=False) as live:
        host, prompt_id = await ask(live, asking("git push"))
        await live.person.until(lambda: live.person.shown)
        for number, identity in enumerate(("memory:phone", "memory:laptop"), 1):
            live.person.say(live.person.shown[0], "1", identity=identity)
            await live.person.until(lambda number=number: len(live.person.outcomes) == number)
        alone = await live.hub.replies.reply(local(prompt_id, "1"))
        for refusal in (alone, *(outcome for _, outcome in live.person.outcomes)):
            assert isinstance(refusal, Reject) and "[[people]]" in refusal.sentence, refusal
        assert live.record(prompt_id).decided_by == ""
        answering = asyncio.create_task(live.hub.replies.reply(local(prompt_id, "no")))
        assert (await in_thread(host.answer_typing))["answer"] == {"kind": "choice", "value": "3"}
        assert isinstance(await answering, Receipt)
        host.close()


async def grant(live: LiveHub, prompt_id: str, **fields: Any) -> dict[str, Any]:
    return await live.asked("grant.add", prompt_id=prompt_id, **fields)


async def test_a_grant_answers_its_prompt_and_the_next_ones_until_it_is_used_up() -> None:
    async with ruled_hub() as live:
        host, first = await ask(live, asking("cargo test --all"))
        await live.person.until(lambda: live.person.shown)
        made = await grant(live, first, times=2)
        assert (
            made["ok"]
            and made["answered"]
            and made["words"].startswith("`cargo test` with names of tests and these options: ")
            and made["words"].endswith("2 times within 12 hours in this session")
        )
        assert "cargo test --all" in made["would"] and any("rm -rf" in text for text in made["would_not"])
        await in_thread(host.answer_typing)
        _, second = await ask(live, asking("cargo test -p x"), host)
        await in_thread(host.answer_typing)
        assert live.record(second).decided_by.startswith("grant:")
        _, third = await ask(live, asking("cargo test"), host)
        await live.person.until(lambda: len(live.person.shown) == 2)
        assert live.record(third).decided_by == ""
        assert live.hub.ledger.live_grants() == []
        host.close()


async def test_a_grant_ends_with_its_time() -> None:
    async with ruled_hub() as live:
        host, first = await ask(live, asking("cargo test"))
        await grant(live, first, for_s=60)
        await in_thread(host.answer_typing)
        live.advance(61)
        await ask(live, asking("cargo test x"), host)
        await live.person.until(lambda: len(live.person.shown) == 2)
        host.close()


async def test_a_revoked_grant_allows_nothing_more_and_another_session_never_had_it() -> None:
    async with ruled_hub() as live:
        host, first = await ask(live, asking("cargo test"))
        made = await grant(live, first)
        await in_thread(host.answer_typing)
        other, _ = await ask(live, asking("cargo test x"))
        await live.person.until(lambda: len(live.person.shown) == 2)
        await live.asked("grant.revoke", grant_id=made["grant_id"][:8])
        await ask(live, asking("cargo test y"), host)
        await live.person.until(lambda: len(live.person.shown) == 3)
        host.close()
        other.close()


@pytest.mark.parametrize("text", ["ls $(x)", "rm -rf $X", "curl x | sh", "x=1 ls", "bash -c 'ls $x'"])
async def test_what_is_not_certain_cannot_be_granted(text: str) -> None:
    async with ruled_hub() as live:
        host, prompt_id = await ask(live, asking(text))
        answer = await grant(live, prompt_id)
        assert not answer["ok"] and answer["reason"] == "cannot_grant"
        assert live.hub.ledger.live_grants() == []
        host.close()


@pytest.mark.parametrize("prompt", [asking("ls", certain=False), asking("ls", subject=None), SECRET])
async def test_secrets_unknown_and_cut_questions_cannot_be_granted(prompt: Prompt) -> None:
    async with ruled_hub() as live:
        host, prompt_id = await ask(live, prompt)
        assert not (await grant(live, prompt_id))["ok"]
        host.close()


async def test_a_refusal_stands_against_a_grant() -> None:
    async with ruled_hub() as live:
        host, prompt_id = await ask(live, asking("rm x"))
        await grant(live, prompt_id, folder=True)
        await in_thread(host.answer_typing)
        _, second = await ask(live, asking("rm -rf x"), host)
        assert (await in_thread(host.answer_typing))["answer"] == REFUSED
        assert live.record(second).decided_by == "rule:no-rm"
        host.close()


async def test_a_projects_rules_hold_only_after_a_person_trusted_them_and_as_they_were_then(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    (folder / ".atlasbridge").mkdir(parents=True)
    file = folder / ".atlasbridge" / "policy.toml"
    file.write_text('[[rule]]\nname = "here"\nverdict = "deny"\ncommand = ["npm", "**"]\n')
    async with ruled_hub() as live:
        host = await in_thread(FakeHost, live.home)
        session = replace(live.session(host), cwd=str(folder / "sub"))
        assert live.hub.rules.judge(asking("npm run test"), session).rule == "tests"
        await live.person.until(lambda: any("not trusted" in text for text in live.person.notices))
        assert (await live.asked("policy.trust", folder=str(folder)))["rules"] == ["here"]
        assert live.hub.rules.judge(asking("npm run test"), session).rule == "here"
        file.write_text("")
        assert live.hub.rules.judge(asking("npm run test"), session).rule == "here"
        file.write_text('[[rule]]\nname = "more"\nverdict = "allow"\ncommand = ["curl", "**"]\n')
        refused = await live.asked("policy.trust", folder=str(folder))
        assert not refused["ok"] and "never allow" in refused["message"]
        assert live.hub.rules.judge(asking("curl x"), session).verdict.value == "ask"
        host.close()


async def test_what_rules_did_is_told_at_once_or_in_one_message() -> None:
    async with ruled_hub() as live:
        live.hub.rules.use(replace(live.hub.rules.rules, tell="at_once"))
        host, _ = await ask(live, asking("npm run test"))
        await in_thread(host.answer_typing)
        await live.person.until(lambda: any("tests allowed" in text for text in live.person.notices))
        live.hub.rules.use(replace(live.hub.rules.rules, tell="digest"))
        live.advance(90_000)
        await live.person.until(lambda: any("answered 1 question" in text for text in live.person.notices))
        host.close()


async def test_a_reply_that_is_no_refusal_needs_everybody_even_if_it_is_words_or_keys() -> None:
    async with ruled_hub() as live:
        host, prompt_id = await ask(live, asking("git push"))
        outcome = await live.hub.replies.reply(replace(local(prompt_id, "x"), as_keys=True))
        assert isinstance(outcome, Receipt) and outcome.stage == "voted"
        assert not isinstance(outcome, Reject)
        host.close()
