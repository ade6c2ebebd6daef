"""Hubs for tests: a real process in a home of its own, or one inside the test with a clock that is set by hand."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.support import warm
from tests.support.fake_host import FakeHost
from tests.support.memory_channel import MemoryChannel
from tests.support.sessions import end_all
from tests.support.waiting import until, wait_for

from atlasbridge.core.clock import ManualClock
from atlasbridge.core.daemon.parts import HubSettings
from atlasbridge.core.daemon.request import ALREADY_RUNNING, HubClient, lock_holder
from atlasbridge.core.daemon.service import ChannelPlan, Hub, HubPlan
from atlasbridge.core.home import Home
from atlasbridge.core.peer import Peer
from atlasbridge.core.prompt.model import PromptRecord, Receipt, Refusal, Reject
from atlasbridge.core.routing.policy import PolicySettings
from atlasbridge.core.routing.router import WorkerSettings
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.store.ledger import Ledger

AS_AN_ORDINARY_USER = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")  # root without what only root may
NO_WEB = "[channels.web]\nenabled = false\n"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def with_page() -> str:
    """A page whose port stays the same over restarts, as a configured one does."""
    return f"[channels.web]\nport = {free_port()}\n"


@contextmanager
def short_home() -> Iterator[Home]:
    """A home whose sockets fit into a socket address, wherever pytest keeps its folders."""
    root = Path(tempfile.mkdtemp(prefix="ab-"))
    try:
        home = Home(root / "h")
        home.prepare()
        yield home
    finally:
        end_all(home.root)  # a living session would start a new hub, or has just done so, in a folder that is gone
        shutil.rmtree(root, ignore_errors=True)


class HubProcess:
    """The product's own commands against one home."""

    def __init__(self, home: Home, config: str = NO_WEB, ordinary: bool = False, cold: bool = False) -> None:
        """`cold`: every process begins as the product's own command does, not as a fork of what has all imported."""
        self.home = home
        self._cold = cold
        self._less = AS_AN_ORDINARY_USER if ordinary and os.getuid() == 0 else ()
        home.config.write_text(config)
        home.config.chmod(0o600)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ATLASBRIDGE_")}
        self.environ = {**kept, "ATLASBRIDGE_HOME": str(home.root), "ATLASBRIDGE_SESSION_ZYGOTE": "0"}

    def cli(self, *arguments: str, given: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        plain = bool(arguments) and cwd is None and not self._cold
        if plain and warm.may_fork(arguments, self.environ):
            return warm.run_command(arguments, self.environ, given, bool(self._less))
        words = self.command(*arguments)
        return subprocess.run(words, env=self.environ, input=given, capture_output=True, text=True, cwd=cwd)

    def json(self, *arguments: str) -> Any:
        done = self.cli(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        """The same question without a new process, for waiting."""
        with HubClient(self.home) as client:
            return client.ask(op, **fields)

    def is_asked(self) -> bool:
        return bool(self.ask("prompts")["prompts"])

    def popen(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*arguments),
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def command(self, *arguments: str) -> list[str]:
        return [*self._less, sys.executable, "-m", "atlasbridge", *arguments]

    def start(self) -> None:
        if not self._cold and warm.may_fork((), self.environ):
            told = warm.start_hub(self.environ, bool(self._less))
            assert told.get("ready") or told.get("error") == ALREADY_RUNNING, told
            return
        done = self.cli("hub", "start")
        assert done.returncode == 0, done.stderr

    @property
    def pid(self) -> int:
        return lock_holder(self.home.lock) or 0

    def kill_9(self) -> None:
        pid = self.pid
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: lock_holder(self.home.lock) != pid)


@contextmanager
def hub_process(
    config: str = NO_WEB, start: bool = True, ordinary: bool = False, cold: bool = False
) -> Iterator[HubProcess]:
    with short_home() as home:
        hub = HubProcess(home, config, ordinary, cold)
        if start:
            hub.start()
        try:
            yield hub
        finally:
            if pid := hub.pid:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
                    os.kill(pid, signal.SIGCONT)  # a tool of a test can have stopped it
                wait_for(lambda: lock_holder(home.lock) != pid)


class LiveHub:
    """A hub inside the test's event loop, with memory channels one can script."""

    def __init__(self, hub: Hub, home: Home, clock: ManualClock, people: dict[str, MemoryChannel]) -> None:
        self.hub = hub
        self.home = home
        self.clock = clock
        self.people = people

    @property
    def person(self) -> MemoryChannel:
        return self.people["memory"]

    def record(self, prompt_id: str) -> PromptRecord:
        found = self.hub.hub_api.prompt(prompt_id)
        assert found is not None, f"the hub knows no prompt {prompt_id}"
        return found

    def session(self, host: FakeHost) -> SessionRecord:
        found = self.hub.ledger.session(host.session_id)
        assert found is not None, f"the hub knows no session {host.session_id}"
        return found

    async def asked(self, op: str, **fields: Any) -> dict[str, Any]:
        """What a command of this user would be answered."""
        answer = await self.hub.operations.operate({"op": op, **fields}, Peer(os.getpid(), os.getuid()))
        assert isinstance(answer, dict)
        return answer

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.hub.scheduler.run_due()

    async def event(self, name: str) -> dict[str, Any]:
        """The newest event of this name, waited for."""
        found = await until(lambda: [one for one in self.hub.stream.recent() if one["event"] == name], name)
        return found[-1]


def why(outcome: Receipt | Reject) -> Refusal:
    assert isinstance(outcome, Reject), outcome
    return outcome.reason


def stage_of(outcome: Receipt | Reject) -> str:
    assert isinstance(outcome, Receipt), outcome
    return outcome.stage


def channel_named(name: str, remote: bool = False) -> type[MemoryChannel]:
    return type(name, (MemoryChannel,), {"name": name, "remote": remote})


@asynccontextmanager
async def live_hub(
    policy: PolicySettings | None = None,
    channels: tuple[type[MemoryChannel], ...] = (MemoryChannel,),
    worker: WorkerSettings | None = None,
    **settings: Any,
) -> AsyncIterator[LiveHub]:
    with short_home() as home:
        clock = ManualClock()
        people: dict[str, MemoryChannel] = {}

        def plan_of(kind: type[MemoryChannel]) -> ChannelPlan:
            def build(hub_api: Any) -> MemoryChannel:
                people[kind.name] = kind({}, hub_api, clock)
                return people[kind.name]

            return ChannelPlan(kind.name, kind.remote, build)

        chosen = policy or PolicySettings(allowed={kind.name: None for kind in channels})
        plan = HubPlan(
            HubSettings(
                policy=chosen,
                worker=worker or WorkerSettings(call_timeout_s=0.5, first_retry_s=0.01, last_retry_s=0.05),
                **{"type_timeout_s": 5.0, "graceful_timeout_s": 0.2, **settings},
            ),
            tuple(plan_of(kind) for kind in channels),
        )
        ledger = Ledger.open(home.root, clock, "this-boot")
        hub = Hub(home, clock, ledger, lambda: plan)
        ready = asyncio.Event()
        running = asyncio.create_task(hub.run(ready.set))
        waiting = asyncio.create_task(ready.wait())
        try:
            await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED, timeout=30)
            assert ready.is_set(), running
            yield LiveHub(hub, home, clock, people)
        finally:
            waiting.cancel()
            hub.stop()
            await running
            ledger.close()
