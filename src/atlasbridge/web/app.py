"""The ASGI application: routes from the table of operations, static files, and who is calling."""

from __future__ import annotations

import gzip
import hashlib
from functools import partial
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from atlasbridge.web import admin_api, mcp_api, passkey_api, prompt_api, question_api, record_api, session_api
from atlasbridge.web.api import OVER_HTTP, http_error, perform, routes_of
from atlasbridge.web.guard import Guard
from atlasbridge.web.openapi import PREFIX, render_openapi
from atlasbridge.web.site import Site

HANDLERS_IN = (
    admin_api,
    passkey_api,
    prompt_api,
    question_api,
    record_api,
    session_api,
)  # importing them registers their handlers
TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "webmanifest": "application/manifest+json",
}


def build_app(site: Site, names: tuple[str, ...]) -> ASGIApp:
    """`names`: the host names served besides loopback."""
    routes = routes_of(PREFIX, OVER_HTTP, partial(perform, site))
    routes.append(Route(mcp_api.PATH, mcp_api.McpEndpoint(site).serve, methods=mcp_api.METHODS))
    routes.append(Route(f"{PREFIX}/openapi.json", _openapi, methods=["GET"]))
    static = {entry.name: entry.read_bytes() for entry in _static_files()}
    site.shell = hashlib.sha256(b"\0".join(static[name] for name in sorted(static))).hexdigest()[:16]
    routes += _static_routes(static)
    handlers: Any = {HTTPException: http_error}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return Guard(app, names, site.counters.count_status)


async def _openapi(request: Request) -> Response:
    return JSONResponse(render_openapi())


def _static_files() -> list[Any]:
    return [entry for entry in files("atlasbridge.web").joinpath("static").iterdir() if entry.is_file()]


def _static_routes(static: dict[str, bytes]) -> list[Route]:
    """Each file is read once; the page is small, and nothing outside of the package can be named."""
    names = {name: "/" if name == "index.html" else f"/{name}" for name in static}
    return [Route(path, _static(name, static[name]), methods=["GET"]) for name, path in names.items()]


def _static(name: str, content: bytes) -> Any:
    """Packed once: these files hold no secret whose length could tell something."""
    etag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    kind = name.rpartition(".")[2]
    headers = {"Cache-Control": "no-cache", "ETag": etag, "Content-Type": TYPES[kind], "Vary": "Accept-Encoding"}
    packed = b"" if kind == "png" else gzip.compress(content, 6, mtime=0)

    async def serve(request: Request) -> Response:
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        if packed and "gzip" in request.headers.get("accept-encoding", ""):
            return Response(packed, headers={**headers, "Content-Encoding": "gzip"})
        return Response(content, headers=headers)

    return serve
