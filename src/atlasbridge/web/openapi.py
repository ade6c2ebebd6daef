"""The OpenAPI document, made from the table of operations."""

from __future__ import annotations

from typing import Any

from atlasbridge import __version__
from atlasbridge.web.catalogue import FLAG, OPERATIONS, TEXT, thing
from atlasbridge.web.operation import Operation

PREFIX = "/api/v1"
SCHEMAS: dict[str, Any] = {
    "Error": thing(error=TEXT, message=TEXT),
    "Session": thing(
        session_id=TEXT, tool=TEXT, command={"type": "array", "items": TEXT}, pid={"type": "integer"}, state=TEXT,
        attached=FLAG, stopped=FLAG, cwd=TEXT, label=TEXT, started_at=TEXT, open_prompt=TEXT,
    ),
    "Prompt": thing(
        prompt_id=TEXT, session_id=TEXT, confidence=TEXT, excerpt=TEXT, screen=TEXT, state=TEXT, created_at=TEXT,
        type={"enum": ["yes_no", "confirm_enter", "multiple_choice", "free_text", "unknown"]}, expires_at=TEXT,
        choices={"type": "array", "items": {"type": "object"}}, constraints={"type": "object"}, decided_by=TEXT,
        evidence={"type": "array", "items": {"type": "object"}}, safe_default=TEXT, free_text=FLAG, multiline=FLAG,
        grantable=FLAG, agreed={"type": "array", "items": TEXT}, names={"type": "object"},
        later={"type": "array", "items": {"type": "object"}},
        answer={"type": ["object", "null"]}, subject={"type": ["object", "null"]},
        session={"anyOf": [{"$ref": "#/components/schemas/Session"}, {"type": "null"}]},
    ),
}  # fmt: skip
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


def render_openapi() -> dict[str, Any]:
    paths: dict[str, Any] = {}
    schemas = dict(SCHEMAS)
    for operation in OPERATIONS:
        if operation.body is not None:
            schema = operation.body.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas.update(schema.pop("$defs", {}))
            schemas[operation.body.__name__] = schema
        paths.setdefault(operation.path, {})[operation.method.lower()] = _describe(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "AtlasBridge", "version": __version__, "description": "Prompts, sessions and records."},
        "servers": [{"url": PREFIX}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _describe(operation: Operation) -> dict[str, Any]:
    names = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": TEXT} for name in names
    ]
    for param in operation.query:
        schema = {**param.schema, "default": param.default}
        parameters.append({"name": param.name, "in": "query", "schema": schema, "description": param.about})
    out: dict[str, Any] = {
        "operationId": operation.handler.__name__,
        "summary": operation.about,
        "description": f"Needs the scope `{operation.scope}`." if operation.scope else "Open.",
        "parameters": parameters,
        "responses": _responses(operation),
        "security": [{"token": []}] if operation.scope else [],
    }
    if operation.body is not None:
        schema = {"$ref": f"#/components/schemas/{operation.body.__name__}"}
        out["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return out


def _responses(operation: Operation) -> dict[str, Any]:
    statuses = {*operation.errors, 400, 413, 421, 403}
    statuses |= {401, 429} if operation.scope else set()
    statuses |= {401, 408, 415, 422} if operation.body is not None else set()
    statuses |= {422} if operation.query else set()
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    out: dict[str, Any] = {"200": {"description": "done", "content": _content(operation.answer)}}
    out.update({str(status): {"description": SENTENCES[status], "content": error} for status in sorted(statuses)})
    return out


def _content(answer: dict[str, Any]) -> dict[str, Any]:
    if "stream" in answer:
        return {"text/event-stream": {"schema": {}}}  # what stands in an event is told in the page of the API
    if "text" in answer:
        return {"text/plain": {"schema": TEXT}}
    return {"application/json": {"schema": answer}}
