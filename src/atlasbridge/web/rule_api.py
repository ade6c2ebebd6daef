"""The API's rules: what they are, what is granted and by whom, what they decided; and ending a grant."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from atlasbridge.web.operation import Call, problem
from atlasbridge.web.site import Site
from atlasbridge.web.view import render_plain

FULL_ID = 36


async def rules(site: Site, call: Call) -> Response:
    return JSONResponse(render_plain(site.hub_api.rules()))


async def revoke_grant(site: Site, call: Call) -> Response:
    """By its whole id only: the page has it."""
    grant_id = call.path("grant_id")
    ended = len(grant_id) >= FULL_ID and site.hub_api.revoke_grant(grant_id, call.caller.identity)
    return JSONResponse({"revoked": True}) if ended else problem(404, "unknown_grant", "there is no such grant")
