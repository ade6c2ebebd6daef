"""A server, its machines and its people in one test: real PostgreSQL, real HTTP and WebSockets on loopback, real hubs.

A machine's sessions are driven from within: `Sitter` is a host without a terminal that types each prompt once, as
real hosts do, and keeps what it typed; it outlives the hub and says hello to the next one.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from tests.support import waiting
from tests.support.waiting import DEADLINE_S

from atlasbridge.bootstrap import plan_server_chats
from atlasbridge.core.clock import Clock, ManualClock
from atlasbridge.core.daemon.parts import HubSettings
from atlasbridge.core.daemon.service import ChannelPlan, Hub, HubPlan
from atlasbridge.core.errors import StoreError
from atlasbridge.core.fleet_wire import Invitation
from atlasbridge.core.home import Home
from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.codec import encode_prompt
from atlasbridge.core.prompt.model import Prompt, PromptType
from atlasbridge.core.routing.router import WorkerSettings
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.store.ledger import Ledger
from atlasbridge.fleet.member.joining import join
from atlasbridge.fleet.member.membership import FleetMembership, with_fleet, write_membership
from atlasbridge.fleet.server import machines, people
from atlasbridge.fleet.server.chats import Chats
from atlasbridge.fleet.server.context import ServerContext
from atlasbridge.fleet.server.database import Database
from atlasbridge.fleet.server.migrate import migrate
from atlasbridge.fleet.server.oidc import OidcSettings
from atlasbridge.fleet.server.server import Address, FleetServer, listen_at, server_settings

YES_NO = Prompt(PromptType.TYPE_YES_NO, 0.95, "Continue? (y/n)", "Continue?", safe_default="n", digest="d1")


class HubApi:
    """One server process, inside the test."""

    def __init__(self, context: ServerContext, server: uvicorn.Server, tasks: list[asyncio.Task[Any]]) -> None:
        self.context = context
        self.database = context.database
        self.url = context.url
        self._server = server
        self._tasks = tasks
        self._visitors: list[Visitor] = []

    @property
    def carries(self) -> bool:
        return self.context.chats is not None and bool(self.context.chats.health()["carried_here"])

    @property
    def context_ended(self) -> bool:
        return self._tasks[1].done()

    async def invite(self, **given: Any) -> Invitation:
        token = await machines.invite(self.database, "test", **given)
        return Invitation(self.url, token, self.context.identity.public_key)

    async def person(self, name: str, role: str = "member", **right: str) -> Visitor:
        await people.add(self.database, name, role, "test")
        if right:
            await self.allow(name, **right)
        return await self.visitor(name)

    async def allow(self, name: str, machine: str = "*", folder: str = "*", may: str = "answer") -> None:
        """A machine that is not there yet is meant by a pattern."""
        there = {one["name"] for one in await machines.listing(self.database)}
        pattern = machine if "*" in machine or machine in there else f"{machine}*"
        await people.allow(self.database, name, pattern, folder, may, "test")

    async def in_chat(self, name: str, identity: str, role: str = "member", **right: str) -> None:
        """Somebody who is known in a chat, too."""
        await people.add(self.database, name, role, "test")
        await people.set_identity(self.database, name, identity, True, "test")
        if right:
            await self.allow(name, **right)

    async def visitor(self, name: str, url: str = "") -> Visitor:
        visitor = Visitor(url or self.url)
        self._visitors.append(visitor)
        token = await people.login_link(self.database, name)
        assert (await visitor.post("/api/v1/login", link=token)).status_code == 200
        return visitor

    async def events(self) -> list[str]:
        """What stands in the server's own log, or will in a moment."""
        found = await self.database.rows(
            "SELECT entry::jsonb ->> 'event' AS event, seq AS at, 0 AS rest FROM audit_entries"
            " UNION ALL SELECT event, id, 1 FROM audit_pending ORDER BY rest, at"
        )
        return [str(one["event"]) for one in found]

    async def stop(self) -> None:
        for visitor in self._visitors:
            await visitor.client.aclose()
        self._server.should_exit = self._server.force_exit = True
        serving, context = self._tasks
        await asyncio.wait({serving}, timeout=10)
        context.cancel()
        await asyncio.gather(serving, context, return_exceptions=True)


@contextlib.asynccontextmanager
async def fleet_server_on(
    url: str, clock: Clock | None = None, port: int = 0, chats: Path | None = None, oidc: OidcSettings | None = None
) -> AsyncIterator[HubApi]:
    """`chats`: the file of its channels."""
    fleet_server = await start_fleet_server(url, clock, port, chats, oidc)
    try:
        yield fleet_server
    finally:
        await fleet_server.stop()
        await fleet_server.database.close()


async def start_fleet_server(
    url: str, clock: Clock | None = None, port: int = 0, chats: Path | None = None, oidc: OidcSettings | None = None
) -> HubApi:
    database = Database(url, clock)
    await database.open()
    await migrate(database)
    listener = listen_at(Address(port=port))
    address = Address(port=listener.getsockname()[1], oidc=oidc)
    context = ServerContext(database, address.known_as)
    await context.read_identity()
    if chats is not None:
        context.chats = Chats(context, partial(plan_server_chats, chats, {}))
    server = FleetServer(server_settings(context, address))
    tasks = [asyncio.create_task(server.serve(sockets=[listener])), asyncio.create_task(context.run())]
    await until(lambda: server.started)
    return HubApi(context, server, tasks)


ATTEMPTS = 10  # as a browser makes them


class Visitor:
    """Somebody in front of the page."""

    def __init__(self, url: str) -> None:
        self.client = httpx.AsyncClient(
            base_url=url, timeout=60, verify=url.startswith("https")
        )  # reading all certificates takes longer than most tests

    async def post(self, path: str, **given: Any) -> httpx.Response:
        return await self.client.post(path, json=given)

    async def get(self, path: str, **query: Any) -> dict[str, Any]:
        for attempt in range(ATTEMPTS):
            try:
                answer = await self.client.get(path, params=query)
                break
            except (httpx.ReadError, httpx.RemoteProtocolError):  # an idle connection was just closed: ask again
                if attempt == ATTEMPTS - 1:
                    raise
        return {"status": answer.status_code, **answer.json()}

    async def prompts(self, **query: Any) -> list[dict[str, Any]]:
        """With what names each of them apart: its machine, and its own id there."""
        while (found := await self.get("/api/v1/prompts", **query))["status"] == 503:
            await asyncio.sleep(0.05)  # the database is away: a page asks again, too
        return [_named(one) for one in found["prompts"]]

    async def decide(self, prompt: dict[str, Any], value: str, key: str = "", **given: Any) -> dict[str, Any]:
        """With `accepted`: None where the machine has not said anything yet."""
        path = f"/api/v1/prompts/{prompt['machine_id']}.{prompt['prompt_id']}/reply"
        answer = await self.post(path, value=value, request_key=key or new_id(), **given)
        told = {"status": answer.status_code, "reason": "", **answer.json()}
        told["reason"] = told.pop("error", "")
        accepted = answer.status_code == 200 and (None if told["stage"] == "received" else True)
        return {"stage": told["reason"], **told, "accepted": accepted}

    async def sees(self, count: int) -> list[dict[str, Any]]:
        """Wait until so many prompts are open here."""
        found: list[dict[str, Any]] = []

        async def enough() -> bool:
            nonlocal found
            found = await self.prompts(limit=200)
            return len(found) == count

        await until(enough)
        return found


def _named(prompt: dict[str, Any]) -> dict[str, Any]:
    session, (machine_id, prompt_id) = prompt["session"], prompt["prompt_id"].split(".")
    ids = {"machine_id": machine_id, "prompt_id": prompt_id, "session_id": prompt["session_id"].split(".")[1]}
    return {**prompt, **ids, "machine": session["machine"], "folder": session["cwd"], "label": session["label"]}


class Sitter:
    """A host without a terminal; see above."""

    def __init__(self, hub: Hub, cwd: str = "/somewhere", **session: Any) -> None:
        self.record = SessionRecord(
            new_id(), "bash", ("bash",), cwd, 1, 1, "2026-01-01T00:00:00.000000+00:00", **session
        )
        self.session_id = self.record.session_id
        self.typed: dict[str, dict[str, str]] = {}
        self.orders: list[str] = []
        self.open: dict[str, Any] | None = None
        self.types = True
        self.hold: Callable[[Callable[[], object]], object] = lambda sending: sending()
        self.host_pid, self.host_started, self.tty = 1, 0, ""
        self.connect(hub)

    def connect(self, hub: Hub) -> None:
        self._hub = hub
        self._loop = asyncio.get_running_loop()
        known = [[prompt_id, "taken"] for prompt_id in self.typed]
        hub.sessions.hello(self, {"session": self.record.to_wire(), "open": self.open, "typed": known})  # type: ignore[arg-type]

    def ask(self, prompt: Prompt = YES_NO, **more: Any) -> str:
        prompt_id = new_id()
        self.open = {"prompt_id": prompt_id, "prompt": encode_prompt(prompt)}
        self._hub.sessions.handle(self, {"m": "raise", **self.open, **more})  # type: ignore[arg-type]
        return prompt_id

    def answer_here(self, prompt_id: str) -> None:
        """At the keyboard."""
        self.open = None
        self._hub.sessions.handle(self, {"m": "withdraw", "prompt_id": prompt_id, "reason": "answered_at_terminal"})  # type: ignore[arg-type]

    def send(self, kind: str, **fields: Any) -> None:
        """As a link does: once the store has on disk what it is about."""
        self.hold(lambda: self.hear(kind, **fields))

    def hear(self, kind: str, **fields: Any) -> None:
        if kind == "type":
            self.orders.append(fields["prompt_id"])
            if self.types:
                self._loop.call_soon(self.type_answer, fields["prompt_id"], fields["answer"], self._hub)

    def type_answer(self, prompt_id: str, answer: dict[str, str], hub: Hub) -> None:
        """Once for each id, and only what stands there."""
        if prompt_id not in self.typed:
            if self.open is None or self.open["prompt_id"] != prompt_id:
                return self._say(hub, "typed", prompt_id, "stale")
            self.typed[prompt_id] = answer
            self.open = None
        self._say(hub, "typed", prompt_id, "typed")
        return self._say(hub, "effect", prompt_id, "taken")

    def _say(self, hub: Hub, kind: str, prompt_id: str, outcome: str) -> None:
        if hub is self._hub:
            hub.sessions.handle(self, {"m": kind, "prompt_id": prompt_id, "outcome": outcome, "detail": ""})  # type: ignore[arg-type]

    def watch(self, fps: float) -> asyncio.Queue[dict[str, Any] | None]:
        self.watchers = getattr(self, "watchers", 0) + 1
        return asyncio.Queue()

    def unwatch(self, queue: asyncio.Queue[Any]) -> None:
        self.watchers -= 1

    async def capture(self, styled: bool, timeout_s: float) -> dict[str, Any]:
        return {"rows": 2, "cols": 9, "lines": ["$ ls", "a b"], "title": ""}

    def close(self) -> None:
        """A hub ends; the host stays."""


class Machine:
    """A hub that belongs to a server, inside the test; it can end and start again in the same home."""

    def __init__(
        self, home: Home, membership: FleetMembership, clock: Clock, channels: tuple[ChannelPlan, ...] = ()
    ) -> None:
        self.home = home
        self.channels = channels  # of its own, besides the server
        self.membership = membership
        self.clock = clock
        self.hub: Hub = None  # type: ignore[assignment]  # see start
        self.sitters: list[Sitter] = []
        self._running: asyncio.Task[None] | None = None
        self._ledger: Ledger | None = None

    @property
    def name(self) -> str:
        return self.membership.name

    def _plan(self) -> HubPlan:
        worker = WorkerSettings(call_timeout_s=5.0, first_retry_s=0.01, last_retry_s=0.05)
        settings = HubSettings(worker=worker, type_timeout_s=5.0, host_patience_s=0.2, graceful_timeout_s=0.2)
        return with_fleet(self.home, HubPlan(settings, self.channels))

    async def start(self) -> Machine:
        self._ledger = Ledger.open(self.home.root, self.clock, "this-boot")
        self.hub = Hub(self.home, self.clock, self._ledger, self._plan)
        ready = asyncio.Event()
        self._running = asyncio.create_task(self.hub.run(ready.set))
        await until(lambda: ready.is_set() or self._running.done())
        for sitter in self.sitters:
            sitter.connect(self.hub)
        return self

    async def stop(self) -> None:
        if self._running is not None and self._ledger is not None:
            self.hub.stop_once()
            await self._running
            self._ledger.close()
            self._running = None

    def sit(self, **session: Any) -> Sitter:
        sitter = Sitter(self.hub, **session)
        self.sitters.append(sitter)
        return sitter

    @property
    def health(self) -> dict[str, Any]:
        return next(one for one in self.hub.router.health() if one["name"] == "server")

    async def connected(self) -> Machine:
        await until(lambda: self.health["state"] == "ok" and "fault" not in self.health)
        return self

    async def told_all(self) -> None:
        """Nothing is left in its outbox."""
        await until(lambda: self.hub.ledger.membership.backlog() == 0)


async def new_machine(
    fleet_server: HubApi,
    root: Path,
    name: str = "box",
    clock: Clock | None = None,
    channels: tuple[ChannelPlan, ...] = (),
    **given: Any,
) -> Machine:
    home = Home(root / name)
    home.prepare()
    options: dict[str, Any] = {"ca": "", "screens": True, "rules": "tighten", "ephemeral": False, **given}
    membership = await join(await fleet_server.invite(), name, **options)
    write_membership(home.root, membership)
    return await (await Machine(home, membership, clock or ManualClock(), channels).start()).connected()


async def let_in(fleet_server: HubApi, machine: Machine) -> Machine:
    """A person says that this machine was put back on purpose."""

    async def accepted() -> bool:
        return bool(await machines.accept_restore(fleet_server.database, machine.name, "test"))

    await until(accepted)
    return await machine.connected()


@contextlib.contextmanager
def short_root() -> Any:
    root = Path(tempfile.mkdtemp(prefix="ab-"))
    try:
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


async def until(condition: Any, deadline_s: float = DEADLINE_S) -> None:
    """Conditions here may ask the database, which is killed here and there."""

    async def look() -> Any:
        try:
            met = condition()
            return await met if asyncio.iscoroutine(met) else met
        except StoreError:
            return False

    await waiting.until(look, deadline_s=deadline_s)
