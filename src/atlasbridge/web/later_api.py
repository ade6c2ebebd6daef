"""The API's later: an answer with a moment of its own, being asked again, what is kept, and taking it back."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

from atlasbridge.core.prompt.model import InboundReply, PromptRecord, Receipt, Refusal, Reject
from atlasbridge.web.operation import Call, problem
from atlasbridge.web.prompt_api import NO_PROMPT, STATUS, refuse_asker
from atlasbridge.web.site import Site
from atlasbridge.web.view import render_plain


async def list_later(site: Site, call: Call) -> Response:
    return JSONResponse({"later": render_plain(site.hub_api.later())})


async def postpone(site: Site, call: Call) -> Response:
    record = site.hub_api.prompt(call.path("prompt_id"))
    if record is None:
        return problem(*NO_PROMPT)
    if refused := refuse_asker(site, record, call, "reply"):
        return refused
    given = call.body
    if given.snooze_s is not None:
        outcome = site.hub_api.snooze(_reply(call, record, ""), given.snooze_s)
    else:
        outcome = site.hub_api.postpone(_reply(call, record, given.value, given.as_text), given.when)
    return _told(outcome, 409)


async def revoke(site: Site, call: Call) -> Response:
    return _told(site.hub_api.revoke_later(_reply(call, None, ""), call.path("later_id")), 404)


def _reply(call: Call, record: PromptRecord | None, value: str, as_text: bool = False) -> InboundReply:
    name = call.caller.identity.partition(":")[2]
    fields: dict[str, Any] = {"session_id": record.session_id, "nonce": record.nonce} if record else {}
    prompt_id = record.prompt_id if record else ""
    return InboundReply("web", call.caller.identity, prompt_id, value, as_text=as_text, place=name, **fields)


def _told(outcome: Receipt | Reject, missing: int) -> Response:
    if isinstance(outcome, Reject):
        known = {**STATUS, Refusal.UNKNOWN_PROMPT: missing}
        return problem(known.get(outcome.reason, 409), outcome.reason.value, outcome.sentence)
    return JSONResponse({"stage": outcome.stage, "message": outcome.sentence, "later_id": outcome.answer})
