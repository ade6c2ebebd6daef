"""What the handlers share: the desk, who may come in, live streams, limits, counters, and replies on their way."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from atlasbridge import __version__
from atlasbridge.channels.web.access import Access
from atlasbridge.channels.web.device import Device
from atlasbridge.channels.web.guard import Readers
from atlasbridge.channels.web.metrics import Counters
from atlasbridge.channels.web.push import Push
from atlasbridge.channels.web.report import Reports
from atlasbridge.channels.web.settings import WebSettings
from atlasbridge.channels.web.stream import Broadcast
from atlasbridge.channels.web.typing_stream import PageTyping
from atlasbridge.channels.web.view import render_answer, render_plain, render_prompt, render_session
from atlasbridge.core.clock import Clock, iso
from atlasbridge.core.policy.quorum import QUORUM
from atlasbridge.core.ports import Desk
from atlasbridge.core.prompt.machine import OPEN
from atlasbridge.core.prompt.model import PromptRecord, Reject
from atlasbridge.core.prompt.reply import InboundReply, Receipt
from atlasbridge.core.rate import RateWindow
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.values import replace
from atlasbridge.core.visible import visible

MAX_KEPT = 1024
Verdict = Receipt | Reject | None
Key = tuple[str, str, str]  # caller, prompt, request key


class Outcomes:
    """What became of answers, by the key that their sender chose: asking or sending again does nothing twice."""

    def __init__(self) -> None:
        self._tasks: dict[Key, asyncio.Task[Verdict]] = {}

    def knows(self, key: Key) -> bool:
        return key in self._tasks

    async def once(self, key: Key, work: Coroutine[Any, Any, Verdict]) -> Verdict:
        """Do the work, unless it was done or is being done under this key; then hear its outcome."""
        if key in self._tasks:
            work.close()
            return await asyncio.shield(self._tasks[key])
        task = asyncio.create_task(work, name="web-reply")
        if key[2]:
            while len(self._tasks) >= MAX_KEPT:
                del self._tasks[next(iter(self._tasks))]
            self._tasks[key] = task
        return await asyncio.shield(task)

    async def of(self, key: Key) -> Verdict:
        return await asyncio.shield(self._tasks[key])


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
    typing: PageTyping = field(default_factory=PageTyping)
    outcomes: Outcomes = field(default_factory=Outcomes)
    readers: Readers = field(default_factory=lambda: Readers(32))
    stretching: asyncio.Lock = field(default_factory=asyncio.Lock)
    urls: dict[str, str] = field(default_factory=dict)  # "local", "lan" and "proxy"
    fingerprint: str = ""  # of the LAN's certificate
    shell: str = ""  # names the page's files as they are in this version
    watchers: int = 0
    questions: int = 0  # that wait over HTTP
    max_watchers: int = 32
    wrong: RateWindow = field(default_factory=lambda: RateWindow(10))
    guesses: RateWindow = field(default_factory=lambda: RateWindow(10))
    answers: RateWindow = field(init=False)

    def __post_init__(self) -> None:
        self.answers = RateWindow(self.settings.replies_per_minute)

    def new_links(self, name: str, scope: str) -> dict[str, Any]:
        """One link for every way to the page; the first browser that comes uses it up."""
        secret = self.access.make_link(name, scope)
        links = {place: f"{url}/#link={secret}" for place, url in self.urls.items()}
        out = {"url": self.urls.get("local", ""), "links": links, "valid_s": self.settings.link_ttl_s}
        return {**out, "fingerprint": self.fingerprint}

    def end_device(self, login_id: str, revoked: bool = True) -> bool:
        """A login ends, and with it its push messages, its typing and every stream that it follows; if it was revoked,
        also what it kept for later."""
        device = self.access.devices.get(login_id)
        ended = self.access.devices.end(login_id)
        if ended and revoked and device is not None:
            self._send_away(device)
        self.typing.stop(login_id)
        self.broadcast.cut_all()
        return ended

    def end_all_devices(self) -> int:
        devices = self.access.devices.all()
        count = self.access.logout_all()
        for device in devices:
            self._send_away(device)
        self.typing = PageTyping()
        self.broadcast.cut_all()
        return count

    def _send_away(self, device: Device) -> None:
        for name in (device.name, *device.former):
            self.desk.sent_away(f"web:{name}")

    def session(self, session_id: str) -> SessionRecord | None:
        """By full or short id, with its open prompt."""
        found = self.desk.session(session_id)
        if found is None:
            return None
        opened = [record.prompt_id for record in self.desk.open_prompts() if record.session_id == found.session_id]
        return replace(found, open_prompt=opened[0] if opened else "")

    def show(self, record: PromptRecord) -> dict[str, Any]:
        answer = None if record.state in OPEN else self.desk.answer(record.prompt_id)
        shown = render_prompt(record, self.desk.session(record.session_id))
        agreed = self.desk.agreed(record.prompt_id) if QUORUM in record.prompt.constraints else []
        names = {one: name for one in (record.decided_by, (answer or {}).get("by", "")) if (name := self._name(one))}
        later = render_plain(self.desk.later(record.prompt_id)) if record.state in OPEN else []
        told = {"answer": render_answer(record, answer) if answer else None, "agreed": agreed}
        return {**shown, **told, "names": names, "later": later}

    def _name(self, identity: str) -> str:
        """The one name of a person; "": nobody gave them one."""
        return visible(self.desk.name_of(identity), keep_lines=False) if identity else ""

    def snapshot(self) -> dict[str, Any]:
        """The first event of every stream: all that a page needs to draw itself."""
        return {
            "event": "hello",
            "now": iso(self.clock.wall()),
            "host": visible(socket.gethostname()),
            "version": __version__,
            "shell": self.shell,
            "prompts": [self.show(record) for record in self.desk.open_prompts()],
            "waiting": [self.show(record) for record in self.desk.still_waiting()],
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
