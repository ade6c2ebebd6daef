"""The ASGI application: routes, static files, and the link.  It keeps nothing between two requests."""

from __future__ import annotations

import logging
from importlib.resources import files

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from atlasbridge.core.errors import StoreError
from atlasbridge.core.fleet_wire import PATH
from atlasbridge.fleet.server.auth import HouseRules
from atlasbridge.fleet.server.context import ServerContext
from atlasbridge.fleet.server.database import Unkeepable
from atlasbridge.fleet.server.machine_link import serve_link
from atlasbridge.fleet.server.metrics import Gauges
from atlasbridge.fleet.server.page_api import PageApi, refuse

log = logging.getLogger(__name__)

STATIC = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/server.js": ("server.js", "text/javascript; charset=utf-8"),
    "/server.css": ("server.css", "text/css; charset=utf-8"),
}


def build_application(context: ServerContext, metrics_token: str = "") -> Starlette:
    page, gauges = PageApi(context), Gauges(context, metrics_token)
    routes: list[BaseRoute] = [
        Route("/api/login", page.login, methods=["POST"]),
        Route("/api/logout", page.known(page.logout), methods=["POST"]),
        Route("/api/me", page.known(page.me)),
        Route("/api/prompts", page.known(page.prompts)),
        Route("/api/machines", page.known(page.machines)),
        Route("/api/history", page.known(page.history)),
        Route("/api/decide", page.known(page.decide), methods=["POST"]),
        Route("/api/decisions/{id}", page.known(page.decision)),
        Route("/api/events", page.known(page.events)),
        Route("/api/screen", page.known(page.screen)),
        Route("/metrics", gauges.metrics),
        Route("/health", gauges.health),
        Route("/ready", gauges.ready),
        Route("/favicon.ico", _nothing),
        *(Route(path, _static(name, kind)) for path, (name, kind) in STATIC.items()),
    ]

    async def link(socket: WebSocket) -> None:
        await serve_link(context, socket)

    routes.append(WebSocketRoute(PATH, link))
    middleware = [Middleware(HouseRules, context=context)]
    return Starlette(routes=routes, middleware=middleware, exception_handlers={StoreError: _away, Unkeepable: _odd})


def _static(name: str, kind: str):  # type: ignore[no-untyped-def]
    body = files("atlasbridge.fleet.server").joinpath("static", name).read_bytes()

    async def endpoint(request: Request) -> Response:
        return Response(body, media_type=kind)

    return endpoint


async def _nothing(request: Request) -> Response:
    return Response(status_code=204)


async def _odd(request: Request, error: Exception) -> Response:
    return refuse(400, "bad_request", "That cannot be kept, so it is not taken.")


async def _away(request: Request, error: Exception) -> Response:
    """Which server, which user and why is for the log: anybody may ask."""
    log.warning("a request was not served: %s", error)
    answer = refuse(503, "unavailable", "PostgreSQL is away. Nothing was decided; try again.")
    answer.headers["retry-after"] = "1"
    return answer
