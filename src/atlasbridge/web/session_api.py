"""The API of sessions: list, screen, live screen, keys (if enabled), end, and start from the configured list."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from starlette.responses import PlainTextResponse

from atlasbridge import __version__
from atlasbridge.channels.transcript import last_answer, rows_of, since_instruction
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.operations import HubOperations
from atlasbridge.core.policy.approval import PROOF
from atlasbridge.core.session.model import SessionRecord, SessionState
from atlasbridge.web.api import Call, Found, Missing, handles, problem
from atlasbridge.web.prompt_api import named_session
from atlasbridge.web.site import Site
from atlasbridge.web.stream import encode_event, event_stream, until_cut
from atlasbridge.web.view import diff_screen, render_screen, render_session

# The API of records: history, audit log, statistics, metrics and health. Read-only.

MOST_KINDS = 40


@handles(HubOperations.health)
async def health(site: Site, call: Call) -> Found:
    return {"status": "ok", "version": __version__}


@handles(HubOperations.history)
async def history(site: Site, call: Call) -> Found:
    query = call.given
    wanted = (query.search, query.limit, query.before, query.session, query.state)
    records = site.hub_api.history(*wanted)
    return {"prompts": [site.show(record) for record in records]}


@handles(HubOperations.audit_page)
async def audit(site: Site, call: Call) -> Found:
    query = call.given
    events = tuple(name for name in query.events.split(",") if name)[:MOST_KINDS]
    found = site.hub_api.audit_entries(query.limit, query.before or None, events, query.session, query.prompt)
    return {"entries": found}


@handles(HubOperations.statistics)
async def statistics(site: Site, call: Call) -> Found:
    reported = {verdict: site.reports.count(verdict) for verdict in ("not_a_prompt", "missed")}
    return {**site.hub_api.statistics(), "reported": reported}


@handles(HubOperations.metrics)
async def metrics(site: Site, call: Call) -> Found:
    gauges = {
        "sessions": ("Sessions that run now", float(len(site.hub_api.sessions()))),
        "open_prompts": ("Prompts that wait for an answer", float(len(site.hub_api.open_prompts()))),
        "web_listeners": ("Pages that follow the event stream", float(site.broadcast.listeners)),
        "web_watchers": ("Screens that are being watched", float(site.watchers)),
        "push_subscriptions": ("Browsers that asked for push messages", float(site.push.count)),
    }
    return PlainTextResponse(site.counters.render(gauges), media_type="text/plain; version=0.0.4")


FPS = 10.0
ESC = b"\x1b"


@handles(HubOperations.sessions)
async def list_sessions(site: Site, call: Call) -> Found:
    name, session_id = call.given.name.lower(), call.given.session_id
    found = [
        one
        for one in site.hub_api.sessions(include_ended=call.given.all)
        if name in ("", (one.label or one.tool).lower()) and session_id in ("", one.session_id)
    ]
    return {"sessions": [render_session(session) for session in found]}


@handles(HubOperations.session)
async def get_session(site: Site, call: Call) -> Found:
    return render_session(named_session(site, call))


async def _frame(site: Site, session: SessionRecord, styled: bool = False, past: bool = False) -> dict[str, Any]:
    frame = await site.hub_api.screen(session.session_id, styled=styled, past=past)
    if frame is None:
        raise Missing(409, "no_screen", "this session has no screen to show")
    return frame


@handles(HubOperations.screen)
async def screen(site: Site, call: Call) -> Found:
    return render_screen(await _frame(site, named_session(site, call), call.given.styled, call.given.past))


@handles(HubOperations.why)
async def why(site: Site, call: Call) -> Found:
    """Explain the last decision of the detector: the answer to "why am I not asked?"."""
    frame = await _frame(site, named_session(site, call, running=True))
    return {"why": [escape_controls(str(line)) for line in frame.get("why") or []]}


@handles(HubOperations.words)
async def words(site: Site, call: Call) -> Found:
    """The conversation as text, without the input box and the lines around it."""
    frame = await _frame(site, named_session(site, call), styled=True, past=True)
    pick = last_answer if call.given.last else since_instruction
    return {"text": escape_controls("\n".join(pick(rows_of(frame))))}


@handles(HubOperations.screen_stream)
async def screen_stream(site: Site, call: Call) -> Found:
    session = named_session(site, call, running=True)
    if site.watchers >= site.max_watchers:
        return problem(503, "unavailable", "too many screens are being watched")
    return event_stream(_frames(site, session.session_id))


async def _frames(site: Site, session_id: str) -> AsyncIterator[bytes]:
    before: dict[str, Any] | None = None
    site.watchers += 1
    try:
        async with aclosing(until_cut(site.hub_api.watch(session_id, FPS), site.broadcast.cut)) as frames:
            async for frame in frames:
                shown = render_screen(frame)
                yield encode_event({"event": "screen", **diff_screen(before, shown)})
                before = shown
        session = site.session(session_id)
        if session is None or session.state is not SessionState.ACTIVE:
            yield encode_event({"event": "ended"})
    finally:
        site.watchers -= 1


@handles(HubOperations.opt_in)
async def opt_in(site: Site, call: Call) -> Found:
    session = named_session(site, call, running=True)
    site.typing.switch(call.caller.key, session.session_id, call.given.on)
    site.hub_api.note("WEB_TYPING", session_id=session.session_id, identity=call.caller.identity, on=call.given.on)
    return {"on": call.given.on}


@handles(HubOperations.type_keys)
async def type_keys(site: Site, call: Call) -> Found:
    session = named_session(site, call, running=True)
    who = (call.caller.key, session.session_id)
    if not site.typing.is_on(*who):
        return problem(403, "typing_off", "switch typing on for this session first")
    try:
        data = call.given.data.encode()
    except UnicodeEncodeError:
        return problem(422, "bad_value", "that is not text")
    asked = [one for one in site.hub_api.open_prompts() if one.session_id == session.session_id]
    if data != ESC and any(PROOF in one.prompt.constraints for one in asked):
        return problem(409, "needs_passkey", "a rule requires a passkey for this: answer its card, or press Esc")
    if call.given.stream:
        wanted = site.typing.expected(*who, call.given.stream)
        if call.given.number < wanted:
            # it was typed already, but the sender did not get the response
            return {"typed": True, "next": wanted}
        if call.given.number > wanted:
            return problem(409, "out_of_order", f"number {wanted} comes first")
        site.typing.took(*who)
    if not await site.hub_api.type_keys(session.session_id, data, call.caller.identity):
        return problem(409, "not_typed", "the session did not accept the keys")
    return {"typed": True, "next": call.given.number + 1}
