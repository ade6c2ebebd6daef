"""One table row per thing the API does.  Routes, checks and the OpenAPI document are all made from these rows."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from atlasbridge.web.access import Caller

if TYPE_CHECKING:
    from atlasbridge.web.site import Site

NOBODY = Caller("web:nobody", "read", "")


@dataclass(frozen=True, slots=True)
class Call:
    """One request, already let in and checked."""

    request: Request
    caller: Caller
    body: Any = None
    query: Mapping[str, Any] = field(default_factory=dict)

    def path(self, name: str) -> str:
        return str(self.request.path_params[name])


@dataclass(frozen=True, slots=True)
class Param:
    """A query parameter.  Its schema is both the check and the documentation."""

    name: str
    schema: dict[str, Any]
    about: str
    default: Any = None

    def read(self, text: str) -> Any:
        """The value, or ValueError."""
        match self.schema["type"]:
            case "integer":
                if not (text.isascii() and text.isdigit() and len(text) < 16):
                    raise ValueError
                value = int(text)
                if not self.schema["minimum"] <= value <= self.schema["maximum"]:
                    raise ValueError
                return value
            case "boolean":
                return {"true": True, "false": False}[text]
            case _:
                if len(text) > self.schema["maxLength"]:
                    raise ValueError
                return text


Handler = Callable[["Site", Call], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Operation:
    method: str
    path: str
    handler: Handler
    scope: str  # "": open to everybody who passes the guard
    about: str
    answer: dict[str, Any]  # JSON schema of the 200 answer; {"stream": ...} and {"text": ...} are the two exceptions
    body: type[BaseModel] | None = None
    query: tuple[Param, ...] = ()
    errors: tuple[int, ...] = ()


def problem(status: int, error: str, message: str, retry_s: float = 1.0) -> JSONResponse:
    """What went wrong, for machines and in one sentence for people."""
    response = JSONResponse({"error": error, "message": message}, status)
    if status in (429, 503):
        response.headers["Retry-After"] = str(max(1, math.ceil(retry_s)))
    if status == 401:
        response.headers["WWW-Authenticate"] = 'Bearer realm="atlasbridge"'
    return response
