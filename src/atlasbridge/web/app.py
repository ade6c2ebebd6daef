"""The ASGI application: routes from the table of operations, static files, and the guard."""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from atlasbridge.web import admin_api, mcp_api, passkey_api, prompt_api, session_api
from atlasbridge.web.api import OVER_HTTP, http_error, perform, routes_of
from atlasbridge.web.guard import Guard
from atlasbridge.web.openapi import PREFIX, render_openapi
from atlasbridge.web.page_files import digest_page, page_routes, read_page
from atlasbridge.web.site import Site

HANDLERS_IN = (
    admin_api,
    passkey_api,
    prompt_api,
    prompt_api,
    session_api,
    session_api,
)  # imported to register their handlers


def build_app(site: Site, names: tuple[str, ...]) -> ASGIApp:
    """`names` are the host names served besides loopback."""
    routes = routes_of(PREFIX, OVER_HTTP, partial(perform, site))
    routes.append(Route(mcp_api.PATH, mcp_api.McpEndpoint(mcp_api.PageHost(site)).serve, methods=mcp_api.METHODS))
    routes.append(Route(f"{PREFIX}/openapi.json", _openapi, methods=["GET"]))
    static = read_page()
    site.shell = digest_page(static)
    routes += page_routes(static)
    handlers: Any = {HTTPException: http_error}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return Guard(app, names, site.counters.count_status)


async def _openapi(request: Request) -> Response:
    return JSONResponse(render_openapi())
