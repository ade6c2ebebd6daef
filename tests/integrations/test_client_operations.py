"""Every operation of the table is a method of the client, with a typed result, over the socket and over HTTP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.integrations.conftest import HubApi
from tests.integrations.test_client_http import credentials
from tests.support.hubs import hub_process, with_page
from tests.support.person import Person

from atlasbridge.client import AsyncClient, Client, OpenPrompt, Refused
from atlasbridge.core.operations import Kept, Later, Rules


@pytest.fixture
def hub_api() -> Iterator[HubApi]:
    person = Person()
    with hub_process(with_page()) as hub:
        yield HubApi(hub, person)
    person.close()


@pytest.fixture(params=["socket", "http"])
def client(hub_api: HubApi, request: pytest.FixtureRequest) -> Client:
    over_http = request.param == "http"
    return Client(**credentials(hub_api.hub, "admin")) if over_http else Client(hub_api.hub.home.root)


def test_an_operation_has_a_typed_result_and_a_refusal_is_raised(hub_api: HubApi, client: Client) -> None:
    asking = hub_api.hub.popen("ask", "Deploy?")
    hub_api.next()
    with client as hub:
        (prompt,) = hub.prompts()
        assert isinstance(prompt, OpenPrompt) and prompt.question == "Deploy?"
        kept = hub.snooze(prompt.prompt_id, for_s=900)
        assert isinstance(kept, Kept) and kept.stage == "snoozed"
        (later,) = hub.later()
        assert isinstance(later, Later) and (later.later_id, later.what) == (kept.later_id, "ask again")
        assert hub.revoke_later(kept.later_id).stage == "revoked"
        (session,) = [one for one in hub.sessions() if one.session_id == prompt.session_id]
        hub.rename(session.session_id, "release")
        assert [one.label for one in hub.sessions(name="release")] == ["release"]
        assert isinstance(hub.rules(), Rules)
        with pytest.raises(Refused) as refused:
            hub.snooze("f" * 32, for_s=900)
        assert refused.value.reason == "unknown_prompt"
        with pytest.raises(Refused) as wrong:
            hub.snooze(prompt.prompt_id, for_s=5)
        assert wrong.value.reason == "bad_value"
    hub_api.answer("n")
    asking.communicate()


async def test_the_async_client_awaits_the_same_operations(hub_api: HubApi) -> None:
    async with AsyncClient(hub_api.hub.home.root) as hub:
        assert await hub.later() == ()
        assert (await hub.status()).pid == (await hub.ping()).pid
        assert [one.name for one in (await hub.people()).people] == []
