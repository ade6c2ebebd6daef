"""The fleet's OpenAPI document is true: schemathesis sends what it describes, and what it forbids, and no answer is a
5xx."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.support.fleet import HubApi, start_fleet_server
from tests.support.postgres import Postgres
from tests.web.test_web_schema import config

from atlasbridge.core.ids import new_id
from atlasbridge.fleet.keys import new_key, public_of
from atlasbridge.fleet.server import api, machines, people
from atlasbridge.fleet.server.operations import OFFERED
from atlasbridge.web.api import PREFIX, render_openapi

pytestmark = [pytest.mark.timeout(900)]
T = TypeVar("T")
# What the hub's own test also refuses is the reader's, which both share.
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
STREAMS = {"/events"}  # it never ends
# Calls that would end the token, the person or the machine of this test; the API's own tests make them.
ENDING = {"/people/remove", "/tokens/{token_id}", "/logins/{login_id}", "/machines/{machine}"}
schema = schemathesis.openapi.from_dict(render_openapi(OFFERED), config=config).exclude(path=sorted(STREAMS | ENDING))


_ASKED = """
INSERT INTO prompts (machine_id, prompt_id, session_id, seq, state, is_open, body, raised_at, expires_at)
VALUES (%s, %s, 's1', 1, 'awaiting_reply', true, '{"type": "yes_no", "excerpt": "Go?"}', now(),
        now() + interval '1 day')
"""


class Fleet:
    """A server with a machine that is never there, in a thread of its own: schemathesis blocks."""

    def __init__(self, database: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fleet", daemon=True)
        self._thread.start()
        self.server: HubApi = self.run(start_fleet_server(database))
        self.run(self.server.person("alice", "admin"))
        self.token, _ = self.run(people.add_token(self.server.database, "alice", "schema", "admin", "test"))
        invitation = self.run(self.server.invite())
        joined = self.run(machines.join(self.server.database, invitation.token, "box", public_of(new_key()), False))
        assert isinstance(joined, tuple)
        self.machine_id = joined[0]

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def ask(self) -> str:
        prompt_id = new_id()
        self.run(self.server.database.rows(_ASKED, self.machine_id, prompt_id))
        return f"{self.machine_id}.{prompt_id}"

    def stop(self) -> None:
        self.run(self.server.stop())
        self.run(self.server.database.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture(scope="module")
def fleet(server: Postgres) -> Iterator[Fleet]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "WAIT_S", 0.05)  # its machine never says anything
        running = Fleet(server.new_database())
        yield running
        running.stop()


@schema.parametrize()
@settings(max_examples=10, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_every_operation_answers_as_documented(case: schemathesis.Case[Any], fleet: Fleet) -> None:
    if "prompt_id" in case.path_parameters and len(str(case.path_parameters["prompt_id"])) % 2:
        case.path_parameters["prompt_id"] = fleet.ask()
    named = any(name.lower() == "authorization" for name in case.headers)  # left out on purpose: let it be refused
    headers = {"Authorization": f"Bearer {fleet.token}"} if named else {}
    case.call_and_validate(f"{fleet.server.url}{PREFIX}", headers=headers, checks=CHECKS, timeout=60)
