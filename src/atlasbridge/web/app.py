"""The ASGI application: routes from the table of operations, static files, and who is calling."""

from __future__ import annotations

import gzip
import hashlib
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from atlasbridge.web import admin_api, prompt_api, question_api, record_api, session_api
from atlasbridge.web.api import OVER_HTTP, perform, problem
from atlasbridge.web.guard import Guard
from atlasbridge.web.openapi import PREFIX, render_openapi
<<<<<<< HEAD
from atlasbridge.web.operation import NOBODY, Call, Operation, problem
from atlasbridge.web.question_api import refuse_session
=======
>>>>>>> main
from atlasbridge.web.site import Site

HANDLERS_IN = (admin_api, prompt_api, question_api, record_api, session_api)  # importing them registers their handlers
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
    routes = [Route(PREFIX + path, _endpoint(site, path), methods=_methods(path)) for path in _paths()]
    routes.append(Route(f"{PREFIX}/openapi.json", _openapi, methods=["GET"]))
    static = {entry.name: entry.read_bytes() for entry in _static_files()}
    site.shell = hashlib.sha256(b"\0".join(static[name] for name in sorted(static))).hexdigest()[:16]
    routes += _static_routes(static)
    handlers: Any = {HTTPException: _http_error}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return Guard(app, names, site.counters.count_status)


def _paths() -> list[str]:
    return list(dict.fromkeys(operation.path for operation in OVER_HTTP))


def _methods(path: str) -> list[str]:
    return [operation.method for operation in OVER_HTTP if operation.path == path]


def _endpoint(site: Site, path: str) -> Any:
    by_method = {operation.method: operation for operation in OVER_HTTP if operation.path == path}
    if "GET" in by_method:
        by_method["HEAD"] = by_method["GET"]

    async def endpoint(request: Request) -> Response:
        return await perform(site, by_method[request.method], request)

    return endpoint


<<<<<<< HEAD
async def _perform(site: Site, operation: Operation, request: Request) -> Response:
    caller = _caller(site, request) if operation.scope else NOBODY
    if isinstance(caller, Response):
        return caller
    if operation.scope and not caller.may(operation.scope):
        return problem(403, "wrong_scope", f"this needs the scope {operation.scope}")
    try:
        query = _read_query(operation, request)
        body = await _read_body(site, operation, request, caller)
    except (ValueError, KeyError, RecursionError):
        return problem(422, "bad_value", "a parameter or the body is not as the documentation describes it")
    if isinstance(body, Response):
        return body
    if refused := await _refuse_session(site, operation, request, caller):
        return refused
    if request.method == "HEAD" and "stream" in operation.answer:
        return Response(media_type="text/event-stream")  # nobody would read the stream
    return await operation.handler(site, Call(request, caller, body, query))


def _caller(site: Site, request: Request) -> Caller | Response:
    """A right credential is always let in; only wrong ones are counted, so nobody can lock another out."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme:
        caller = site.access.bearer(given) if scheme.lower() == "bearer" else None
    else:
        cookie, signed = request.cookies.get(site.access.cookie_name, ""), request.headers.get(SIGNED, "")
        if not cookie or not signed:
            return problem(401, "unauthorized", "show a token, or open the page by a link from: atlasbridge web")
        caller = site.access.page(cookie, signed, request.method, _target(request))
    if caller is not None:
        return caller
    peer = request.client.host if request.client else ""
    if wait_s := site.wrong.admit(peer, site.clock.now()):
        return problem(429, "rate_limited", "too many attempts; wait a minute", wait_s)
    return problem(401, "unauthorized", "this token or login is not valid (any more)")


async def _refuse_session(site: Site, operation: Operation, request: Request, caller: Caller) -> Response | None:
    """A token or a login that a session's own program has found decides nothing: it may look and ask, as at the
    socket."""
    if not Caller.needs_person(operation.scope) or request.method in ("GET", "HEAD"):
        return None
    prompt_id = str(request.path_params.get("prompt_id", ""))
    return await refuse_session(site, request, operation.path.rpartition("/")[2], prompt_id)


def _target(request: Request) -> str:
    """What stood in the request's first line."""
    query = request.scope["query_string"].decode("latin-1")
    path: str = request.scope["raw_path"].decode("latin-1")
    return f"{path}?{query}" if query else path


def _read_query(operation: Operation, request: Request) -> dict[str, Any]:
    given = request.query_params
    if len(given.multi_items()) != len(given) or set(given) - {param.name for param in operation.query}:
        raise ValueError("unknown or doubled parameter")
    return {
        param.name: param.read(given[param.name]) if param.name in given else param.default for param in operation.query
    }


async def _read_body(site: Site, operation: Operation, request: Request, caller: Caller) -> Any:
    if operation.body is None:
        return None
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return problem(415, "not_json", "send the body as application/json")
    try:
        async with site.readers.reading(BODY_TIMEOUT_S):
            content = await request.body()
        if caller.body and not same(body_digest(content), caller.body):
            return problem(401, "unauthorized", "this is not the body that was signed")
        return operation.body.model_validate_json(content)
    except TimeoutError:
        return problem(408, "too_slow", "the body did not come in time")
    except ClientDisconnect:
        return problem(413, "too_large", "the request is too large")
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        return problem(422, "bad_value", f"{where or 'the body'}: {error.errors()[0]['msg']}")


=======
>>>>>>> main
async def _openapi(request: Request) -> Response:
    return JSONResponse(render_openapi())


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = {404: ("unknown_path", "there is nothing here"), 405: ("wrong_method", "this is not done that way")}
    name, sentence = words.get(error.status_code, ("bad_request", "the request cannot be read"))
    response = problem(error.status_code, name, sentence)
    response.headers.update(error.headers or {})
    return response


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
