"""Figures for Prometheus, and whether the server is well.  Counts only: no name, no question, no answer."""

from __future__ import annotations

import hmac
import logging
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from atlasbridge.core.errors import StoreError
from atlasbridge.fleet.server.auth import caller_of
from atlasbridge.fleet.server.context import ServerContext
from atlasbridge.fleet.server.page_api import refuse

log = logging.getLogger(__name__)

_QUERY = """
SELECT (SELECT count(*) FROM machines WHERE gone_at IS NULL) AS machines,
       (SELECT count(*) FROM machines WHERE gone_at IS NULL AND connected_to <> '') AS machines_connected,
       (SELECT count(*) FROM machines WHERE gone_at IS NULL AND log_fault <> '') AS machines_with_log_fault,
       (SELECT count(*) FROM prompts WHERE is_open) AS open_prompts,
       (SELECT count(*) FROM decisions WHERE settled_at IS NULL) AS decisions_under_way,
       (SELECT count(*) FROM audit_pending) AS audit_unsealed,
       (SELECT count FROM audit_head) AS audit_entries,
       (SELECT coalesce(extract(epoch FROM %s - min(made_at)), 0) FROM decisions WHERE settled_at IS NULL)
           AS oldest_decision_seconds
"""


class Gauges:
    def __init__(self, context: ServerContext, token: str) -> None:
        self._context = context
        self._token = token

    async def metrics(self, request: Request) -> Response:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        trusted = bool(self._token) and hmac.compare_digest(given.encode(), self._token.encode())
        if not trusted and await caller_of(self._context, request) is None:
            return refuse(401, "login", "Give the token of --metrics-token-file, or log in.")
        figures: dict[str, Any] = (await self._context.database.rows(_QUERY, self._context.database.now()))[0]
        figures |= {"links_here": self._context.links, "pages_here": self._context.pages}
        figures |= {"logins_refused_here": self._context.refused_logins, "chats_carried_here": self._carries}
        lines = []
        for name, value in figures.items():
            lines += [f"# TYPE atlasbridge_fleet_{name} gauge", f"atlasbridge_fleet_{name} {float(value):g}"]
        return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")

    async def health(self, request: Request) -> Response:
        """It lives; and whether it is the one that carries the chats."""
        return JSONResponse({"ok": True, "chats": self._carries})

    @property
    def _carries(self) -> bool:
        chats = self._context.chats
        return chats is not None and bool(chats.health()["carried_here"])

    async def ready(self, request: Request) -> Response:
        """It can work: PostgreSQL answers."""
        try:
            await self._context.database.rows("SELECT 1")
        except StoreError as error:  # a prober is anybody: which server and why is for the log
            log.warning("not ready: %s", error)
            return JSONResponse({"ok": False, "message": "PostgreSQL is away"}, 503)
        return JSONResponse({"ok": True})
