"""A whole fleet of processes on loopback: PostgreSQL, servers, machines, and a line between them that can be cut.

Everything in it can be killed at any moment; `check` says afterwards whether every decision was typed once or refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
from tests.support.fleet import Visitor, short_root, until
from tests.support.member import read_lines
from tests.support.postgres import Postgres, postgres

from atlasbridge.core.audit.chain import Fault
from atlasbridge.core.fleet_wire import Invitation
from atlasbridge.core.home import Home
from atlasbridge.core.ids import new_id
from atlasbridge.fleet.member.joining import join
from atlasbridge.fleet.member.membership import write_membership
from atlasbridge.fleet.server import audit, machines, people
from atlasbridge.fleet.server.database import Database
from atlasbridge.fleet.server.machines import identity_of
from atlasbridge.fleet.server.migrate import migrate

ROOT = Path(__file__).resolve().parents[2]
KINDS = {"y": "yes", "n": "no"}


class Wire:
    """A line to one of several servers: it can be cut, go dead without a word, and deliver late."""

    def __init__(self, ports: list[int]) -> None:
        self._ports = ports
        self._pairs: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._blocked = False
        self._late_s = 0.0
        self._flows = asyncio.Event()
        self._flows.set()

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    def block(self) -> None:
        """Nobody gets through until `unblock`."""
        self._blocked = True
        self.cut()

    def unblock(self) -> None:
        self._blocked = False

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), contextlib.suppress(OSError):
            if self._blocked:
                return
            theirs, ours = await asyncio.open_connection("127.0.0.1", random.choice(self._ports))
            pair = (writer, ours)
            with contextlib.closing(ours):
                if self._blocked:
                    return
                self._pairs.add(pair)
                try:
                    await asyncio.gather(self._pump(reader, ours), self._pump(theirs, writer))
                finally:
                    self._pairs.discard(pair)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65_536):
                await self._flows.wait()  # held back: delivered later, perhaps behind a newer connection's words
                if self._late_s and writer in {ours for _, ours in self._pairs}:
                    await asyncio.sleep(self._late_s)
                writer.write(data)
                await writer.drain()
        writer.close()

    def cut(self) -> None:
        for pair in list(self._pairs):
            for writer in pair:
                writer.transport.abort()

    async def reorder(self, seconds: float) -> None:
        """What the machine said last comes to the server behind the words of its next connection."""
        self._late_s = seconds
        await asyncio.sleep(random.uniform(0.0, seconds))
        for theirs, _ in list(self._pairs):
            theirs.transport.abort()
        self._late_s = 0.0

    async def hold(self, seconds: float) -> None:
        self._flows.clear()
        await asyncio.sleep(seconds)
        self._flows.set()

    async def stop(self) -> None:
        self._flows.set()
        self.cut()
        self._server.close()
        await asyncio.sleep(0)


class Rig:
    def __init__(self, root: Path, server: Postgres, url: str, dead_s: float) -> None:
        self.root = root
        self.server = server
        self.url = url
        self.database = Database(url)
        self.fleet_servers: dict[int, subprocess.Popen[bytes]] = {}
        self.members: dict[str, subprocess.Popen[bytes]] = {}
        self.light: dict[str, subprocess.Popen[bytes]] = {}  # machines without hubs; one process has them all
        self._plans: dict[str, tuple[int, float]] = {}
        self.lines: dict[str, Wire] = {}  # each machine has its own, to whichever server
        self.machine_ids: dict[str, str] = {}
        self.environ = {**os.environ, "MEMBER_DEAD_S": str(dead_s), "ATLASBRIDGE_LOG_LEVEL": "WARNING"}
        self.chats: Path | None = None  # the file of the servers' channels
        self.decisions: Counter[str] = Counter()
        self.settled: Counter[str] = Counter()  # by machine
        self.waits_s: list[float] = []

    async def open(self, fleet_servers: int) -> None:
        await self.database.open()
        await migrate(self.database)
        self.began = self.database.now()
        for name in ("alice", "bert"):
            await people.add(self.database, name, "admin", "test")
        for _ in range(fleet_servers):
            self.start_fleet_server(free_port())
        for port in self.fleet_servers:
            await self.listens(port)

    async def listens(self, port: int) -> None:
        async def answers() -> bool:
            try:
                async with httpx.AsyncClient() as client:
                    return (await client.get(f"http://127.0.0.1:{port}/ready")).status_code == 200
            except httpx.HTTPError:
                return False

        await until(answers)

    def start_fleet_server(self, port: int) -> None:
        words = [sys.executable, "-m", "atlasbridge", "fleet", "serve", "--database", self.url, "--port", str(port)]
        words += ["--config", str(self.chats)] if self.chats else []
        with (self.root / f"server-{port}.log").open("ab") as log:
            self.fleet_servers[port] = subprocess.Popen(words, cwd=ROOT, env=self.environ, stdout=log, stderr=log)

    async def add_member(self, name: str, sessions: int, pause_s: float) -> None:
        self.lines[name] = line = Wire(list(self.fleet_servers))
        await self.join(name, await line.start())
        self._plans[name] = (sessions, pause_s)
        self.start_member(name)

    async def add_light(self, names: list[str], sessions: int, pause_s: float) -> None:
        for number, name in enumerate(names):
            await self.join(name, list(self.fleet_servers)[number % len(self.fleet_servers)])
        self.light = dict.fromkeys(names, self._start_light(names, sessions, pause_s))

    def _start_light(self, names: list[str], sessions: int, pause_s: float) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "tests.support.light_fleet", str(sessions), str(pause_s)]
        words += [str(self.root / name) for name in names]
        with (self.root / "light.log").open("ab") as log:
            return subprocess.Popen(words, cwd=ROOT, env=self.environ, stdout=log, stderr=log)

    async def join(self, name: str, port: int) -> None:
        home = Home(self.root / name)
        home.prepare()
        token = await machines.invite(self.database, "test")
        async with self.database.transaction() as connection:
            key = (await identity_of(connection)).public_key
        invitation = Invitation(f"http://127.0.0.1:{port}", token, key)
        membership = await join(invitation, name, ca="", screens=True, rules="none", ephemeral=False)
        self.machine_ids[name] = membership.machine_id
        write_membership(home.root, membership)

    def start_member(self, name: str) -> None:
        sessions, pause_s = self._plans[name]
        words = [sys.executable, "-m", "tests.support.member", str(self.root / name), str(sessions), str(pause_s)]
        with (self.root / f"{name}.log").open("ab") as log:
            self.members[name] = subprocess.Popen(words, cwd=ROOT, env=self.environ, stdout=log, stderr=log)

    def last_words(self, name: str) -> str:
        """Whether a machine lives, and the end of its log."""
        log = self.root / f"{name}.log"
        if name not in self.members or not log.exists():
            return ""
        return f"status {self.members[name].poll()}: {log.read_text(errors='replace')[-2000:]}"

    def revive(self) -> None:
        """Anyone who gave up is started again, as the next command on that machine would."""
        for name, process in list(self.members.items()):
            if process.poll() is not None:
                self.start_member(name)

    def kill_member(self, name: str) -> None:
        self.members[name].kill()
        self.members[name].wait()

    def kill_fleet_server(self, port: int) -> None:
        self.fleet_servers[port].kill()
        self.fleet_servers[port].wait()

    async def visitor(self, name: str, port: int) -> Visitor:
        visitor = Visitor(f"http://127.0.0.1:{port}")
        token = await people.login_link(self.database, name)
        assert (await visitor.post("/api/v1/login", link=token)).status_code == 200
        return visitor

    async def decide_on(self, visitor: Visitor, rounds: asyncio.Event, rate_s: float = 0.0, batch: int = 20) -> None:
        """Answer what is open until told to stop; what fails is sent again with its key until it is known."""
        under_way: set[asyncio.Task[None]] = set()
        loop = asyncio.get_running_loop()
        while not rounds.is_set():
            try:
                found = await visitor.prompts(limit=batch, offset=random.randrange(3) * batch)
                if not found:
                    found = await visitor.prompts(limit=batch)
            except (httpx.HTTPError, KeyError, ValueError):
                await asyncio.sleep(0.1)
                continue
            fresh = [prompt for prompt in found if not prompt["deciding"]]
            random.shuffle(fresh)
            for prompt in fresh:
                task = loop.create_task(self._decide(visitor, prompt))
                under_way.add(task)
                task.add_done_callback(under_way.discard)
                await asyncio.sleep(rate_s)
                if rounds.is_set():
                    break
            if not fresh or len(under_way) > 200:
                await asyncio.sleep(0.05)
        await asyncio.gather(*under_way)
        await visitor.client.aclose()

    async def _decide(self, visitor: Visitor, prompt: dict[str, Any]) -> None:
        key, value = new_id(), random.choice("yn")
        began = asyncio.get_running_loop().time()
        for _ in range(200):
            try:
                told = await visitor.decide(prompt, value, key=key)
            except (httpx.HTTPError, ValueError):
                told = {"status": 503}
            if told["status"] in (503, 500):
                await asyncio.sleep(0.2)
                continue
            if told["accepted"] is None:
                continue
            self.decisions["accepted" if told["accepted"] else f"refused:{told['stage']}"] += 1
            self.settled[prompt["machine_id"]] += 1
            self.waits_s.append(asyncio.get_running_loop().time() - began)
            return
        self.decisions["not known"] += 1

    async def settle(self, timeout_s: float = 120.0) -> None:
        """Everything lives again: wait until every decision has its end."""

        async def settled() -> bool:
            return not await self.database.rows("SELECT 1 FROM decisions WHERE settled_at IS NULL LIMIT 1")

        await until(settled, deadline_s=timeout_s)

    def typed(self) -> tuple[dict[str, str], int, dict[str, str]]:
        """What was typed (prompt: kind), how many were typed twice, and what is open now (prompt: machine)."""
        kinds: dict[str, str] = {}
        doubled = 0
        opened: dict[str, str] = {}
        for name in (*self.members, *self.light):
            sessions: dict[str, str] = {}
            for line in read_lines(self.root / name / "typed.log"):
                kind, session, prompt_id, *rest = line.split()
                if kind == "R":
                    sessions[session] = prompt_id
                    continue
                doubled += prompt_id in kinds
                kinds[prompt_id] = rest[0]
                sessions.pop(session, None)
            opened |= dict.fromkeys(sessions.values(), name)
        return kinds, doubled, opened

    async def _shows_what_is_asked(self) -> bool:
        """A machine's word that a prompt has ended comes a moment after what became of its decision."""
        shown = await self.database.rows("SELECT prompt_id FROM prompts WHERE is_open")
        return {str(one["prompt_id"]) for one in shown} <= set(self.typed()[2])

    async def check(self) -> dict[str, int]:
        """Raises AssertionError where a promise was broken; the figures."""
        await until(self._shows_what_is_asked, deadline_s=30)
        kinds, doubled, _ = self.typed()
        query = "SELECT id, prompt_id, value, ok, stage, sentence, settled_at FROM decisions WHERE made_at >= %s"
        rows = await self.database.rows(query, self.began)
        unsettled = [one for one in rows if one["settled_at"] is None]
        accepted = [one for one in rows if one["ok"]]
        assert not unsettled, f"{len(unsettled)} decisions have no end"
        assert doubled == 0, f"{doubled} prompts were typed twice"
        per_prompt = Counter(one["prompt_id"] for one in accepted)
        assert not [one for one, count in per_prompt.items() if count > 1], "two decisions of one prompt were accepted"
        lost = [one for one in accepted if one["prompt_id"] not in kinds]
        assert not lost, f"{len(lost)} accepted decisions were never typed: {lost[:3]}"
        wrong = [one for one in accepted if kinds[one["prompt_id"]] != KINDS[one["value"]]]
        assert not wrong, f"another answer was typed: {wrong[:3]}"
        strange = set(kinds) - set(per_prompt)
        told = [(one["stage"], one["sentence"]) for one in rows if one["prompt_id"] in strange]
        assert not strange, f"{len(strange)} prompts were typed without an accepted decision; it was told: {told[:3]}"
        own = await audit.verify(self.database)
        assert not isinstance(own, Fault), own
        return {
            "decisions": len(rows),
            "accepted": len(accepted),
            "typed": len(kinds),
            "refused": len(rows) - len(accepted),
        }

    async def close(self) -> None:
        for line in self.lines.values():
            await line.stop()
        for process in (*self.members.values(), *self.light.values(), *self.fleet_servers.values()):
            process.kill()
            process.wait()
        await self.database.close()


@contextlib.asynccontextmanager
async def rig(
    fleet_servers: int = 2, dead_s: float = 50.0, options: str = "", chats: Callable[[Path], Path] | None = None
) -> AsyncIterator[Rig]:
    """`chats` writes the file of the servers' channels into a folder."""
    with short_root() as root, postgres(*([options] if options else [])) as server:
        made = Rig(root, server, server.new_database(), dead_s)
        made.chats = chats(root) if chats else None
        try:
            await made.open(fleet_servers)
            yield made
        finally:
            await made.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
