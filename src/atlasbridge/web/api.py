"""The table of operations over HTTP: identifies the caller, reads the parameters and returns the result.

An operation that needs the connection or the page itself has a handler (`handles`); the hub runs every other one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from atlasbridge import __version__
from atlasbridge.channels.language import hub_says
from atlasbridge.core import operations as table
from atlasbridge.core.audit.passkeys import PasskeyRefused
from atlasbridge.core.operations import OPERATIONS, HubOperations, Operation, Parameter, Refused
from atlasbridge.core.prompt.gate import UNTRACED
from atlasbridge.core.schema import REF, BadValue, describe, read_text, write
from atlasbridge.web.access import Caller, body_digest, same
from atlasbridge.web.guard import Readers, host_name
from atlasbridge.web.view import render_plain

if TYPE_CHECKING:
    from atlasbridge.web.site import Site

BODY_TIMEOUT_S = 5.0
NOBODY = Caller("web:nobody", "read", "")
SIGNED = "x-atlasbridge-proof"
STATUS: Final = {
    "not_allowed": 403,
    "self": 403,
    "not_private": 403,
    "needs_passkey": 403,
    "bad_value": 422,
    "rate_limited": 429,
    "unavailable": 503,
}
OVER_HTTP: Final = tuple(one for one in OPERATIONS if one.path)
NO_OWNER = (
    "It cannot be seen which program of this machine sends this, so it decides nothing. Through an ssh tunnel, forward "
    "the page's socket instead of its port: ssh -L 8765:.atlasbridge/web.sock HOST, then open the link with port 8765. "
    "A proxy must pass X-Forwarded-For, and on the hub's own machine open http://localhost instead of the proxy's name."
)


@dataclass(frozen=True, slots=True)
class Call:
    """One request, authenticated and checked. `given` contains the operation's parameters by name."""

    operation: Operation[..., Any]
    request: Request
    caller: Caller
    given: SimpleNamespace

    @property
    def by(self) -> table.Caller:
        return table.Caller(self.caller.identity, "web", self.caller.identity.partition(":")[2])


class Missing(Exception):
    """What a request names is not there, or cannot do this now: the arguments are those of `problem`."""


Found = Response | Refused | dict[str, Any]
Handler = Callable[["Site", Call], Awaitable[Found]]
HANDLERS: Final[dict[str, Handler]] = {}


def handles(operation: Operation[..., Any]) -> Callable[[Handler], Handler]:
    """Register a function that handles the operation here, instead of the hub."""

    def register(handler: Handler) -> Handler:
        HANDLERS[operation.key] = handler
        return handler

    return register


async def ask_hub(site: Site, call: Call) -> Found:
    """Run an operation without a handler in the hub."""
    found = await site.hub_api.by(call.by).do(call.operation, vars(call.given))
    return found if isinstance(found, Refused) else JSONResponse(render_plain(call.operation.write(found, "http")))


def refuse(refused: Refused) -> JSONResponse:
    unknown = 404 if refused.reason.startswith("unknown_") else 409
    return problem(STATUS.get(refused.reason, unknown), refused.reason, refused.message)


def refused_passkey(error: PasskeyRefused) -> Refused:
    return Refused("passkey_refused", f"{error} {error.hint}".strip())


def problem(status: int, error: str, message: str, retry_s: float = 1.0) -> JSONResponse:
    """An error response: a code for machines and one sentence for people."""
    response = JSONResponse({"error": error, "message": hub_says(message)}, status)
    if status in (429, 503):
        response.headers["Retry-After"] = str(max(1, math.ceil(retry_s)))
    if status == 401:
        response.headers["WWW-Authenticate"] = 'Bearer realm="atlasbridge"'
    return response


async def http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = {404: ("unknown_path", "there is nothing here"), 405: ("wrong_method", "this is not done that way")}
    name, sentence = words.get(error.status_code, ("bad_request", "the request cannot be read"))
    response = problem(error.status_code, name, sentence)
    response.headers.update(error.headers or {})
    return response


Perform = Callable[[Operation[..., Any], Request], Awaitable[Response]]


def routes_of(prefix: str, operations: Iterable[Operation[..., Any]], perform: Perform) -> list[Route]:
    """One route for each path; several operations can share one."""
    by_path: dict[str, dict[str, Operation[..., Any]]] = {}
    for operation in operations:
        methods = by_path.setdefault(operation.path, {})
        methods[operation.method] = operation
        if operation.method == "GET":
            methods["HEAD"] = operation
    return [
        Route(prefix + path, _endpoint(methods, perform), methods=[one for one in methods if one != "HEAD"])
        for path, methods in by_path.items()
    ]


def _endpoint(by_method: dict[str, Operation[..., Any]], perform: Perform) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        return await perform(by_method[request.method], request)

    return endpoint


async def perform(site: Site, operation: Operation[..., Any], request: Request) -> Response:
    caller = caller_of(site, request) if operation.scope else NOBODY
    if isinstance(caller, Response):
        return caller
    given = await read_allowed(caller, site.readers, operation, request, caller.body)
    if isinstance(given, Response):
        return given
    if refused := await _refuse_session(site, operation, request):
        return refused
    if request.method == "HEAD" and operation.streams:
        return Response(media_type="text/event-stream")  # a HEAD request does not read the stream
    try:
        found = await HANDLERS.get(operation.key, ask_hub)(site, Call(operation, request, caller, given))
    except Missing as missing:
        return problem(*missing.args)
    except PasskeyRefused as error:
        found = refused_passkey(error)
    if isinstance(found, Refused):
        return refuse(found)
    return found if isinstance(found, Response) else JSONResponse(found)


def caller_of(site: Site, request: Request) -> Caller | Response:
    """A valid credential is always accepted. Only invalid ones are counted, so that one caller cannot
    lock another out."""
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
    return problem(401, "unauthorized", "this token or login is not valid, or no longer valid")


async def _refuse_session(site: Site, operation: Operation[..., Any], request: Request) -> Response | None:
    """A token or a login that a tool in a session has found decides nothing: it can read and ask, as at the socket."""
    if operation.inside or request.method in ("GET", "HEAD"):
        return None
    prompt_id = str(request.path_params.get("prompt_id", ""))
    return await refuse_session(site, request, operation.path.rpartition("/")[2], prompt_id)


async def refuse_session(
    site: Site, request: Request, op: str, prompt_id: str = "", same_user: bool = False
) -> Response | None:
    """Refuse a request that decides something if it comes from inside a session."""
    inside_session = await session_of_peer(site, request, same_user)
    if not inside_session:
        return None
    refusal = site.hub_api.refuse_inside_session(inside_session, op, prompt_id)
    return problem(403, refusal.reason.value, NO_OWNER if inside_session == UNTRACED else refusal.sentence)


async def session_of_peer(site: Site, request: Request, same_user: bool = False) -> str:
    """Return the session that the peer runs in; "" if it runs in none or on another machine."""
    client, server = request.client, request.scope.get("server") or ("", 0)
    if client is None:
        return UNTRACED
    ends = (client.host, client.port), (server[0], server[1] or 0)
    return await site.hub_api.session_of_peer(*ends, same_user, _forwarded(site, request))


def _forwarded(site: Site, request: Request) -> str | None:
    """The address that a proxy names last, which is the one that has connected to it; None: no proxy is meant."""
    if host_name(request.headers["host"]) not in site.settings.hosts:
        return None
    return ",".join(request.headers.getlist("x-forwarded-for")).rpartition(",")[2].strip()


def _target(request: Request) -> str:
    """The target in the request's first line."""
    query = request.scope["query_string"].decode("latin-1")
    path: str = request.scope["raw_path"].decode("latin-1")
    return f"{path}?{query}" if query else path


def in_query(operation: Operation[..., Any]) -> list[table.Parameter]:
    own = [one for one in operation.parameters.values() if one.name not in operation.in_path]
    return own if operation.method == "GET" else []


def in_body(operation: Operation[..., Any]) -> list[table.Parameter]:
    own = [one for one in operation.parameters.values() if one.name not in operation.in_path]
    return [] if operation.method == "GET" else own


class Scoped(Protocol):
    def may(self, scope: str, /) -> bool: ...


async def read_allowed(
    caller: Scoped, readers: Readers, operation: Operation[..., Any], request: Request, signed: str = ""
) -> SimpleNamespace | Response:
    """The parameters, or why this caller is refused: the scope is missing, or a value is wrong."""
    if operation.scope and not caller.may(operation.scope):
        return problem(403, "wrong_scope", f"this needs the scope {operation.scope}")
    try:
        return await read_request(readers, operation, request, signed)
    except BadValue as error:
        return problem(422, "bad_value", str(error))


async def read_request(
    readers: Readers, operation: Operation[..., Any], request: Request, signed: str = ""
) -> SimpleNamespace | Response:
    """Return all parameters by name from the path, the query and the body, with defaults for missing ones. `signed` is
    the digest of the body that the caller signed."""
    given: dict[str, Any] = {name: str(request.path_params[name]) for name in operation.in_path}
    given |= _read_query(operation, request)
    if in_body(operation):
        body = await read_body(readers, request, signed)
        if isinstance(body, Response):
            return body
        if set(body) & set(given):
            raise BadValue("the body: the path has that already")
        given |= body
    # browsers add fields to their subscriptions
    checked = operation.read(given, strict=operation is not HubOperations.subscribe)
    defaults = {one.name: one.default for one in operation.parameters.values() if not one.required}
    return SimpleNamespace(**{**defaults, **checked})


def _read_query(operation: Operation[..., Any], request: Request) -> dict[str, Any]:
    given, known = request.query_params, {one.name: one for one in in_query(operation)}
    if len(given.multi_items()) != len(given) or set(given) - set(known):
        raise BadValue("there is an unknown or doubled parameter in the address")
    return {name: read_text(known[name].kind, text, name) for name, text in given.items()}


async def read_body(readers: Readers, request: Request, signed: str = "") -> dict[str, Any] | Response:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return problem(415, "not_json", "send the body as application/json")
    try:
        async with readers.reading(BODY_TIMEOUT_S):
            content = await request.body()
        if signed and not same(body_digest(content), signed):
            return problem(401, "unauthorized", "this is not the body that was signed")
        found = json.loads(content, parse_constant=_no_number)
    except TimeoutError:
        return problem(408, "too_slow", "the request did not arrive in time")
    except ClientDisconnect:
        return problem(413, "too_large", "the request is too large")
    except (ValueError, RecursionError):
        raise BadValue("the body: it is not JSON") from None
    if not isinstance(found, dict):
        raise BadValue("the body: it should be an object")
    return found


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


# The OpenAPI document, generated from the table of operations.

PREFIX = "/api/v1"
TEXT = {"type": "string"}
SENTENCES = {
    401: "no valid token or login",
    403: "not allowed",
    400: "the request cannot be read",
    404: "there is no such thing",
    409: "not possible now",
    408: "too slow",
    413: "too large",
    415: "the body is not JSON",
    421: "wrong host name",
    422: "the request is not valid",
    429: "too many",
    503: "not available now",
}


def render_openapi(operations: Iterable[Operation[..., Any]] = OVER_HTTP, title: str = "AtlasBridge") -> dict[str, Any]:
    paths: dict[str, Any] = {}
    error = {"type": "object", "properties": {"error": TEXT, "message": TEXT}, "required": ["error", "message"]}
    schemas: dict[str, Any] = {"Error": error}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _describe(operation, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": __version__, "description": "Prompts, sessions and records."},
        "servers": [{"url": PREFIX}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _describe(operation: Operation[..., Any], schemas: dict[str, Any]) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": TEXT} for name in operation.in_path
    ]
    for one in in_query(operation):
        schema = _with_default(one, describe(one.kind, schemas))
        about = {"description": schema.pop("description")} if "description" in schema else {}
        parameters.append({"name": one.name, "in": "query", "schema": schema, **about})
    out: dict[str, Any] = {
        "operationId": operation.key,
        "summary": operation.about,
        "description": f"Needs the scope `{operation.scope}`." if operation.scope else "Open.",
        "parameters": parameters,
        "responses": _responses(operation, schemas),
        "security": [{"token": []}] if operation.scope else [],
    }
    if in_body(operation):
        out["requestBody"] = {"required": True, "content": {"application/json": {"schema": _body(operation, schemas)}}}
    return out


def _body(operation: Operation[..., Any], schemas: dict[str, Any]) -> dict[str, Any]:
    name = "".join(word.capitalize() for word in operation.key.split("_")) + "Body"
    fields = in_body(operation)
    schemas[name] = {
        "type": "object",
        "properties": {one.name: _with_default(one, describe(one.kind, schemas)) for one in fields},
        "required": [one.name for one in fields if one.required],
        **({} if operation is HubOperations.subscribe else {"additionalProperties": False}),
    }
    return {"$ref": REF + name}


def _with_default(parameter: Parameter, schema: dict[str, Any]) -> dict[str, Any]:
    return schema if parameter.required else {**schema, "default": write(parameter.default)}


def _responses(operation: Operation[..., Any], schemas: dict[str, Any]) -> dict[str, Any]:
    statuses = {400, 413, 421, 403}
    statuses |= {401, 429} if operation.scope else set()
    statuses |= {401, 408, 415, 422} if in_body(operation) else set()
    statuses |= {422} if operation.parameters else set()
    statuses |= {404, 409, 503} if operation.in_path or operation.changes or operation.streams else set()
    statuses |= {401, 429} if operation.key in ("hello", "login") else set()
    statuses |= {404, 409} if operation is HubOperations.rename_me else set()
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    out: dict[str, Any] = {"200": {"description": "done", "content": _content(operation, schemas)}}
    out.update({str(status): {"description": SENTENCES[status], "content": error} for status in sorted(statuses)})
    return out


def _content(operation: Operation[..., Any], schemas: dict[str, Any]) -> dict[str, Any]:
    if operation.streams:
        about = {"description": "Server-sent events; the page of the API says what each has in it."}
        return {"text/event-stream": {"schema": about}}
    if operation.result is str:
        return {"text/plain": {"schema": TEXT}}
    return {"application/json": {"schema": describe(operation.result, schemas)}}
