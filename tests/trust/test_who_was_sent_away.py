"""A person is one person, under whatever name; and who was sent away decides nothing any more, not even later."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
from tests.integration.test_hub_later import CHAT, HERE, POLICY, asked, kept, refusal, reply
from tests.integration.test_hub_queue import IDLE, is_asked, said, working
from tests.integration.test_hub_rules import ask, asking, ruled_hub
from tests.support.hubs import LiveHub, live_hub
from tests.support.waiting import until
from tests.web.conftest import FakeHub, anyone, clock, hub, log_in

from atlasbridge.core.operations import Caller, Granted
from atlasbridge.core.policy.escalation import AttentionSettings, PeopleBook, Person
from atlasbridge.core.prompt.model import InboundReply, PromptState, Receipt, Refusal
from atlasbridge.core.routing.policy import PolicySettings
from atlasbridge.core.values import replace

__all__ = ["anyone", "clock", "hub"]
API = "/api/v1"
EVERYBODY = PolicySettings(allowed={"memory": None, "chat": frozenset({"chat:1", "chat:2"})})


def called(**people: tuple[str, ...]) -> AttentionSettings:
    return AttentionSettings(people=PeopleBook.of(*(Person(name, ids) for name, ids in people.items())))


def use(live: LiveHub, policy: PolicySettings) -> None:
    live.hub.router.policy = policy
    live.hub.hub_api.drop_work_of_removed_people()


async def vote(live: LiveHub, prompt_id: str, identity: str) -> Receipt:
    channel = identity.partition(":")[0]
    outcome = await live.hub.replies.reply(InboundReply(channel, identity, prompt_id, "1"))
    assert isinstance(outcome, Receipt), outcome
    return outcome


BOTH = called(ada=("chat:1", "memory:ada"), bert=("chat:2",))


@pytest.mark.parametrize(
    "then",
    [
        EVERYBODY,  # nobody is named any more: nothing counts for anybody
        replace(EVERYBODY, attention=called(augusta=("chat:1", "memory:ada"), bert=("chat:2",))),
        replace(EVERYBODY, attention=called(Ada=("memory:ada",), ada=("chat:1",), bert=("chat:2",))),
    ],
    ids=["unnamed", "renamed", "by case alone"],
)
async def test_one_person_is_not_two_because_of_a_new_name(then: PolicySettings) -> None:
    async with ruled_hub(named=False, channels=(HERE, CHAT)) as live:
        use(live, replace(EVERYBODY, attention=BOTH))
        host, prompt_id = await ask(live, asking("git push"))
        assert (await vote(live, prompt_id, "chat:1")).stage == "voted"
        use(live, then)
        outcome = await live.hub.replies.reply(InboundReply("memory", "memory:ada", prompt_id, "1"))
        assert not isinstance(outcome, Receipt) or outcome.stage == "voted", outcome
        assert (
            live.record(prompt_id).decided_by == "" and live.record(prompt_id).state is not PromptState.REPLY_RECEIVED
        )
        host.close()


async def test_the_vote_of_somebody_who_was_taken_off_the_list_does_not_count() -> None:
    async with ruled_hub(named=False, channels=(HERE, CHAT)) as live:
        use(live, replace(EVERYBODY, attention=called(ada=("memory:ada",), bert=("chat:2",))))
        host, prompt_id = await ask(live, asking("git push"))
        assert (await vote(live, prompt_id, "chat:2")).stage == "voted"
        people = called(ada=("memory:ada",), bert=("chat:2",))
        use(live, replace(EVERYBODY, allowed={"memory": None, "chat": frozenset({"chat:1"})}, attention=people))
        assert (await vote(live, prompt_id, "memory:ada")).stage == "voted"
        assert live.record(prompt_id).decided_by == ""
        assert [one["event"] for one in live.hub.ledger.audit_entries(event="VOTE_DROPPED")] == ["VOTE_DROPPED"]
        host.close()


async def test_an_answer_for_later_ends_with_the_right_of_whoever_gave_it() -> None:
    async with live_hub(POLICY, (HERE, CHAT)) as live:
        host, prompt_id = await asked(live)
        kept(live.hub.later.postpone(reply(prompt_id), "in 2h"))
        use(live, PolicySettings(allowed={"memory": None, "chat": frozenset({"chat:2"})}))
        assert live.hub.hub_api.later() == []
        live.advance(7300)
        assert live.record(prompt_id).decided_by != "chat:1"
        host.close()


async def test_an_answer_for_later_is_refused_at_its_moment_where_nobody_looked_before() -> None:
    """The list changed under it: the gate asks again when the moment comes."""
    async with live_hub(POLICY, (HERE, CHAT)) as live:
        host, prompt_id = await asked(live)
        kept(live.hub.later.postpone(reply(prompt_id), "in 5m"))
        live.hub.router.policy = PolicySettings(allowed={"memory": None, "chat": frozenset({"chat:2"})})
        live.advance(301)
        await until(lambda: not live.hub.hub_api.later())
        assert live.record(prompt_id).decided_by == "" and live.record(prompt_id).state is PromptState.AWAITING_REPLY
        assert refusal(await live.hub.replies.reply(reply(prompt_id))) is Refusal.NOT_ALLOWED
        host.close()


async def test_what_a_revoked_login_queued_or_granted_ends_with_it() -> None:
    async with live_hub(POLICY, (HERE, CHAT)) as live:
        host = await working(live)
        assert isinstance(live.hub.queue.add(said(host.record.session_id, "push it")), Receipt)
        live.hub.hub_api.login_revoked("chat:2")
        assert len(live.hub.queue.list_all()) == 1
        live.hub.hub_api.login_revoked("chat:1")
        assert live.hub.queue.list_all() == []
        prompt_id = host.raise_prompt(IDLE)
        await until(lambda: is_asked(live, prompt_id))
        host.close()


async def test_a_grant_of_a_revoked_login_ends_with_it() -> None:
    async with ruled_hub() as live:
        host, first = await ask(live, asking("cargo test --all"))
        await live.person.until(lambda: live.person.shown)
        made = await live.hub.rule_operations.grant(Caller("web:phone"), first, times=5)
        assert isinstance(made, Granted), made
        live.hub.hub_api.login_revoked("web:laptop")
        assert len((await live.asked("grants"))["grants"]) == 1
        live.hub.hub_api.login_revoked("web:phone")
        assert (await live.asked("grants"))["grants"] == []
        host.close()


async def enter_as(hub: FakeHub, name: str, scope: str = "answer") -> httpx.AsyncClient:
    client = httpx.AsyncClient(base_url=hub.channel.url, timeout=30, verify=False)
    await log_in(hub, client, scope, name)
    return client


@pytest.mark.parametrize("name", ["Bert phone", "  Bert phone ", "Bert: phone!", "Ada laptop"])
async def test_a_browser_does_not_give_itself_the_name_of_a_person(hub: FakeHub, name: str) -> None:
    hub.hub_api.names = {"web:Bert phone": "Bert", "web:Ada laptop": "Ada"}
    mine = await enter_as(hub, "guest")
    answer = await mine.put(f"{API}/me", json={"name": name})
    assert answer.status_code == 409, answer.text
    assert (await mine.get(f"{API}/me")).json()["identity"] == "web:guest"
    free = await mine.put(f"{API}/me", json={"name": "my phone"})
    assert free.status_code == 200 and free.json()["name"] == "my phone"
    await mine.aclose()


async def test_a_browser_that_is_let_in_without_a_name_is_not_taken_for_a_person(hub: FakeHub) -> None:
    hub.hub_api.names = {"web:page": "Bert"}
    nameless = await enter_as(hub, "")
    assert (await nameless.get(f"{API}/me")).json()["identity"] == "web:page 2"
    bert = await enter_as(hub, "page")
    assert (await bert.get(f"{API}/me")).json()["identity"] == "web:page"
    await nameless.aclose()
    await bert.aclose()


@pytest.mark.parametrize(
    ("end", "gone"),
    [
        (lambda hub, login: hub.channel.site.end_device(login), ["web:phone 2", "web:phone"]),
        (lambda hub, login: hub.channel.site.end_all_devices(), ["web:phone 2", "web:phone"]),
    ],
    ids=["one", "all"],
)
async def test_a_revoked_browser_is_sent_away_under_all_its_names(
    hub: FakeHub, end: Callable[[FakeHub, str], object], gone: list[str]
) -> None:
    mine = await enter_as(hub, "phone")
    assert (await mine.put(f"{API}/me", json={"name": "phone 2"})).status_code == 200
    (device,) = hub.channel.site.access.devices.all()
    end(hub, device.login_id)
    assert hub.hub_api.revocation == gone
    await mine.aclose()


async def test_logging_out_is_no_revocation(hub: FakeHub) -> None:
    mine = await enter_as(hub, "phone")
    assert (await mine.post(f"{API}/logout")).json()["ended"] and hub.hub_api.revocation == []
    await mine.aclose()


async def test_a_revoked_token_is_sent_away(hub: FakeHub) -> None:
    token, _ = hub.channel.site.access.create_token("robot", "answer")
    assert hub.channel.site.access.revoke_token(token.token_id) and hub.hub_api.revocation == ["web:token/robot"]
