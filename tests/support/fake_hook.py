"""Some service that takes a JSON post: what Apprise's `json://` sends, one of its hundred."""

from __future__ import annotations

from typing import Any

from aiohttp import web
from tests.support.fake_server import FakeServer


class FakeHook(FakeServer):
    def routes(self) -> list[web.RouteDef]:
        return [web.post("/{path:.*}", self._take)]

    @property
    def apprise_url(self) -> str:
        return f"json://127.0.0.1:{self.port}/hook"

    @property
    def told(self) -> list[dict[str, Any]]:
        return [call.params for call in self.calls]

    async def _take(self, request: web.Request) -> web.Response:
        self.note("post", await request.json())
        if fault := self.take_fault("post"):
            return web.Response(status=fault.status)
        return web.Response(text="ok")
