"""The OpenAPI document is true: schemathesis sends what it describes, and what it forbids, and no answer is a 5xx."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)
from tests.support.sample_prompt import MENU
from tests.support.threaded_hub import ThreadedHub

from atlasbridge.web.api import OVER_HTTP as OPERATIONS
from atlasbridge.web.api import render_openapi

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(600)]
STREAMS = {"/events", "/sessions/{session_id}/screen/stream"}  # they never end; the API's own tests follow them
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
REFUSED = [400, 401, 403, 404, 405, 409, 413, 415, 421, 422]  # 421: schemathesis also makes up the Host header
config = schemathesis.Config.from_dict({"checks": {"negative_data_rejection": {"expected-statuses": REFUSED}}})
schema = schemathesis.openapi.from_dict(render_openapi(), config=config).exclude(path=sorted(STREAMS))


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedHub]:
    running = ThreadedHub(Path(tmp_path_factory.mktemp("schema")))
    running.hub.channel.site.answers.limit = 1_000_000
    running.token = running.hub.channel.site.access.create_token("schema", "admin")[1]
    yield running
    running.stop()


@schema.parametrize()
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_every_operation_answers_as_documented(case: schemathesis.Case[Any], hub: ThreadedHub) -> None:
    if not hub.hub.hub_api.open_prompts():
        hub.ask(MENU)
    record = hub.hub.hub_api.open_prompts()[0]
    for name, value in (("prompt_id", record.prompt_id), ("session_id", record.session_id)):
        if name in case.path_parameters and len(str(case.path_parameters[name])) % 2:
            case.path_parameters[name] = value
    token = hub.token
    named = any(name.lower() == "authorization" for name in case.headers)  # left out on purpose: let it be refused
    headers = {"Authorization": f"Bearer {token}"} if named else {}
    case.call_and_validate(f"{hub.url}/api/v1", headers=headers, checks=CHECKS, timeout=60)


def test_every_operation_is_in_the_document_once() -> None:
    paths = render_openapi()["paths"]
    listed = [(method.upper(), path) for path, methods in paths.items() for method in methods]
    assert sorted(listed) == sorted((operation.method, operation.path) for operation in OPERATIONS)
    names = [entry["operationId"] for methods in paths.values() for entry in methods.values()]
    assert len(names) == len(set(names))
