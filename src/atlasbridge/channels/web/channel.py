"""The web channel: carries prompts to every open page and answers back.  The gate decides, here as everywhere."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Mapping
from typing import Any, ClassVar

from atlasbridge.channels.base import BaseChannel
from atlasbridge.channels.web.access import Access
from atlasbridge.channels.web.app import build_app
from atlasbridge.channels.web.metrics import Counters
from atlasbridge.channels.web.push import Push
from atlasbridge.channels.web.report import Reports
from atlasbridge.channels.web.server import Listener, bind, own_names, self_signed, write_private
from atlasbridge.channels.web.settings import WebSettings
from atlasbridge.channels.web.site import Site
from atlasbridge.channels.web.view import render_session
from atlasbridge.core.clock import Clock
from atlasbridge.core.ports import Desk
from atlasbridge.core.prompt.model import PromptRecord, Reject
from atlasbridge.core.prompt.reply import InboundReply, Receipt
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.visible import visible

log = logging.getLogger(__name__)


class WebChannel(BaseChannel):
    name: ClassVar[str] = "web"
    remote: ClassVar[bool] = False  # loopback or TLS only: the page may ask for a secret

    def __init__(self, settings: Mapping[str, Any], desk: Desk, clock: Clock) -> None:
        super().__init__(settings, desk, clock)
        chosen = WebSettings.read(settings)
        self.web = chosen
        self._site = Site(
            desk=desk,
            clock=clock,
            settings=chosen,
            access=Access(desk, clock, chosen),
            push=Push(desk, chosen),
            reports=Reports(desk.home, clock),
            counters=Counters(),
        )
        self._listeners: list[Listener] = []
        self._pump: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return self._site.urls.get("local", "")

    async def start(self) -> None:
        names = self.web.hosts
        if self.web.lan:
            names += self.web.lan_names or own_names()
        app = build_app(self._site, names)
        local = bind("127.0.0.1", self.web.port, int(self.desk.recall("web.port", "0")))
        port = local.getsockname()[1]
        self._site.urls["local"] = f"http://127.0.0.1:{port}"
        self._listeners = [Listener(app, local)]
        if self.web.lan:
            self._listeners.append(self._lan_listener(app, self.web.lan_names or own_names()))
        for host in self.web.hosts:
            self._site.urls.setdefault("proxy", f"https://{host}")
        for listener in self._listeners:
            await listener.start()
        self.desk.remember("web.port", str(port))
        urls = self._site.urls
        record = {"url": self.url, "port": port, "pid": os.getpid(), "urls": urls}  # no key: that is the hub's to give
        write_private(self.desk.home / "web.json", record)
        self._pump = asyncio.create_task(self._follow(), name="web-events")

    def _lan_listener(self, app: Any, names: tuple[str, ...]) -> Listener:
        pair = (self.web.cert, self.web.key) if self.web.cert else self_signed(self.desk.home, names)
        sock = bind(self.web.lan_host, self.web.lan_port)
        addresses = [name for name in names if name.replace(".", "").isdigit()] or list(names)
        self._site.urls["lan"] = f"https://{addresses[0]}:{sock.getsockname()[1]}"
        return Listener(app, sock, *pair)

    async def _follow(self) -> None:
        """Everything that happens goes to every page, with the prompt or session as it is now."""
        async for event in self.desk.events():
            self._site.counters.count_event(event)
            if self._site.broadcast.listeners:
                self._site.broadcast.publish(self._enrich(event))

    def _enrich(self, event: dict[str, Any]) -> dict[str, Any]:
        names = ("event", "at", "session_id", "prompt_id", "reason")
        out: dict[str, Any] = {name: event[name] for name in names if name in event}
        record = self.desk.prompt(str(event.get("prompt_id", ""))) if event.get("prompt_id") else None
        session = self._site.session(str(event.get("session_id", "")))
        out["prompt"] = self._site.show(record) if record else None
        out["session"] = render_session(session) if session else None
        return out

    async def send_prompt(self, event: PromptRecord, session: SessionRecord) -> str:
        """Pages hear of it by the event stream; phones that sleep, by push.  The id is the prompt's own."""
        self._site.push.tell(
            {
                "title": f"{visible(session.tool, keep_lines=False)} is waiting for you",
                "body": "It asks for a secret." if event.prompt.secret else event.prompt.excerpt[:160],
                "prompt_id": event.prompt_id,
            }
        )
        return event.prompt_id

    async def receive_reply(self) -> InboundReply:
        return await self._site.replies.get()

    async def answer_reply(self, reply: InboundReply, outcome: Receipt | Reject) -> None:
        if isinstance(reply.token, asyncio.Future) and not reply.token.done():
            reply.token.set_result(outcome)

    async def update_prompt(self, message_id: str, event: PromptRecord, receipt: Receipt) -> None:
        self._site.broadcast.publish(
            {
                "event": "receipt",
                "prompt_id": event.prompt_id,
                "session_id": event.session_id,
                "stage": receipt.stage,
                "sentence": visible(receipt.sentence),
                "by": visible(receipt.by),
                "prompt": self._site.show(event),
            }
        )

    async def notify(self, message: str, session: SessionRecord | None = None) -> None:
        where = session.session_id if session else ""
        self._site.broadcast.publish({"event": "notice", "sentence": visible(message), "session_id": where})

    async def close(self) -> None:
        self._site.broadcast.close()
        if self._pump is not None:
            self._pump.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._pump
        await asyncio.gather(*(listener.close() for listener in self._listeners))
        await self._site.push.close()
        (self.desk.home / "web.json").unlink(missing_ok=True)

    def health(self) -> dict[str, Any]:
        ended = self._pump is not None and self._pump.done()
        return {"state": "failed" if ended else "ok", "url": self.url, "pages": self._site.broadcast.listeners}
