"""Checks every request first: host name, origin and size; and sets headers of the response.

Plain ASGI, so that it also covers static files and errors. Authentication comes later. Sentences of a response are in
the language that the request asks for.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from atlasbridge.channels.language import Reader, known_language, reading

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
MAX_BODY = 64 * 1024
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types atlasbridge"
    ),
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cache-Control": "no-store",
}


_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?))(?::([0-9]{1,5}))?")


def host_name(host: str) -> str:
    """Return the name in a Host header without its port: "[::1]:80" -> "::1"; "" if it is invalid. Only a name, an
    address in brackets and a port are allowed: no user, no path, nothing after a bracket."""
    found = _HOST.fullmatch(host.lower())
    if found is None or int(found[3] or 0) > 65535:
        return ""
    return found[1] or found[2]


class Guard:
    """`probes` are paths that are served under any host name, because health checks use an address. `origin` is the
    page's address for browsers behind a proxy. `takes_links` accepts WebSockets of hubs, which are not browsers."""

    def __init__(
        self,
        app: ASGIApp,
        names: Iterable[str],
        count: Callable[[int], None],
        probes: Iterable[str] = (),
        origin: str = "",
        takes_links: bool = False,
    ) -> None:
        self._app = app
        self._names = LOOPBACK | {name.lower() for name in names}
        self._count = count
        self._probes = frozenset(probes)
        self._origin = origin.lower()
        self._takes_links = takes_links

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket" and self._takes_links:
            await self._pass_link(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        sender = _Sender(send, self._count)
        refusal = self._refusal(scope)
        if refusal:
            await sender.refuse(*refusal)
            return
        wanted = Headers(scope=scope).get("accept-language", "")
        with reading(Reader(known_language(*re.split(r"[,;\s]+", wanted)))):
            await self._app(scope, _Bounded(receive), sender)

    async def _pass_link(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or host_name(hosts[0]) not in self._names or "origin" in headers:
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> tuple[int, str, str] | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if (len(hosts) != 1 or host_name(hosts[0]) not in self._names) and scope["path"] not in self._probes:
            return 421, "wrong_host", "this address is not served here; add it to hosts in the configuration"
        if not self._is_own_page(headers, scope["scheme"], hosts[0] if hosts else ""):
            return 403, "wrong_origin", "requests from other web pages are refused"
        if scope["path"].startswith("/api/") and headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return 403, "wrong_origin", "requests from other web pages are refused"
        if "transfer-encoding" in headers and "content-length" in headers:
            return 400, "bad_request", "a body has a length or comes in chunks, not both"
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()) or int(length) > MAX_BODY:
            return 413, "too_large", "the request is too large"
        return None

    def _is_own_page(self, headers: Headers, scheme: str, host: str) -> bool:
        """If the page's address is known, the scheme must match, too: another port of this host can be
        a foreign page."""
        if not self._origin:
            return _same_origin(headers, host)
        own = {self._origin, f"{scheme}://{host}".lower()}
        return {one.lower() for one in headers.getlist("origin")} <= own


def _same_origin(headers: Headers, host: str) -> bool:
    origins = headers.getlist("origin")
    if not origins:
        return True
    scheme, _, rest = origins[0].lower().partition("://")
    return len(origins) == 1 and scheme in ("http", "https") and rest == host.strip().lower()


class _Bounded:
    """Passes the body on, and ends the connection if a chunked body becomes too large."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._seen = 0

    async def __call__(self) -> Message:
        message = await self._receive()
        self._seen += len(message.get("body", b""))
        return {"type": "http.disconnect"} if self._seen > MAX_BODY else message


class Readers:
    """The bodies that are being read. If there are many, the oldest is aborted: a normal body arrives at once with its
    headers."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._open: dict[asyncio.Timeout, None] = {}

    @asynccontextmanager
    async def reading(self, patience_s: float) -> AsyncIterator[None]:
        """Raises TimeoutError inside if reading takes too long, or if others need the slot."""
        if len(self._open) >= self._total:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.reschedule(asyncio.get_running_loop().time())
        async with asyncio.timeout(patience_s) as limit:
            self._open[limit] = None
            try:
                yield
            finally:
                self._open.pop(limit, None)


class _Sender:
    def __init__(self, send: Send, count: Callable[[int], None]) -> None:
        self._send = send
        self._count = count

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._count(message["status"])
            headers = MutableHeaders(raw=message["headers"])
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await self._send(message)

    async def refuse(self, status: int, error: str, sentence: str) -> None:
        body = json.dumps({"error": error, "message": sentence}).encode()
        length = str(len(body)).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", length), (b"connection", b"close")]
        await self({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})
