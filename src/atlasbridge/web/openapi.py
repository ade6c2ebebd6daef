"""The OpenAPI document, generated from the table of operations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from atlasbridge import __version__
from atlasbridge.core.operations import HubOperations, Operation, Parameter
from atlasbridge.core.schema import REF, describe, write
from atlasbridge.web.api import OVER_HTTP, in_body, in_query

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
