"""The API's prompts: what is open, one answer, a report, and the stream of everything that happens."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import JSONResponse, Response

from atlasbridge.core.clock import iso, parse_iso
from atlasbridge.core.operations import HubOperations, Refused
from atlasbridge.core.prompt.machine import OPEN
from atlasbridge.core.prompt.model import InboundReply, PromptRecord, Receipt, Refusal, Reject
from atlasbridge.web.api import Call, handles, problem, refuse
from atlasbridge.web.guard import LOOPBACK, host_name
from atlasbridge.web.site import Site, Verdict
from atlasbridge.web.stream import encode_event, event_stream

VERDICT_TIMEOUT_S = 15.0
CHALLENGE = "x-atlasbridge-challenge"
NO_PROMPT = (404, "unknown_prompt", "there is no such prompt")


def _asked(site: Site, call: Call) -> PromptRecord | None:
    """The prompt that the request is about."""
    return site.hub_api.prompt(call.given.prompt_id)


@handles(HubOperations.prompts)
async def list_prompts(site: Site, call: Call) -> Response:
    prompts = [site.show(record) for record in site.hub_api.open_prompts()]
    return JSONResponse({"now": iso(site.clock.wall()), "prompts": prompts})


@handles(HubOperations.prompt)
async def get_prompt(site: Site, call: Call) -> Response:
    record = _asked(site, call)
    return JSONResponse(site.show(record)) if record else problem(*NO_PROMPT)


@handles(HubOperations.reply)
async def reply(site: Site, call: Call) -> Response:
    record = _asked(site, call)
    if record is None:
        return problem(*NO_PROMPT)
    if record.prompt.secret and not is_private(call):
        return problem(403, "not_private", "a secret is taken only over loopback or TLS")
    if refused := refuse_asker(site, record, call, "reply"):
        return refused
    key = (call.caller.key, record.prompt_id, call.given.request_key)
    wait_s = 0.0 if site.outcomes.knows(key) else site.answers.admit(call.caller.key, site.clock.now())
    if wait_s:
        return problem(429, "rate_limited", "too many answers in a short time; wait a little", wait_s)
    try:
        outcome = await site.outcomes.once(key, site.submit(_inbound(record, call), VERDICT_TIMEOUT_S))
    except asyncio.QueueFull:
        return problem(503, "unavailable", "too many answers are waiting")
    if record.state in OPEN and isinstance(outcome, Receipt):
        site.counters.count_wait(max(0.0, site.clock.wall() - parse_iso(record.created_at)))
    return _told(site, record, outcome)


def refuse_asker(site: Site, record: PromptRecord, call: Call, op: str) -> Response | None:
    """Who asked a question does not answer it, with the same token."""
    if site.hub_api.integrations.owner(record.session_id) != call.caller.identity:
        return None
    refusal = site.hub_api.refuse_inside_session(record.session_id, op, record.prompt_id)
    return problem(403, refusal.reason.value, "Who asked this cannot answer it: only a person decides.")


def _told(site: Site, record: PromptRecord, outcome: Verdict) -> Response:
    if outcome is None:
        return problem(503, "unavailable", "the hub did not decide in time; look whether the prompt is still open")
    if isinstance(outcome, Reject):
        site.counters.refusals[outcome.reason.value] += 1
        reason = (
            Refusal.NOT_OPEN if outcome.reason is Refusal.BAD_NONCE else outcome.reason
        )  # the key was ours: it is used
        return refuse(Refused(reason.value, outcome.sentence))
    now = site.hub_api.prompt(record.prompt_id) or record
    told = {"stage": outcome.stage, "message": outcome.sentence, "prompt_id": record.prompt_id}
    return JSONResponse({**told, "audit_head": outcome.audit_head, "prompt": site.show(now)})


@handles(HubOperations.outcome)
async def outcome(site: Site, call: Call) -> Response:
    """For a sender that lost its connection: whether that answer arrived, and what became of the prompt."""
    record = _asked(site, call)
    if record is None:
        return problem(*NO_PROMPT)
    key = (call.caller.key, record.prompt_id, call.given.request_key)
    known = bool(key[2]) and site.outcomes.knows(key)
    verdict = await site.outcomes.of(key) if known else None
    refused = isinstance(verdict, Reject)
    sentence = verdict.sentence if verdict is not None else ""
    now = site.hub_api.prompt(record.prompt_id) or record
    told = {"arrived": known, "refused": refused, "message": sentence}
    head = verdict.audit_head if isinstance(verdict, Receipt) else ""
    return JSONResponse({**told, "audit_head": head, "prompt": site.show(now)})


def _inbound(record: PromptRecord, call: Call) -> InboundReply:
    return InboundReply(
        channel="web",
        identity=call.caller.identity,
        prompt_id=record.prompt_id,
        value=call.given.value,
        session_id=call.given.session_id or record.session_id,
        nonce=record.nonce,
        as_text=call.given.as_text,
        place=call.caller.identity.partition(":")[2],
        request_key=call.given.request_key,
        token=asyncio.get_running_loop().create_future(),
    )


def is_private(call: Call) -> bool:
    """Loopback (an ssh tunnel ends there too), our own TLS, or a TLS proxy on this machine that says so."""
    request = call.request
    if request.url.scheme == "https" or host_name(request.headers["host"]) in LOOPBACK:
        return True
    return (
        request.headers.get("x-forwarded-proto", "") == "https"
        and request.client is not None
        and (request.client.host in LOOPBACK)
    )


@handles(HubOperations.report_prompt)
async def report_prompt(site: Site, call: Call) -> Response:
    record = _asked(site, call)
    if record is None:
        return problem(*NO_PROMPT)
    shown = record.prompt
    detail: dict[str, Any] = {
        "type": shown.type.value,
        "score": shown.score,
        "screen": shown.screen,
        "evidence": [item.to_json() for item in shown.evidence],
    }
    return await _report(site, "not_a_prompt", record.session_id, record.prompt_id, call.given.note, detail)


@handles(HubOperations.report_missed)
async def report_missed(site: Site, call: Call) -> Response:
    session = site.session(call.given.session_id)
    if session is None:
        return problem(404, "unknown_session", "there is no such session")
    detail = {"tool": session.tool, "screen": await site.hub_api.screen(session.session_id)}
    return await _report(site, "missed", session.session_id, session.open_prompt, call.given.note, detail)


async def _report(
    site: Site, verdict: str, session_id: str, prompt_id: str, note: str, detail: dict[str, Any]
) -> Response:
    path = site.reports.write(verdict, session_id, prompt_id, note, detail)
    if path is None:
        return problem(503, "unavailable", "there are too many reports already; read them with atlasbridge lab report")
    return JSONResponse({"report": path.name})


@handles(HubOperations.event_stream)
async def events(site: Site, call: Call) -> Response:
    if site.broadcast.full:
        return problem(503, "unavailable", "too many pages are open")
    missed = site.broadcast.missed(call.request.headers.get("last-event-id", ""))
    queue = site.broadcast.join()
    if missed is None:
        cookie = call.request.cookies.get(site.access.cookie_name, "")
        challenge = call.request.headers.get(CHALLENGE, "")
        known = site.access.greet(call.caller.key, cookie, challenge) if challenge else None
        missed = [encode_event({**site.snapshot(), "proof": known or ""}, site.broadcast.last_id)]
    return event_stream(site.broadcast.follow(queue, missed))
