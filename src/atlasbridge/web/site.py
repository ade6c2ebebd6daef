"""State that the handlers share: the hub, access, live streams, limits, counters and pending replies."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from atlasbridge import __version__
from atlasbridge.channels.language import t
from atlasbridge.core.clock import Clock, RateWindow, iso
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import new_id, short_id
from atlasbridge.core.newest import Newest
from atlasbridge.core.policy.approval import QUORUM
from atlasbridge.core.ports import MachineApi
from atlasbridge.core.prompt.model import OPEN, InboundReply, PromptRecord, Receipt, Reject
from atlasbridge.core.prompt.redact import redact_data
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.system import replace_private
from atlasbridge.core.system_setup import read_setup
from atlasbridge.core.values import mutable, replace
from atlasbridge.web.access import Access, Device
from atlasbridge.web.guard import Readers
from atlasbridge.web.push import Push
from atlasbridge.web.settings import WebSettings
from atlasbridge.web.stream import Broadcast
from atlasbridge.web.view import render_answer, render_plain, render_prompt, render_session

# Counters in the text format of Prometheus.  Labels come from closed sets only, never from a prompt or a tool.

BUCKETS = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0)


class Counters:
    def __init__(self) -> None:
        self.events: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.refusals: Counter[str] = Counter()
        self.waits: Counter[float] = Counter()
        self.wait_sum = 0.0
        self.wait_count = 0

    def count_event(self, event: dict[str, Any]) -> None:
        self.events[str(event.get("event", ""))] += 1

    def count_status(self, status: int) -> None:
        self.statuses[status] += 1

    def count_wait(self, seconds: float) -> None:
        """Count how long a prompt waited for its answer."""
        self.wait_sum += seconds
        self.wait_count += 1
        for bucket in BUCKETS:
            self.waits[bucket] += seconds <= bucket

    def render(self, gauges: dict[str, tuple[str, float]]) -> str:
        lines: list[str] = []
        for name, (about, value) in gauges.items():
            lines += [f"# HELP atlasbridge_{name} {about}", f"# TYPE atlasbridge_{name} gauge"]
            lines.append(f"atlasbridge_{name} {value:g}")
        lines += _family("events_total", "Events of the hub since it started", "event", self.events)
        lines += _family("http_responses_total", "HTTP responses by status", "status", self.statuses)
        lines += _family("replies_refused_total", "Refused replies of this channel by reason", "reason", self.refusals)
        return "\n".join([*lines, *self._histogram(), ""])

    def _histogram(self) -> list[str]:
        name = "atlasbridge_answer_wait_seconds"
        lines = [f"# HELP {name} Time from a prompt to its accepted answer", f"# TYPE {name} histogram"]
        lines += [f'{name}_bucket{{le="{bucket:g}"}} {self.waits[bucket]}' for bucket in BUCKETS]
        lines.append(f'{name}_bucket{{le="+Inf"}} {self.wait_count}')
        return [*lines, f"{name}_sum {self.wait_sum:g}", f"{name}_count {self.wait_count}"]


def _family(name: str, about: str, label: str, counter: Counter[Any]) -> list[str]:
    full = f"atlasbridge_{name}"
    lines = [f"# HELP {full} {about}", f"# TYPE {full} counter"]
    return lines + [f'{full}{{{label}="{key}"}} {counter[key]}' for key in sorted(counter, key=str)]


# Ordered keys from a page: each piece has a number, and is typed once, after the previous one.

MAX_STREAMS = 256


@mutable
class TypingStream:
    stream: str
    next_number: int = 0


class PageTyping:
    """Who has enabled typing, and the position of each stream."""

    def __init__(self) -> None:
        self._on: Newest[tuple[str, str], TypingStream] = Newest(MAX_STREAMS)

    def switch(self, caller: str, session_id: str, on: bool) -> None:
        self._on.pop((caller, session_id), None)
        if on:
            self._on[caller, session_id] = TypingStream("")

    def stop(self, caller: str) -> None:
        for key in [one for one in self._on if one[0] == caller]:
            del self._on[key]

    def is_on(self, caller: str, session_id: str) -> bool:
        return (caller, session_id) in self._on

    def expected(self, caller: str, session_id: str, stream: str) -> int:
        """The next number of this stream; a new stream starts with 0."""
        known = self._on[caller, session_id]
        if known.stream != stream:
            known.stream, known.next_number = stream, 0
        return known.next_number

    def took(self, caller: str, session_id: str) -> None:
        known = self._on.get((caller, session_id))
        if known is not None:
            known.next_number += 1


# Reports about detection, "not a prompt" and "you missed one", as files for the lab. One file per report in
# HOME/reports; developers turn them into recordings and tests.

MAX_REPORTS = 1000


class Reports:
    def __init__(self, home: Path, clock: Clock) -> None:
        self._folder = home / "reports"
        self._clock = clock

    def write(self, verdict: str, session_id: str, prompt_id: str, note: str, detail: dict[str, Any]) -> Path | None:
        """Return None if there are already too many reports."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        if self.count() >= MAX_REPORTS:
            return None
        at = iso(self._clock.wall())
        path = self._folder / f"{at[:19].replace(':', '')}-{short_id(new_id())}.json"
        record = {"prompt_id": prompt_id, "verdict": verdict, "at": at, "session_id": session_id, "note": note}
        replace_private(path, json.dumps(redact_data({**record, **detail})))
        return path

    def count(self, verdict: str = "") -> int:
        files = list(self._folder.glob("*.json")) if self._folder.is_dir() else []
        return sum(1 for path in files if not verdict or f'"verdict": "{verdict}"' in path.read_text("utf-8"))


MAX_KEPT = 1024
Verdict = Receipt | Reject | None
Key = tuple[str, str, str]  # caller, prompt, request key


class Outcomes:
    """Results of answers by the key that their sender chose, so that a repeated request has no second effect."""

    def __init__(self) -> None:
        self._tasks: dict[Key, asyncio.Task[Verdict]] = {}

    def knows(self, key: Key) -> bool:
        return key in self._tasks

    async def once(self, key: Key, work: Coroutine[Any, Any, Verdict]) -> Verdict:
        """Run the work, unless it ran or is running under this key; return its result."""
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


def _which_setup() -> str:
    """Tell people whether tools can access the hub's own files."""
    setup = read_setup()
    if setup is not None and hasattr(os, "getuid") and os.getuid() == setup.uid:
        return t("The hub runs as a user of its own ({name}).", name=setup.user)
    return t("The hub and your tools run as the same user.")


@dataclass(slots=True)
class Site:
    hub_api: MachineApi
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
    fingerprint: str = ""  # of the LAN's TLS certificate
    shell: str = ""  # identifies this version of the page's files
    watchers: int = 0
    questions: int = 0  # waiting over HTTP
    max_watchers: int = 32
    wrong: RateWindow = field(default_factory=lambda: RateWindow(10))
    guesses: RateWindow = field(default_factory=lambda: RateWindow(10))
    answers: RateWindow = field(init=False)

    def __post_init__(self) -> None:
        self.answers = RateWindow(self.settings.replies_per_minute)

    def origins(self) -> list[str]:
        """The real addresses of the page. A name of this machine counts only with the page's own port: another program
        on `localhost` could ask a browser for the same passkey."""
        names = {url.rstrip("/") for url in self.urls.values()} | {f"https://{host}" for host in self.settings.hosts}
        if self.settings.lan:
            names |= {f"https://{name}:{self.settings.lan_port}" for name in self.settings.lan_names}
        return sorted(names | ({f"http://localhost:{self.access.port}"} if self.access.port else set()))

    def new_links(self, name: str, scope: str, here: bool = False) -> dict[str, Any]:
        """One link for each address of the page; the first browser that opens one uses it up."""
        secret = self.access.make_link(name, scope, here)
        links = {place: f"{url}/#link={secret}" for place, url in self.urls.items()}
        out = {"url": self.urls.get("local", ""), "links": links, "valid_s": self.settings.link_ttl_s}
        return {**out, "fingerprint": self.fingerprint}

    def end_device(self, login_id: str, revoked: bool = True) -> bool:
        """End a login with its push messages, typing and streams; if it was revoked, also its scheduled answers."""
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
            self.hub_api.login_revoked(f"web:{name}")

    def session(self, session_id: str) -> SessionRecord | None:
        """Find a session by full or short id, with its open prompt."""
        found = self.hub_api.session(session_id)
        if found is None:
            return None
        opened = [record.prompt_id for record in self.hub_api.open_prompts() if record.session_id == found.session_id]
        return replace(found, open_prompt=opened[0] if opened else "")

    def show(self, record: PromptRecord) -> dict[str, Any]:
        answer = None if record.state in OPEN else self.hub_api.answer(record.prompt_id)
        shown = render_prompt(record, self.hub_api.session(record.session_id))
        agreed = self.hub_api.agreed(record.prompt_id) if QUORUM in record.prompt.constraints else []
        names = {one: name for one in (record.decided_by, (answer or {}).get("by", "")) if (name := self._name(one))}
        later = render_plain(self.hub_api.later(record.prompt_id)) if record.state in OPEN else []
        told: dict[str, Any] = {"answer": render_answer(record, answer) if answer else None, "agreed": agreed}
        return {**shown, **told, "names": names, "later": later}

    def _name(self, identity: str) -> str:
        """The configured name of a person, or "" if there is none."""
        return escape_controls(self.hub_api.name_of(identity), keep_lines=False) if identity else ""

    def snapshot(self) -> dict[str, Any]:
        """The first event of every stream: everything that a page needs for drawing."""
        return {
            "event": "hello",
            "now": iso(self.clock.wall()),
            "host": escape_controls(socket.gethostname()),
            "version": __version__,
            "shell": self.shell,
            "setup": _which_setup(),
            "prompts": [self.show(record) for record in self.hub_api.open_prompts()],
            "waiting": [self.show(record) for record in self.hub_api.still_waiting()],
            "sessions": [render_session(session) for session in self.hub_api.sessions()],
        }

    async def submit(self, reply: InboundReply, timeout_s: float) -> Receipt | Reject | None:
        """Pass a reply to the router and wait for its verdict; None after the timeout."""
        verdict: asyncio.Future[Receipt | Reject] = reply.token
        self.replies.put_nowait(reply)
        try:
            return await asyncio.wait_for(asyncio.shield(verdict), timeout_s)
        except TimeoutError:
            return None
