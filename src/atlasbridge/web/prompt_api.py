"""The API of prompts: list open ones, answer, report, and stream all events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from starlette.responses import Response

from atlasbridge.channels.language import hub_says
from atlasbridge.core.clock import iso, parse_iso
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.operations import HubOperations, Refused
from atlasbridge.core.prompt.model import OPEN, InboundReply, PromptRecord, Receipt, Refusal, Reject
from atlasbridge.core.prompt.question import BadQuestion, Question, RemoteQuestion, prompt_of
from atlasbridge.core.prompt.redact import redact
from atlasbridge.core.session.model import SessionRecord, SessionState
from atlasbridge.core.values import as_dict
from atlasbridge.web.api import Call, Found, Missing, handles, problem, session_of_peer
from atlasbridge.web.guard import LOOPBACK, host_name
from atlasbridge.web.site import Site, Verdict
from atlasbridge.web.stream import encode_event, event_stream, in_language, until_cut

VERDICT_TIMEOUT_S = 15.0
CHALLENGE = "x-atlasbridge-challenge"


def asked_prompt(site: Site, call: Call) -> PromptRecord:
    """Return the prompt of the request."""
    record = site.hub_api.prompt(call.given.prompt_id)
    if record is None:
        raise Missing(404, "unknown_prompt", "there is no such prompt")
    return record


def named_session(site: Site, call: Call, running: bool = False) -> SessionRecord:
    """Return the session of the request. One that has ended shows the last of it."""
    session = site.session(call.given.session_id)
    if session is None or (running and session.state is not SessionState.ACTIVE):
        raise Missing(404, "unknown_session", "there is no such session")
    return session


@handles(HubOperations.prompts)
async def list_prompts(site: Site, call: Call) -> Found:
    prompts = [site.show(record) for record in site.hub_api.open_prompts()]
    return {"now": iso(site.clock.wall()), "prompts": prompts}


@handles(HubOperations.prompt)
async def get_prompt(site: Site, call: Call) -> Found:
    return site.show(asked_prompt(site, call))


@handles(HubOperations.reply)
async def reply(site: Site, call: Call) -> Found:
    record = asked_prompt(site, call)
    if record.prompt.secret and not is_private(call):
        return problem(403, "not_private", "secrets are accepted only over loopback or TLS")
    if refused := refuse_asker(site, record, call):
        return refused
    key = (call.caller.key, record.prompt_id, call.given.request_key)
    wait_s = 0.0 if site.outcomes.knows(key) else site.answers.admit(call.caller.key, site.clock.now())
    if wait_s:
        return problem(429, "rate_limited", "too many answers in a short time; wait a little", wait_s)
    try:
        outcome = await site.outcomes.once(key, site.submit(_inbound(site, record, call), VERDICT_TIMEOUT_S))
    except asyncio.QueueFull:
        return problem(503, "unavailable", "too many answers are waiting")
    if record.state in OPEN and isinstance(outcome, Receipt):
        site.counters.count_wait(max(0.0, site.clock.wall() - parse_iso(record.created_at)))
    return _told(site, record, outcome)


def refuse_asker(site: Site, record: PromptRecord, call: Call) -> Response | None:
    """A token that asked a question cannot answer it."""
    if site.hub_api.questions.owner(record.session_id) != call.caller.identity:
        return None
    refusal = site.hub_api.refuse_inside_session(record.session_id, "reply", record.prompt_id)
    return problem(403, refusal.reason.value, "The program that asked cannot answer: only a person can decide.")


def _told(site: Site, record: PromptRecord, outcome: Verdict) -> Found:
    if outcome is None:
        return problem(503, "unavailable", "the hub did not decide in time; check whether the prompt is still open")
    if isinstance(outcome, Reject):
        site.counters.refusals[outcome.reason.value] += 1
        used = outcome.reason is Refusal.BAD_NONCE  # the key was correct, but it was used already
        return Refused((Refusal.NOT_OPEN if used else outcome.reason).value, outcome.sentence)
    now = site.hub_api.prompt(record.prompt_id) or record
    told = {"stage": outcome.stage, "message": hub_says(outcome.sentence), "prompt_id": record.prompt_id}
    return {**told, "audit_head": outcome.audit_head, "prompt": site.show(now)}


@handles(HubOperations.outcome)
async def outcome(site: Site, call: Call) -> Found:
    """For a sender that lost its connection: whether its answer arrived, and the outcome of the prompt."""
    record = asked_prompt(site, call)
    key = (call.caller.key, record.prompt_id, call.given.request_key)
    known = bool(key[2]) and site.outcomes.knows(key)
    verdict = await site.outcomes.of(key) if known else None
    refused = isinstance(verdict, Reject)
    sentence = verdict.sentence if verdict is not None else ""
    now = site.hub_api.prompt(record.prompt_id) or record
    told = {"arrived": known, "refused": refused, "message": hub_says(sentence)}
    head = verdict.audit_head if isinstance(verdict, Receipt) else ""
    return {**told, "audit_head": head, "prompt": site.show(now)}


def _inbound(site: Site, record: PromptRecord, call: Call) -> InboundReply:
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
        passkey={**as_dict(call.given.passkey), "origins": site.origins()} if call.given.passkey else {},
        token=asyncio.get_running_loop().create_future(),
    )


def is_private(call: Call) -> bool:
    """Whether the connection is private: loopback (also the end of an ssh tunnel), or TLS."""
    return host_name(call.request.headers["host"]) in LOOPBACK or is_over_tls(call)


def is_over_tls(call: Call) -> bool:
    """Over our own TLS, or that of a proxy on this machine."""
    request = call.request
    proxied = request.headers.get("x-forwarded-proto", "") == "https"
    return request.url.scheme == "https" or (proxied and request.client is not None and request.client.host in LOOPBACK)


@handles(HubOperations.report_prompt)
async def report_prompt(site: Site, call: Call) -> Found:
    record = asked_prompt(site, call)
    shown = record.prompt
    detail: dict[str, Any] = {
        "type": shown.type.value,
        "score": shown.score,
        "screen": shown.screen,
        "evidence": [item.to_json() for item in shown.evidence],
    }
    return await _report(site, "not_a_prompt", record.session_id, record.prompt_id, call.given.note, detail)


@handles(HubOperations.report_missed)
async def report_missed(site: Site, call: Call) -> Found:
    session = named_session(site, call)
    detail = {"tool": session.tool, "screen": await site.hub_api.screen(session.session_id)}
    return await _report(site, "missed", session.session_id, session.open_prompt, call.given.note, detail)


async def _report(
    site: Site, verdict: str, session_id: str, prompt_id: str, note: str, detail: dict[str, Any]
) -> Found:
    path = site.reports.write(verdict, session_id, prompt_id, note, detail)
    if path is None:
        return problem(503, "unavailable", "there are too many reports already; read them with atlasbridge lab report")
    return {"report": path.name}


@handles(HubOperations.event_stream)
async def events(site: Site, call: Call) -> Found:
    if site.broadcast.full:
        return problem(503, "unavailable", "too many pages are open")
    missed = site.broadcast.missed(call.request.headers.get("last-event-id", ""))
    queue = site.broadcast.join()
    if missed is None:
        cookie = call.request.cookies.get(site.access.cookie_name, "")
        challenge = call.request.headers.get(CHALLENGE, "")
        known = site.access.greet(call.caller.key, cookie, challenge) if challenge else None
        missed = [encode_event({**site.snapshot(), "proof": known or ""}, site.broadcast.last_id)]
    return event_stream(in_language(site.broadcast.follow(queue, missed)))


# The API of questions: a program asks people over HTTP and waits for the answer in a stream, or notifies them. The
# asker chooses the question's id: after a lost connection it asks again with the same id and gets the same answer.

MAX_QUESTIONS = 200  # waiting at once, each in a separate connection
STILL_HERE = b": still here\n\n"


@handles(HubOperations.ask)
async def ask(site: Site, call: Call) -> Found:
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
    if site.hub_api.questions.is_foreign(body.question_id, call.caller.identity):
        return problem(409, "not_yours", "this id belongs to another question")
    if site.questions >= MAX_QUESTIONS:
        return problem(503, "unavailable", "too many questions are waiting")
    inside_session = await session_of_peer(site, call.request)
    label = site.hub_api.mark_asker(body.label or call.caller.identity.partition(":")[2], inside_session)
    asked = RemoteQuestion(body.question_id, call.caller.identity, question, label, body.ttl_s)
    return event_stream(_pour(site, asked))


async def _pour(site: Site, asked: RemoteQuestion) -> AsyncIterator[bytes]:
    site.questions += 1
    try:
        async with aclosing(until_cut(site.hub_api.questions.ask(asked), site.broadcast.cut, idle={})) as told:
            async for event in told:
                yield encode_event(event) if event else STILL_HERE
    finally:
        site.questions -= 1


@handles(HubOperations.withdraw)
async def withdraw(site: Site, call: Call) -> Found:
    question_id = call.given.question_id
    if site.hub_api.questions.owner(question_id) != call.caller.identity:
        return problem(404, "unknown_question", "there is no such question of yours")
    return {"withdrawn": site.hub_api.questions.withdraw(question_id)}


@handles(HubOperations.notify)
async def notify(site: Site, call: Call) -> Found:
    text = redact(escape_controls(call.given.message))
    if not text.strip():
        return problem(422, "bad_value", "there is nothing to report")
    inside_session = await session_of_peer(site, call.request)
    who = site.hub_api.mark_asker(call.given.label or call.caller.identity.partition(":")[2], inside_session)
    site.hub_api.tell(f"{who}: {text}")
    return {"told": True}
