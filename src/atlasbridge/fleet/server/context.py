"""The shared state and the background tasks of one server process. All lasting state is in the database."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from atlasbridge.core.daemon.receipts import WINDOW_S
from atlasbridge.core.errors import StoreError
from atlasbridge.core.ids import new_id
from atlasbridge.fleet.server import audit, decisions, machines, reports
from atlasbridge.fleet.server.database import BOARD, Database, Wakeups, called_within
from atlasbridge.fleet.server.decisions import Decision
from atlasbridge.fleet.server.machines import Identity, identity_of
from atlasbridge.fleet.server.push import FleetPush

if TYPE_CHECKING:
    from atlasbridge.fleet.server.chats import Chats

# Metrics for Prometheus: counts and durations only, no names, questions or answers.
#
# Counters and histograms belong to this process. Gauges of the fleet are read from the database for each scrape.

NAMESPACE = "atlasbridge_fleet"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)
_QUERY = """
SELECT (SELECT count(*) FROM machines WHERE gone_at IS NULL) AS machines,
       (SELECT count(*) FROM machines WHERE gone_at IS NULL AND connected_to <> '') AS machines_connected,
       (SELECT count(*) FROM machines WHERE gone_at IS NULL AND log_fault <> '') AS machines_with_log_fault,
       (SELECT count(*) FROM machines WHERE gone_at IS NULL AND held <> '') AS machines_held,
       (SELECT count(*) FROM prompts WHERE is_open) AS open_prompts,
       (SELECT count(*) FROM decisions WHERE settled_at IS NULL) AS decisions_under_way,
       (SELECT count(*) FROM audit_pending) AS audit_unsealed,
       (SELECT count FROM audit_head) AS audit_entries,
       (SELECT coalesce(extract(epoch FROM %s - min(made_at)), 0) FROM decisions WHERE settled_at IS NULL)
           AS oldest_decision_seconds
"""
_TOLD = {
    "machines": "Machines of the fleet",
    "machines_connected": "Machines with a link to any server",
    "machines_with_log_fault": "Machines with a faulty audit log",
    "machines_held": "Machines that wait for a person to accept a restore or split a clone",
    "open_prompts": "Prompts that wait for an answer",
    "decisions_under_way": "Decisions that their machine has not confirmed yet",
    "audit_unsealed": "Entries that are not in the hash chain yet",
    "audit_entries": "Entries of the hash chain",
    "oldest_decision_seconds": "Age of the oldest decision under way",
    "links_here": "Links of machines to this server",
    "pages_here": "Pages that follow this server",
    "chats_carried_here": "1 if this server carries the chats",
}


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        made: dict[str, Any] = {"namespace": NAMESPACE, "registry": self.registry}
        self._gauges = {name: Gauge(name, about, **made) for name, about in _TOLD.items()}
        self.requests = Counter("http_requests", "HTTP requests by status", ["status"], **made)
        self.request_seconds = Histogram("http_request_seconds", "Duration of HTTP requests", buckets=_SECONDS, **made)
        self.decisions = Counter("decisions", "Decisions that were proposed here", **made)
        self.decision_seconds = Histogram(
            "decision_seconds", "From a person's decision to the machine's outcome", buckets=_SECONDS, **made
        )
        self.messages = Counter("machine_messages", "Messages of machines, by kind", ["kind"], **made)
        self.refused_logins = Counter("logins_refused", "Logins that were refused", **made)
        self.database_faults = Counter("database_faults", "Requests that PostgreSQL did not serve", **made)

    async def render(self, database: Database, **here: float) -> bytes:
        figures = (await database.rows(_QUERY, database.now()))[0]
        for name, value in {**figures, **here}.items():
            self._gauges[name].set(float(value))
        return bytes(generate_latest(self.registry))


log = logging.getLogger(__name__)

LOOK_S = 2.0
SEAL_S = 0.5
REAP_S = 30.0
CLEAN_S = 3600.0
KEEP_S = 90 * 86_400.0  # the default of a hub, too


# Adds a span to the trace of a prompt: its id, a name, and when it began and ended as wall-clock times; more by name.
Trace = Callable[..., None]


class ServerContext:
    def __init__(self, database: Database, url: str, keep_s: float = KEEP_S) -> None:
        self.database = database
        self.url = url.rstrip("/")  # the address that people and machines use
        self.name = new_id()
        self.wakeups = Wakeups(database)
        self.links = 0  # machine links to this process
        self.pages = 0
        self.metrics = Metrics()
        self.keep_s = keep_s
        self.trace: Trace = lambda *_, **more: None
        self.push = FleetPush(database, self.wakeups, self.url)
        self.chats: Chats | None = None  # None if this process never serves the chats
        self._identity: Identity | None = None
        self._began = database.clock.now()

    @property
    def identity(self) -> Identity:
        assert self._identity is not None, "read_identity() comes first"
        return self._identity

    async def read_identity(self) -> Identity:
        """Read the identity from the database, because another process can have rotated the key."""
        async with self.database.transaction() as connection:
            self._identity = await identity_of(connection)
        return self._identity

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.wakeups.run(), name="wakeups")
            tasks = ((SEAL_S, self._seal), (REAP_S, self._reap), (WINDOW_S, self._count), (CLEAN_S, self._clean))
            for every_s, work in tasks:
                group.create_task(self._repeat(every_s, work))
            group.create_task(self.push.run(), name="push")
            if self.chats is not None:
                group.create_task(self.chats.run(), name="chats")

    async def pass_on(self, decision: Decision, person: str, wait_s: float) -> Decision:
        """Notify the machine and wait up to `wait_s` seconds for its outcome, which can also arrive later."""
        self.metrics.decisions.inc()
        clock, began = asyncio.get_running_loop().time, self.database.clock.wall()
        deadline = clock() + wait_s
        with self.wakeups.waiting(f"decision:{decision.decision_id}") as called:
            self.wakeups.tell(f"machine:{decision.machine_id}", BOARD)
            while not decision.settled and clock() < deadline:
                await called_within(called, LOOK_S)
                called.clear()
                decision = await decisions.find(self.database, decision.decision_id, person) or decision
        self.trace(decision.prompt_id, "fleet.decide", began, self.database.clock.wall(), stage=decision.stage)
        if decision.settled:
            self.metrics.decision_seconds.observe(wait_s - max(0.0, deadline - clock()))
        return decision

    async def _repeat(self, every_s: float, work: Callable[[], Awaitable[None]]) -> None:
        """Do this work from time to time. While PostgreSQL is away, it is done later."""
        while True:
            try:
                await work()
            except StoreError as error:
                log.warning("a background task (%s) is done later: %s", work.__name__.strip("_"), error)
            await asyncio.sleep(every_s)

    async def _seal(self) -> None:
        while await audit.seal(self.database) == audit.BATCH:
            pass

    async def _clean(self) -> None:
        """Delete old rows in small batches, so that no request waits for a long transaction."""
        while await reports.clean(self.database, self.keep_s):
            await asyncio.sleep(SEAL_S)

    async def _reap(self) -> None:
        await self.database.set_clock()
        if self.database.clock.now() - self._began > machines.EPHEMERAL_S:  # time for machines to reconnect
            for machine_id in await machines.reap(self.database):
                self.wakeups.tell(f"job:{machine_id}", BOARD)
        voided = await decisions.void_unallowed(self.database)
        self.wakeups.tell(*(f"decision:{one}" for one in voided))

    async def _count(self) -> None:
        await audit.note_counted(self.database)
