"""What the handlers share: the desk, who may come in, live streams, limits, counters, and replies on their way."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass, field
from typing import Any

from atlasbridge import __version__
from atlasbridge.channels.web.access import Access, Caller
from atlasbridge.channels.web.metrics import Counters
from atlasbridge.channels.web.push import Push
from atlasbridge.channels.web.report import Reports
from atlasbridge.channels.web.settings import WebSettings
from atlasbridge.channels.web.stream import Broadcast
from atlasbridge.channels.web.view import render_prompt, render_session
from atlasbridge.core.clock import Clock, iso
from atlasbridge.core.ports import Desk
from atlasbridge.core.prompt.model import PromptRecord, Reject
from atlasbridge.core.prompt.reply import InboundReply, Receipt
from atlasbridge.core.rate import RateWindow
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.values import replace
from atlasbridge.core.visible import visible


@dataclass(slots=True)
class Site:
    desk: Desk
    clock: Clock
    settings: WebSettings
    access: Access
    push: Push
    reports: Reports
    counters: Counters
    replies: asyncio.Queue[InboundReply] = field(default_factory=lambda: asyncio.Queue(256))
    broadcast: Broadcast = field(default_factory=Broadcast)
    typing: set[tuple[str, str]] = field(default_factory=set)  # (caller, session): opted in to type
    urls: dict[str, str] = field(default_factory=dict)  # "local" and "lan"
    watchers: int = 0
    max_watchers: int = 32
    wrong: RateWindow = field(init=False)
    answers: RateWindow = field(init=False)

    def __post_init__(self) -> None:
        self.wrong = RateWindow(10)
        self.answers = RateWindow(self.settings.replies_per_minute)

    def command_line(self, key: str) -> Caller | None:
        """An `atlasbridge` command of a person's: the hub gave it this key a moment ago, and to nobody else."""
        return Caller("web:cli", "admin", "cli") if self.desk.takes_page_key(key) else None

    def session(self, session_id: str) -> SessionRecord | None:
        """By full or short id, with its open prompt."""
        found = self.desk.session(session_id)
        if found is None:
            return None
        opened = [record.prompt_id for record in self.desk.open_prompts() if record.session_id == found.session_id]
        return replace(found, open_prompt=opened[0] if opened else "")

    def show(self, record: PromptRecord) -> dict[str, Any]:
        return render_prompt(record, self.desk.session(record.session_id))

    def snapshot(self) -> dict[str, Any]:
        """The first event of every stream: all that a page needs to draw itself."""
        return {
            "event": "hello",
            "now": iso(self.clock.wall()),
            "host": visible(socket.gethostname()),
            "version": __version__,
            "prompts": [self.show(record) for record in self.desk.open_prompts()],
            "sessions": [render_session(session) for session in self.desk.sessions()],
        }

    async def submit(self, reply: InboundReply, timeout_s: float) -> Receipt | Reject | None:
        """Hand a reply to the router and wait for its verdict; None: none came in time."""
        verdict: asyncio.Future[Receipt | Reject] = reply.token
        self.replies.put_nowait(reply)
        try:
            return await asyncio.wait_for(asyncio.shield(verdict), timeout_s)
        except TimeoutError:
            return None
