"""The web channel: sends prompts to every open page and returns answers. The gate decides about them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from atlasbridge.channels.base import BaseChannel
from atlasbridge.core.clock import Clock
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ports import MachineApi
from atlasbridge.core.prompt.model import OPEN, InboundReply, PromptRecord, Receipt, Reject
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.system import replace_private
from atlasbridge.web import admin_api, mcp_api, prompt_api, session_api
from atlasbridge.web.access import Access
from atlasbridge.web.admin_api import PageCommands, best_page
from atlasbridge.web.api import OVER_HTTP, PREFIX, http_error, perform, render_openapi, routes_of
from atlasbridge.web.guard import Guard
from atlasbridge.web.page_files import digest_page, page_routes, read_page
from atlasbridge.web.push import Push, render_ask, render_settled
from atlasbridge.web.server import Place, own_names, own_places
from atlasbridge.web.settings import WebSettings
from atlasbridge.web.site import Counters, Reports, Site
from atlasbridge.web.view import render_session

log = logging.getLogger(__name__)

HANDLERS_IN = (admin_api, prompt_api, session_api)  # imported to register their handlers


def build_app(site: Site, names: tuple[str, ...]) -> ASGIApp:
    """`names` are the host names served besides loopback."""
    routes = routes_of(PREFIX, OVER_HTTP, partial(perform, site))
    routes.append(Route(mcp_api.PATH, mcp_api.McpEndpoint(mcp_api.PageHost(site)).serve, methods=mcp_api.METHODS))
    routes.append(Route(f"{PREFIX}/openapi.json", _openapi, methods=["GET"]))
    static = read_page()
    site.shell = digest_page(static)
    routes += page_routes(static)
    handlers: Any = {HTTPException: http_error}
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    return Guard(app, names, site.counters.count_status)


async def _openapi(request: Request) -> Response:
    return JSONResponse(render_openapi())


LOOK_AGAIN_S = 1.0  # how often to check whether a taken port is free
SETTLED_S = 3600.0  # how long a sleeping phone can still be told that a prompt is settled


class WebChannel(BaseChannel):
    name: ClassVar[str] = "web"
    remote: ClassVar[bool] = False  # loopback or TLS only, so the page is allowed to ask for a secret
    hub_api: MachineApi

    def __init__(self, settings: Mapping[str, Any], hub_api: MachineApi, clock: Clock) -> None:
        super().__init__(settings, hub_api, clock)
        chosen = WebSettings.read(settings)
        self.web = chosen
        push = Push(hub_api, clock, chosen, self._name_of)
        self.site = Site(
            hub_api=hub_api,
            clock=clock,
            settings=chosen,
            access=Access(hub_api, clock, chosen, push.end),
            push=push,
            reports=Reports(hub_api.home, clock),
            counters=Counters(),
        )
        self.places: list[Place] = []
        self._pump: asyncio.Task[None] | None = None
        self._waiting: asyncio.Task[None] | None = None

    def _name_of(self, login_id: str) -> str:
        device = self.site.access.devices.get(login_id)
        return device.name if device else ""

    @property
    def url(self) -> str:
        return self.site.urls.get("local", "")

    async def start(self) -> None:
        self._record.unlink(missing_ok=True)  # left over from an ended hub
        names = self.web.hosts
        if self.web.lan:
            names += self.web.lan_names or own_names()
        app = build_app(self.site, names)
        self.places = own_places(self.web, self.hub_api, app)
        for host in self.web.hosts:
            self.site.urls.setdefault("proxy", f"https://{host}")
        taken = await self._open_places()
        if taken:
            self._alarm(taken)
            self._waiting = asyncio.create_task(self._wait_for_places(), name="web-port")
        self.hub_api.offer("web", PageCommands(self.site).answer)
        self._pump = asyncio.create_task(self._follow(), name="web-events")

    @property
    def _record(self) -> Any:
        return self.hub_api.home / "web.json"

    async def _open_places(self) -> list[Place]:
        """Listen at every possible place; return the places where another program listens."""
        for place in self.places:
            if await place.open() and place.name != "tunnel":
                self.site.urls[place.name] = place.url
                if place.name == "local":
                    self.site.access.port = place.port
                else:
                    self.site.fingerprint = place.fingerprint
        if self.url:
            record = {"url": self.url, "port": self.site.access.port, "pid": os.getpid(), "urls": self.site.urls}
            replace_private(self._record, json.dumps(record))
            self._say_where()
        return [place for place in self.places if place.listener is None]

    def _say_where(self) -> None:
        """Store the page's address, so that chats can link to a card. Without a name they show the command instead."""
        page = best_page(self.site.urls)
        if page != self.hub_api.recall("web.page"):
            self.hub_api.remember("web.page", page)

    def _alarm(self, taken: list[Place]) -> None:
        """Report the taken port. Another port is never used instead, because open pages would then talk to the other
        program."""
        for place in taken:
            log.error("the page is off: %s", place.fault)
            self.hub_api.note("WEB_PORT_TAKEN", port=place.wanted)
            self.hub_api.tell(f"The web page is off: {place.fault}. Do not log in there until it is back.")

    async def _wait_for_places(self) -> None:
        while await self._open_places():
            await asyncio.sleep(LOOK_AGAIN_S)
        self.hub_api.tell(f"The web page is back: {self.url}")

    async def _follow(self) -> None:
        """Send every event to every page, with the current state of its prompt or session."""
        async for event in self.hub_api.events():
            self.site.counters.count_event(event)
            self.site.broadcast.publish(self._enrich(event))

    def _enrich(self, event: dict[str, Any]) -> dict[str, Any]:
        names = ("event", "at", "session_id", "prompt_id", "reason")
        out: dict[str, Any] = {name: event[name] for name in names if name in event}
        record = self.hub_api.prompt(str(event.get("prompt_id", ""))) if event.get("prompt_id") else None
        session = self.site.session(str(event.get("session_id", "")))
        out["prompt"] = self.site.show(record) if record else None
        out["session"] = render_session(session) if session else None
        return out

    async def send_prompt(self, event: PromptRecord, session: SessionRecord) -> str:
        """Pages get the prompt from the event stream; sleeping phones by push. The message id is the
        prompt's own id."""
        self.site.push.tell(render_ask(event, session, event.deadline))
        return event.prompt_id

    async def receive_reply(self) -> InboundReply:
        return await self.site.replies.get()

    async def answer_reply(self, reply: InboundReply, outcome: Receipt | Reject) -> None:
        if isinstance(reply.token, asyncio.Future) and not reply.token.done():
            reply.token.set_result(outcome)

    async def update_prompt(self, message_id: str, event: PromptRecord, receipt: Receipt) -> None:
        if event.state not in OPEN:
            self.site.push.settle(render_settled(event, receipt.sentence, self.clock.now() + SETTLED_S))
        self.site.broadcast.publish(
            {
                "event": "receipt",
                "prompt_id": event.prompt_id,
                "session_id": event.session_id,
                "stage": receipt.stage,
                "sentence": escape_controls(receipt.sentence),
                "by": escape_controls(receipt.by),
                "audit_head": receipt.audit_head,
                "prompt": self.site.show(event),
            }
        )

    async def notify(self, message: str, session: SessionRecord | None = None) -> None:
        where = session.session_id if session else ""
        self.site.broadcast.publish({"event": "notice", "sentence": escape_controls(message), "session_id": where})

    async def close(self) -> None:
        self.site.broadcast.close()
        for task in (self._pump, self._waiting):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        await asyncio.gather(*(place.close() for place in self.places))
        await self.site.push.close()
        self._record.unlink(missing_ok=True)

    def health(self) -> dict[str, Any]:
        ended = self._pump is not None and self._pump.done()
        report = {"state": "failed" if ended else "ok", "url": self.url, "pages": self.site.broadcast.listeners}
        taken = [place.fault for place in self.places if place.listener is None]
        return {**report, "state": "alarm", "fault": "; ".join(taken)} if taken else report
