"""Who calls: the cookie of a login, where the request comes from, and what no page of another site may do."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from atlasbridge.core.escape import escape_controls
from atlasbridge.fleet.server.context import ServerContext
from atlasbridge.fleet.server.people import Caller, who

COOKIE = "atlasbridge_server"
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'"
HEADERS = (
    (b"content-security-policy", (POLICY + "; form-action 'none'; frame-ancestors 'none'").encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class HouseRules:
    """Before anything else: the right host, no page of another site, no link from inside a browser."""

    def __init__(self, app: ASGIApp, context: ServerContext) -> None:
        self._app = app
        self._context = context
        self._names = LOOPBACK | {urlsplit(context.url).hostname or ""}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        if self._is_foreign(scope, headers):
            if scope["type"] == "websocket":
                return await send({"type": "websocket.close", "code": 1008})
            return await JSONResponse({"reason": "forbidden", "message": "Not from there."}, 403)(scope, receive, send)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *HEADERS]
            await send(message)

        return await self._app(scope, receive, guarded)

    def _is_foreign(self, scope: Scope, headers: Headers) -> bool:
        called, origin = headers.get("host", ""), headers.get("origin")
        if _name(f"//{called}") not in self._names:
            return scope.get("path") not in ("/health", "/ready")  # a prober calls by address
        if scope["type"] == "websocket":
            return origin is not None  # hubs are no browsers
        changes = scope["method"] not in ("GET", "HEAD")
        return changes and origin is not None and origin.lower() not in self._own_origins(scope, called)

    def _own_origins(self, scope: Scope, called: str) -> tuple[str, str]:
        """As people know the server, and as it was called: to a browser another port of this host is the same site, and
        the cookie comes along from there."""
        known = urlsplit(self._context.url)
        return f"{known.scheme}://{known.netloc}".lower(), f"{scope['scheme']}://{called}".lower()


def _name(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""  # no address at all


async def caller_of(context: ServerContext, request: Request) -> Caller | None:
    token = request.cookies.get(COOKIE, "")
    return await who(context.database, token) if token else None


def place_of(request: Request) -> str:
    """The device, in a few words, as it says itself."""
    agent = request.headers.get("user-agent", "")
    browser = next((name for name in ("Firefox", "Edg", "Chrome", "Safari") if name in agent), "a browser")
    system = next((name for name in ("Android", "iPhone", "Mac OS", "Windows", "Linux") if name in agent), "")
    return escape_controls(f"the server, {browser}{f' on {system}' if system else ''}", keep_lines=False)


def with_cookie(response: Response, token: str, secure: bool) -> Response:
    response.set_cookie(COOKIE, token, max_age=30 * 86_400, httponly=True, samesite="strict", secure=secure, path="/")
    return response
