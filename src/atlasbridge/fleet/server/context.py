"""What every part of one server process works with.  Nothing in it must outlive the process: the rows decide."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Protocol

from atlasbridge.core.errors import StoreError
from atlasbridge.core.ids import new_id
from atlasbridge.fleet.server import audit, decisions, machines, notices
from atlasbridge.fleet.server.database import Database
from atlasbridge.fleet.server.decisions import Decision
from atlasbridge.fleet.server.metrics import Metrics
from atlasbridge.fleet.server.signature import Identity, identity_of
from atlasbridge.fleet.server.wakeups import BOARD, Wakeups

log = logging.getLogger(__name__)

LOOK_S = 2.0
SEAL_S = 0.5
REAP_S = 30.0
CLEAN_S = 3600.0
KEEP_S = 90 * 86_400.0  # as a hub keeps its own


class Works(Protocol):
    """A further part of this process."""

    async def run(self) -> None: ...
    def health(self) -> dict[str, Any]: ...


class ServerContext:
    def __init__(self, database: Database, url: str, keep_s: float = KEEP_S) -> None:
        self.database = database
        self.url = url.rstrip("/")  # as people and machines reach it
        self.name = new_id()
        self.wakeups = Wakeups(database)
        self.links = 0  # of machines, to this process
        self.pages = 0
        self.metrics = Metrics()
        self.keep_s = keep_s
        self.chats: Works | None = None  # where this process may carry them
        self._identity: Identity | None = None

    @property
    def identity(self) -> Identity:
        assert self._identity is not None, "open() comes first"
        return self._identity

    async def open(self) -> None:
        await self.read_identity()

    async def read_identity(self) -> Identity:
        """As it is now: another process may have been told to replace the key."""
        async with self.database.transaction() as connection:
            self._identity = await identity_of(connection)
        return self._identity

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.wakeups.run(), name="wakeups")
            group.create_task(self._seal(), name="seal")
            group.create_task(self._reap(), name="reap")
            group.create_task(self._clean(), name="clean")
            if self.chats is not None:
                group.create_task(self.chats.run(), name="chats")

    async def pass_on(self, decision: Decision, person: str, wait_s: float) -> Decision:
        """Call its machine, and wait a moment for that machine's word; it may also come later."""
        self.metrics.decisions.inc()
        clock = asyncio.get_running_loop().time
        deadline = clock() + wait_s
        with self.wakeups.waiting(f"decision:{decision.decision_id}") as called:
            self.wakeups.tell(f"machine:{decision.machine_id}", BOARD)
            while not decision.settled and clock() < deadline:
                try:
                    async with asyncio.timeout(LOOK_S):
                        await called.wait()
                except TimeoutError:
                    pass  # the word may have been lost: look
                called.clear()
                decision = await decisions.find(self.database, decision.decision_id, person) or decision
        if decision.settled:
            self.metrics.decision_seconds.observe(wait_s - max(0.0, deadline - clock()))
        return decision

    async def _seal(self) -> None:
        while True:
            try:
                while await audit.seal(self.database) == audit.BATCH:
                    pass
            except StoreError as error:
                log.warning("the log is sealed later: %s", error)
            await asyncio.sleep(SEAL_S)

    async def _clean(self) -> None:
        """What ended long ago goes, a batch at a time: nobody waits for it."""
        while True:
            try:
                while await notices.clean(self.database, self.keep_s):
                    await asyncio.sleep(SEAL_S)
            except StoreError as error:
                log.warning("old rows are removed later: %s", error)
            await asyncio.sleep(CLEAN_S)

    async def _reap(self) -> None:
        began = self.database.clock.now()
        while True:
            try:
                await self.database.set_clock()
                if self.database.clock.now() - began > machines.EPHEMERAL_S:  # sooner they could not have called
                    for machine_id in await machines.reap(self.database):
                        self.wakeups.tell(f"job:{machine_id}", BOARD)
                voided = await decisions.void_unallowed(self.database)
                self.wakeups.tell(*(f"decision:{one}" for one in voided))
                await audit.note_counted(self.database)
            except StoreError as error:
                log.warning("silent machines are looked for later: %s", error)
            await asyncio.sleep(REAP_S)
