"""The API's queue: instructions for a session's next idle input box: what waits, one more, one back."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from atlasbridge.core.prompt.model import InboundReply, Receipt, Refusal, Reject
from atlasbridge.web.operation import Call, problem
from atlasbridge.web.prompt_api import STATUS
from atlasbridge.web.site import Site
from atlasbridge.web.view import render_plain


async def list_queue(site: Site, call: Call) -> Response:
    return JSONResponse({"queue": render_plain(site.hub_api.queued())})


async def add(site: Site, call: Call) -> Response:
    return _told(site.hub_api.enqueue(_reply(call, call.path("session_id"), call.body.text)))


async def remove(site: Site, call: Call) -> Response:
    return _told(site.hub_api.dequeue(_reply(call, "", ""), call.path("queue_id")))


def _reply(call: Call, session_id: str, text: str) -> InboundReply:
    place = call.caller.identity.partition(":")[2]
    return InboundReply("web", call.caller.identity, "", text, session_id=session_id, as_text=True, place=place)


def _told(outcome: Receipt | Reject) -> Response:
    if isinstance(outcome, Reject):
        known = {**STATUS, Refusal.UNKNOWN_PROMPT: 404, Refusal.WRONG_SESSION: 404}
        return problem(known.get(outcome.reason, 409), outcome.reason.value, outcome.sentence)
    return JSONResponse({"stage": outcome.stage, "message": outcome.sentence, "queue_id": outcome.answer})
