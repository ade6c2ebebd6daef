"""`atlasbridge fleet serve`: opens the database, checks its schema, serves the application and stops on a signal."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
import signal
import socket
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from atlasbridge.core.daemon.log_file import request_id
from atlasbridge.core.errors import ConfigError, StoreError
from atlasbridge.core.fleet_wire import LONGEST_MESSAGE, PATH
from atlasbridge.core.hub_connection import bind_alone
from atlasbridge.core.ids import new_nonce
from atlasbridge.core.routing.router import ReadPlan
from atlasbridge.core.values import frozen, replace
from atlasbridge.fleet.server.api import FleetApi, caller_of, login_page
from atlasbridge.fleet.server.chat_cache import load_directory
from atlasbridge.fleet.server.chats import Chats
from atlasbridge.fleet.server.context import ServerContext, Trace
from atlasbridge.fleet.server.database import Database, Unkeepable
from atlasbridge.fleet.server.machine_link import serve_link
from atlasbridge.fleet.server.migrate import migrate
from atlasbridge.fleet.server.questions import FleetQuestions
from atlasbridge.web.api import http_error, problem
from atlasbridge.web.guard import Guard
from atlasbridge.web.page_files import digest_page, page_routes, read_page

if TYPE_CHECKING:
    from atlasbridge.fleet.server.oidc import OidcSettings

log = logging.getLogger(__name__)


SERVING = "atlasbridge fleet serve"
BACKLOG = 2048  # connections that wait to be accepted


@frozen
class Address:
    """The address to listen on, the public URL, and the other options of the server."""

    host: str = "127.0.0.1"
    port: int = 8460
    url: str = ""
    cert: str = ""
    key: str = ""
    metrics_token: str = ""
    connections: int = 10
    keep_s: float = 90 * 86_400.0  # how long ended prompts and sessions are kept
    oidc: OidcSettings | None = None  # a second way to log in, besides links

    @property
    def known_as(self) -> str:
        return self.url or f"{'https' if self.cert else 'http'}://{self.host}:{self.port}"


def refuse_open_sockets(place: Address) -> None:
    """Require TLS, because tokens and answers must not cross a network unencrypted."""
    if place.host not in ("127.0.0.1", "::1", "localhost") and not place.cert and not place.url.startswith("https:"):
        raise ConfigError(
            f"listening on {place.host} without TLS would send tokens in the clear",
            "give --cert and --key, or put a proxy with TLS before it and say --url https://…",
        )


def run(serving: Coroutine[Any, Any, None]) -> None:
    """Run with uvloop where it is installed, because a request then needs a third of the processor time."""
    try:
        import uvloop
    except ImportError:  # Windows
        return asyncio.run(serving)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serving)


async def serve(
    database_url: str,
    place: Address,
    ready: Callable[[str], None],
    read_plan: ReadPlan | None = None,
    trace: Trace | None = None,
) -> None:
    """Run the server until a signal stops it. `read_plan` gives the chats that this process can serve; None means no
    chats. `trace` collects spans of prompts.
    """
    refuse_open_sockets(place)
    database = Database(database_url, most=place.connections, name=SERVING)
    await database.open()
    try:
        await database.check_session()
        await migrate(database)
        listener = listen_at(place)
        place = replace(place, port=listener.getsockname()[1])
        context = ServerContext(database, place.known_as, place.keep_s)
        await context.read_identity()
        context.trace = trace or context.trace
        if read_plan is not None:
            read_plan((await load_directory(database)).by_channel())  # raises an error now if it is invalid
            context.chats = Chats(context, read_plan)
        working = asyncio.create_task(context.run(), name="background")
        server = FleetServer(server_settings(context, place))
        stop_on_signals(server)
        serving = asyncio.create_task(server.serve(sockets=[listener]), name="listener")
        ready(place.known_as)
        done, _ = await asyncio.wait({working, serving}, return_when=asyncio.FIRST_COMPLETED)
        server.should_exit = True
        working.cancel()
        await asyncio.gather(working, serving, return_exceptions=True)
        for task in done:
            if not task.cancelled():
                task.result()
    finally:
        await database.close()


def listen_at(place: Address) -> socket.socket:
    try:
        listener = bind_alone(place.host, place.port)
        listener.listen(BACKLOG)  # before anybody is told the address
        return listener
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {place.host}:{place.port}: {error.strerror}", "choose another --port"
        ) from None


def server_settings(context: ServerContext, place: Address) -> uvicorn.Config:
    return uvicorn.Config(
        build_application(context, place.metrics_token, place.oidc),
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        ws="wsproto",
        ws_max_size=LONGEST_MESSAGE,
        timeout_graceful_shutdown=2,
        proxy_headers=False,
        ssl_certfile=place.cert or None,
        ssl_keyfile=place.key or None,
    )


class FleetServer(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self):  # type: ignore[no-untyped-def]
        """Do nothing, because `stop_on_signals` installs the handlers."""
        yield


def stop_on_signals(server: uvicorn.Server) -> None:
    def stop() -> None:
        server.force_exit = server.should_exit  # a second signal stops at once
        server.should_exit = True

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)


# The ASGI application: routes, static files and the machine link. It keeps no state between two requests.

NO_OIDC = "Log in with a link: an administrator makes one with atlasbridge fleet people link NAME."
PROBES = ("/health", "/ready", "/metrics")  # reachable under any host name; /metrics needs a token or a login


def build_application(context: ServerContext, metrics_token: str = "", oidc: OidcSettings | None = None) -> ASGIApp:
    files = read_page("atlasbridge.fleet.server")  # the page of a hub, with its own API client
    probes = Probes(context, metrics_token)
    routes: list[BaseRoute] = [
        Route("/metrics", probes.metrics),
        Route("/health", probes.health),
        Route("/ready", probes.ready),
        Route("/favicon.ico", _nothing),
        *FleetApi(context, digest_page(files)).routes(),
        *FleetQuestions(context).routes(),
        *_login_routes(context, oidc),
        Route("/admin", _admin),
        *page_routes(files),
    ]

    async def link(socket: WebSocket) -> None:
        await serve_link(context, socket)

    routes.append(WebSocketRoute(PATH, link))
    handlers: Any = {StoreError: _away_of(context), Unkeepable: _odd, HTTPException: http_error}
    app = Starlette(routes=routes, exception_handlers=handlers)
    known = urlsplit(context.url)
    return Guard(
        Measured(app, context),
        [known.hostname or ""],
        lambda status: context.metrics.requests.labels(str(status)).inc(),
        PROBES,
        f"{known.scheme}://{known.netloc}",
        takes_links=True,
    )


def _login_routes(context: ServerContext, oidc: OidcSettings | None) -> list[Route]:
    label = oidc.label if oidc else ""

    async def login(request: Request) -> Response:
        return login_page("Log in here, or with a link: ask an administrator for one." if oidc else NO_OIDC, label)

    if oidc is None:
        return [Route("/login", login)]
    from atlasbridge.fleet.server.oidc import OidcLogin

    return [Route("/login", login), *OidcLogin(context, oidc).routes()]


class Measured:
    """Measures each request and gives it an id, which appears in its response and its log lines."""

    def __init__(self, app: ASGIApp, context: ServerContext) -> None:
        self._app = app
        self._context = context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        given = Headers(scope=scope).get("x-request-id", "")
        name = given if given.isascii() and given.isprintable() and 0 < len(given) <= 64 else new_nonce()[:16]
        request_id.set(name)
        clock = asyncio.get_running_loop().time
        began = clock()

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._context.metrics.request_seconds.observe(clock() - began)
                MutableHeaders(raw=message["headers"])["X-Request-Id"] = name
            await send(message)

        return await self._app(scope, receive, named)


class Probes:
    """Health, readiness and metrics."""

    def __init__(self, context: ServerContext, token: str) -> None:
        self._context = context
        self._token = token

    async def metrics(self, request: Request) -> Response:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        trusted = bool(self._token) and hmac.compare_digest(given.encode(), self._token.encode())
        if not trusted and await caller_of(self._context, request) is None:
            return problem(401, "unauthorized", "Give the token of --metrics-token-file, or log in.")
        here = {
            "links_here": self._context.links,
            "pages_here": self._context.pages,
            "chats_carried_here": self._carries,
        }
        figures = await self._context.metrics.render(self._context.database, **here)
        return Response(figures, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def health(self, request: Request) -> Response:
        """The process is alive. Also says whether it serves the chats."""
        return JSONResponse({"ok": True, "chats": self._carries})

    @property
    def _carries(self) -> bool:
        chats = self._context.chats
        return chats is not None and bool(chats.health()["carried_here"])

    async def ready(self, request: Request) -> Response:
        """The server can work: PostgreSQL responds."""
        try:
            await self._context.database.rows("SELECT 1")
        except StoreError as error:  # anybody can call this, so details go only to the log
            log.warning("not ready: %s", error)
            return JSONResponse({"ok": False, "message": "The database cannot be reached."}, 503)
        return JSONResponse({"ok": True})


async def _admin(request: Request) -> Response:
    return RedirectResponse("/admin.html")


async def _nothing(request: Request) -> Response:
    return Response(status_code=204)


async def _odd(request: Request, error: Exception) -> Response:
    return problem(400, "bad_request", "The server cannot store that, so it was not accepted.")


def _away_of(context: ServerContext):  # type: ignore[no-untyped-def]
    async def away(request: Request, error: Exception) -> Response:
        """Anybody can send a request, so the details go only to the log. If the response to a commit was lost, it is
        unknown whether a change was stored; the client has to look it up by its request key.
        """
        context.metrics.database_faults.inc()
        log.warning("a request was not served: %s", error)
        if request.method in ("GET", "HEAD"):
            return problem(503, "unavailable", "The database cannot be reached. Try again.")
        return problem(503, "unknown", "The database cannot be reached. This may or may not have been accepted.")

    return away
