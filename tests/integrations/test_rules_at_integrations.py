"""Rules, grants, several people and escalation hold for questions without a terminal as for those with one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.support.hubs import LiveHub, channel_named, live_hub

from atlasbridge.core.daemon.rules import HubRules
from atlasbridge.core.operations import Caller, Granted
from atlasbridge.core.policy.escalation import AttentionSettings, EscalationPolicy, EscalationStep, PeopleBook, Person
from atlasbridge.core.policy.reader import read_policy
from atlasbridge.core.prompt.model import PromptRecord
from atlasbridge.core.prompt.question import Handed, Question, prompt_of, question_of, words_of
from atlasbridge.core.routing.policy import PolicySettings
from atlasbridge.core.routing.shell_parser import ShellParser
from atlasbridge.integrations.caller_label import Origin
from atlasbridge.integrations.open_question import OpenQuestion
from atlasbridge.integrations.transport import ask_async

RULES = """
[[rule]]
name = "tests"
verdict = "allow"
command = ["npm", "run", "test*", "**"]
tool = "mcp"

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
TWO = (channel_named("memory"), channel_named("other"))


@asynccontextmanager
async def ruled_hub() -> AsyncIterator[LiveHub]:
    async with live_hub(channels=TWO) as live:
        parser = ShellParser()
        live.hub.rules.use(HubRules(read_policy(RULES, parser), parser, "/home/x"))
        live.hub.replies.person_of = lambda identity: identity.partition(":")[2]
        yield live


def ask(live: LiveHub, command: str, tool: str = "mcp") -> asyncio.Task[Handed]:
    """As an agent asks for a permission through MCP."""
    return ask_about(live, question_of("Bash", {"command": command}, "/src"), tool)


def ask_about(live: LiveHub, question: Question, tool: str) -> asyncio.Task[Handed]:
    open_question = OpenQuestion(live.home, Origin(tool, "an agent", ("atlasbridge", tool), "/src"))
    return asyncio.create_task(ask_async(open_question, prompt_of(question)))


def words(command: str, handed: Handed) -> str:
    assert handed.answer is not None, handed
    return words_of(prompt_of(question_of("Bash", {"command": command}, "/src")), handed.answer)


async def shown(live: LiveHub, count: int = 1, name: str = "memory") -> PromptRecord:
    person = live.people[name]
    await person.until(lambda: len(person.shown) >= count)
    return person.shown[count - 1]


async def test_a_rule_allows_once_and_nobody_is_asked() -> None:
    async with ruled_hub() as live:
        handed = await ask(live, "npm run test:unit")
        assert words("", handed) == "Allow" and handed.by == "rule:tests"
        assert live.person.shown == []


async def test_a_rule_for_one_open_question_says_nothing_of_another() -> None:
    async with ruled_hub() as live:
        asked = ask(live, "npm run test:unit", "ask")
        live.person.say(await shown(live), "2", identity="memory:anna")
        assert words("", await asked) == "Deny"


async def test_a_rule_refuses_and_its_reason_reaches_the_agent() -> None:
    async with ruled_hub() as live:
        handed = await ask(live, "ls; rm -rf /")
        assert words("", handed) == "use the bin" and handed.by == "rule:no-rm"


async def test_two_people_must_agree_and_one_refusal_is_enough() -> None:
    async with ruled_hub() as live:
        asked = ask(live, "git push")
        first = await shown(live)
        live.person.say(first, "1", identity="memory:anna")
        await live.person.until(lambda: bool(live.person.outcomes))
        assert not asked.done()
        live.people["other"].say(first, "1", identity="other:bert")
        handed = await asked
        assert words("", handed) == "Allow"
        decided = live.hub.hub_api.prompt(first.prompt_id)
        assert decided is not None and decided.decided_by == "anna, bert"
        again = ask(live, "git push --tags")
        live.person.say(await shown(live, 2), "2", identity="memory:anna")
        assert words("", await again) == "Deny"


async def test_a_grant_for_the_folder_answers_the_next_question_of_that_open_question() -> None:
    async with ruled_hub() as live:
        asked = ask(live, "cargo test --all")
        first = await shown(live)
        made = await live.hub.rule_operations.grant(Caller("cli:local"), first.prompt_id, times=2, folder=True)
        assert isinstance(made, Granted), made
        assert words("", await asked) == "Allow"
        handed = await ask(live, "cargo test -p x")
        assert words("", handed) == "Allow" and handed.by.startswith("grant:")
        third = ask(live, "cargo test")
        live.person.say(await shown(live, 2), "2", identity="memory:anna")
        assert words("", await third) == "Deny"


async def test_a_escalation_says_who_is_asked_first_about_a_script() -> None:
    escalation_policy = EscalationPolicy(
        (EscalationStep(0, ("Ana",), ("chat",)), EscalationStep(60)), "own", tool="ask"
    )
    chat = channel_named("chat", remote=True)
    attention = AttentionSettings(PeopleBook.of(Person("Ana", ("chat:1",))), (escalation_policy,))
    policy = PolicySettings(allowed={"memory": None, "chat": frozenset({"chat:1"})}, attention=attention)
    async with live_hub(policy, (channel_named("memory"), chat)) as live:
        asked = ask_about(live, Question("Deploy?"), "ask")
        first = await shown(live, name="chat")
        assert not live.person.shown
        assert live.hub.hub_api.tone(first.prompt_id, "chat").only == frozenset({"chat:1"})
        live.advance(61)
        await shown(live)
        live.people["chat"].say(first, "n", identity="chat:1")
        handed = await asked
        assert handed.answer is not None and handed.answer.kind.value == "no" and handed.by == "chat:1"
