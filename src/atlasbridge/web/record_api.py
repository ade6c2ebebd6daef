"""The API's records: history, audit log, statistics, metrics and health.  All of it only reads."""

from __future__ import annotations

from starlette.responses import JSONResponse, PlainTextResponse, Response

from atlasbridge import __version__
from atlasbridge.core.operations import HubOperations
from atlasbridge.web.api import Call, handles
from atlasbridge.web.site import Site

MOST_KINDS = 40


@handles(HubOperations.health)
async def health(site: Site, call: Call) -> Response:
    return JSONResponse({"status": "ok", "version": __version__})


@handles(HubOperations.history)
async def history(site: Site, call: Call) -> Response:
    query = call.given
    wanted = (query.search, query.limit, query.before, query.session, query.state)
    records = site.hub_api.history(*wanted)
    return JSONResponse({"prompts": [site.show(record) for record in records]})


@handles(HubOperations.audit_page)
async def audit(site: Site, call: Call) -> Response:
    query = call.given
    events = tuple(name for name in query.events.split(",") if name)[:MOST_KINDS]
    found = site.hub_api.audit_entries(query.limit, query.before or None, events, query.session, query.prompt)
    return JSONResponse({"entries": found})


@handles(HubOperations.statistics)
async def statistics(site: Site, call: Call) -> Response:
    reported = {verdict: site.reports.count(verdict) for verdict in ("not_a_prompt", "missed")}
    return JSONResponse({**site.hub_api.statistics(), "reported": reported})


@handles(HubOperations.metrics)
async def metrics(site: Site, call: Call) -> Response:
    gauges = {
        "sessions": ("Sessions that run now", float(len(site.hub_api.sessions()))),
        "open_prompts": ("Prompts that wait for an answer", float(len(site.hub_api.open_prompts()))),
        "web_listeners": ("Pages that follow the event stream", float(site.broadcast.listeners)),
        "web_watchers": ("Screens that are being watched", float(site.watchers)),
        "push_subscriptions": ("Browsers that asked for push messages", float(site.push.count)),
    }
    return PlainTextResponse(site.counters.render(gauges), media_type="text/plain; version=0.0.4")
