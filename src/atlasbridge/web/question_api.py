"""The API's questions: a program asks people over HTTP, waits for the answer in a stream, or tells them something.

A question's id is the asker's: who lost its connection asks with the same id again and hears the same answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from starlette.responses import JSONResponse, Response

from atlasbridge.core.escape import escape_controls
from atlasbridge.core.operations import HubOperations
from atlasbridge.core.prompt.question import BadQuestion, Question, RemoteQuestion, prompt_of
from atlasbridge.core.prompt.redact import redact
from atlasbridge.web.api import Call, handles, problem, session_of_peer
from atlasbridge.web.prompt_api import is_private
from atlasbridge.web.site import Site
from atlasbridge.web.stream import HEARTBEAT_S, encode_event, event_stream, until_cut

MAX_QUESTIONS = 200  # that wait at once, each in a connection of its own
STILL_HERE = b": still here\n\n"


@handles(HubOperations.ask)
async def ask(site: Site, call: Call) -> Response:
    body = call.given
    question = Question(
        text=body.question,
        choices=tuple(body.choices),
        takes_text=body.text,
        secret=body.secret,
        default=body.default,
        folder=body.folder,
        kind=body.kind,
        about=body.about,
        target=body.target,
    )
    try:
        prompt_of(question)
    except BadQuestion as error:
        return problem(422, "bad_value", f"{error}{': ' + error.hint if error.hint else ''}")
    if body.secret and not is_private(call):
        return problem(403, "not_private", "a secret is handed over only over loopback or TLS")
    if site.hub_api.integrations.is_foreign(body.question_id, call.caller.identity):
        return problem(409, "not_yours", "this id belongs to another question")
    if site.questions >= MAX_QUESTIONS:
        return problem(503, "unavailable", "too many questions are waiting")
    inside_session = await session_of_peer(site, call.request)
    label = site.hub_api.mark_asker(body.label or call.caller.identity.partition(":")[2], inside_session)
    asked = RemoteQuestion(body.question_id, call.caller.identity, question, label, body.ttl_s)
    return event_stream(_pour(site, until_cut(site.hub_api.integrations.ask(asked), site.broadcast.cut)))


async def _pour(site: Site, told: AsyncGenerator[dict[str, Any], None]) -> AsyncIterator[bytes]:
    """What is told, and a sign of life now and then: it is also how a caller that has gone is noticed."""
    site.questions += 1
    step: asyncio.Future[dict[str, Any]] | None = None
    try:
        while True:
            step = asyncio.ensure_future(anext(told))
            while not (await asyncio.wait({step}, timeout=HEARTBEAT_S))[0]:
                yield STILL_HERE
            try:
                yield encode_event(step.result())
            except StopAsyncIteration:
                return
    finally:
        site.questions -= 1
        if step is not None and not step.done():
            step.cancel()
            await asyncio.gather(step, return_exceptions=True)
        await told.aclose()


@handles(HubOperations.withdraw)
async def withdraw(site: Site, call: Call) -> Response:
    question_id = call.given.question_id
    if site.hub_api.integrations.owner(question_id) != call.caller.identity:
        return problem(404, "unknown_question", "there is no such question of yours")
    return JSONResponse({"withdrawn": site.hub_api.integrations.withdraw(question_id)})


@handles(HubOperations.notify)
async def notify(site: Site, call: Call) -> Response:
    text = redact(escape_controls(call.given.message))
    if not text.strip():
        return problem(422, "bad_value", "there is nothing to tell")
    inside_session = await session_of_peer(site, call.request)
    who = site.hub_api.mark_asker(call.given.label or call.caller.identity.partition(":")[2], inside_session)
    site.hub_api.tell(f"{who}: {text}")
    return JSONResponse({"told": True})
