"""The hub's life cycle: builds, starts, serves and stops all its parts, in this order and its reverse."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from typing import Any

from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.clock import Clock
from atlasbridge.core.daemon.audit_heads import AuditHeads
from atlasbridge.core.daemon.escalation import CHANNEL
from atlasbridge.core.daemon.hub_api import LocalHubApi
from atlasbridge.core.daemon.operations import Operations
from atlasbridge.core.daemon.parts import EventStream, HostBook, HubParts, HubSettings, Rounds, StoreAlarm
from atlasbridge.core.daemon.prompts import PromptLife
from atlasbridge.core.daemon.receipts import RefusalLog
from atlasbridge.core.daemon.remote_launch import Launcher
from atlasbridge.core.daemon.remote_questions import RemoteQuestions
from atlasbridge.core.daemon.replies import ReplyService
from atlasbridge.core.daemon.rules import HubRules, RuleDigest, RuleOperations, RuleService
from atlasbridge.core.daemon.scheduled_answers import InstructionQueue, ScheduledAnswers
from atlasbridge.core.daemon.server import HubServer, make_listener
from atlasbridge.core.daemon.session_processes import CallerCheck
from atlasbridge.core.daemon.sessions import SessionLife
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.home import Home
from atlasbridge.core.peer import started_at
from atlasbridge.core.ports import Channel, HubApi
from atlasbridge.core.prompt.model import PromptRecord
from atlasbridge.core.routing.router import ChannelWorker, PromptRouter
from atlasbridge.core.scheduler.service import Scheduler
from atlasbridge.core.session.settings import SETTINGS_SUFFIX
from atlasbridge.core.store.ledger import Ledger
from atlasbridge.core.values import field, frozen

# How the hub is told from outside to stop or to reload its configuration, with and without POSIX signals.

_STOP = ("SIGTERM", "SIGINT", "SIGBREAK")  # Windows sends SIGBREAK to a process group of its own
_RELOAD = ("SIGHUP",)


class SignalWatch:
    """Handles signals until `close`. Signals that the system does not have are skipped."""

    def __init__(self, loop: asyncio.AbstractEventLoop, stop: Callable[[], None], reload: Callable[[], None]) -> None:
        self._loop = loop
        self._before: dict[int, Any] = {}
        wanted = [(name, stop) for name in _STOP] + [(name, reload) for name in _RELOAD]
        self._calls = {int(getattr(signal, name)): call for name, call in wanted if hasattr(signal, name)}
        for number, call in self._calls.items():
            try:
                loop.add_signal_handler(number, call)
            except NotImplementedError:  # event loops on Windows
                self._before[number] = signal.signal(number, self._noted)

    def _noted(self, number: int, frame: object) -> None:
        self._loop.call_soon_threadsafe(self._calls[number])

    def close(self) -> None:
        for number in self._calls:
            if number in self._before:
                signal.signal(number, self._before[number])
            else:
                self._loop.remove_signal_handler(number)


log = logging.getLogger(__name__)

ALARM_RETRY_S = 5.0
SOCKET_LOOK_S = 5.0
PARSER_S = 0.2  # after a verdict, when the answer has been sent


@frozen
class ChannelPlan:
    name: str
    remote: bool
    build: Callable[[HubApi], Channel]


@frozen
class HubPlan:
    settings: HubSettings
    channels: tuple[ChannelPlan, ...]
    launchers: tuple[Launcher, ...] = ()
    rules: HubRules = field(default_factory=HubRules)


class Deliveries:
    """Stores the router's deliveries in the ledger. `on_delivered(record, channel)` is called when a prompt has been
    shown."""

    def __init__(self, ledger: Ledger, rounds: Rounds, on_delivered: Callable[[PromptRecord, str], None]) -> None:
        self._ledger, self._rounds, self._on_delivered = ledger, rounds, on_delivered
        self.prompt, self.deliveries, self.when_durable = ledger.prompt, ledger.deliveries, ledger.when_durable

    def record_shown(self, prompt_id: str, channel: str, message_id: str) -> asyncio.Future[None]:
        """Records the delivery in the next round, so that deliveries do not wait for one another."""

        def shown() -> None:
            record = self._ledger.deliver_prompt(prompt_id, channel, message_id)
            if record is not None:  # otherwise the prompt has ended; the edit about that is next for this channel
                self._on_delivered(record, channel)

        return self._rounds.start(shown)


class Hub:
    """`plan` is called at the start and at every reload. It raises ConfigError if the configuration is invalid."""

    def __init__(self, home: Home, clock: Clock, ledger: Ledger, plan: Callable[[], HubPlan]) -> None:
        self._home = home
        self._read_plan = plan
        self._plan = plan()
        settings = self._plan.settings
        self.ledger = ledger
        self.clock = clock
        self.rounds = Rounds(ledger)
        self.stream = EventStream(clock, ledger.when_durable)
        self.hosts = HostBook(ledger.when_durable)
        self.scheduler = Scheduler(clock)
        self.router = PromptRouter(
            Deliveries(ledger, self.rounds, lambda record, name: self.life.delivered(record, name)), settings.policy
        )
        self.rules = RuleService(ledger, self.router, clock.now, self._plan.rules)
        self.rules.later = lambda call: self.scheduler.set("parser", clock.now() + PARSER_S, call)
        parts = HubParts(ledger, clock, self.stream, self.hosts, self.router, self.scheduler, self.rules, self.rounds)
        self.life = PromptLife(parts)
        self.digest = RuleDigest(parts)
        self.heads = AuditHeads(home.root, ledger, clock, self.scheduler, self.router)
        refusals = RefusalLog(ledger, clock, self.scheduler)
        self.replies = ReplyService(parts, self.life, settings, refusals)
        self.sessions = SessionLife(parts, self.life, settings)
        self.later = ScheduledAnswers(parts, self.life, self.replies)
        self.queue = InstructionQueue(parts, self.life, self.replies)
        self.sessions.on_end = self.queue.session_ended
        self.replies.person_of = self._person_of
        self.replies.passkeys.on_signed = lambda: ledger.when_durable(self.heads.send)
        self.caller_check = CallerCheck(
            parts, refusals, guests=lambda: self._plan.settings.guests, members=lambda: self._plan.settings.members
        )
        self.hub_api = LocalHubApi(
            home,
            parts,
            settings,
            self.life,
            self.later,
            self.queue,
            self.caller_check,
            RemoteQuestions(parts, self.sessions),
            self.replies.passkeys,
            lambda: self.rules.use(self._read_plan().rules),
        )
        ledger.use_names(self.hub_api.name_of)
        self.rule_operations = RuleOperations(parts, self.life.answer_by_rule)
        self.operations = Operations(
            self.hub_api,
            self.caller_check,
            self._plan.launchers,
            self.replies,
            self.request_reload,
            self.stop_once,
            self.rule_operations,
            self.later,
            self.queue,
            self.sessions.unasked.recent,
        )
        self.hub_api.perform = self.operations.perform
        listener = make_listener(
            home.socket, settings.transport, lambda: self._plan.settings.guests, self.caller_check.peer_of
        )
        self.server = HubServer(listener, self.sessions, self.operations.operate, self.caller_check, self.rounds)
        ledger.watch_alarm(StoreAlarm(self.stream, self.router, clock, self._look_soon).changed)
        self._stopping = asyncio.Event()
        self._reload_wanted = asyncio.Event()
        self._checked: HubPlan | None = None

    async def run(self, on_ready: Callable[[], None]) -> None:
        """Runs until a signal or `stop`. A second signal ends it at once."""
        loop = asyncio.get_running_loop()
        signals = SignalWatch(loop, self.stop, self._reload_wanted.set)
        try:
            await self._start()
            on_ready()
            self.router.start()  # started last, because a channel can take time to import and connect
            await self._serve()
        finally:
            await self._stop()
            signals.close()

    def _person_of(self, identity: str) -> str:
        """The name of the person behind an identity, so that a person with two devices counts once; "" if nobody is
        named for it. A fleet server identifies its people by name itself."""
        person = self.router.policy.attention.people.find(identity)
        if person is not None:
            return person.name
        hub_api, _, name = identity.partition(":")
        return name if hub_api == CHANNEL else ""

    def stop(self) -> None:
        if self._stopping.is_set():
            raise SystemExit(1)
        self._stopping.set()

    def stop_once(self) -> None:
        """Stops on a command's request, which can be repeated."""
        self._stopping.set()

    async def _start(self) -> None:
        own = {"pid": os.getpid(), "started": started_at(os.getpid())}
        self.ledger.note(AuditEvent.HUB_START, **own, **self.heads.noted_files())
        self._add_channels()
        self.sessions.recover()
        self.later.recover()
        self._schedule_upkeep()
        self.digest.look()
        self.rules.get_ready()
        self.heads.chats = self._plan.settings.heads_to
        self.heads.compare_rules(self._plan.rules)
        self.heads.start()
        await self.server.start()
        log.info("the hub listens")

    async def _serve(self) -> None:
        ticking = asyncio.create_task(self.scheduler.run(), name="scheduler")
        reloading = asyncio.create_task(self._reload_loop(), name="reload")
        guarding = asyncio.create_task(self._guard_socket(), name="socket")
        stopping = asyncio.create_task(self._stopping.wait(), name="stop")
        tasks = {ticking, reloading, stopping, guarding}
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _guard_socket(self) -> None:
        """Restores our socket if it was removed or replaced. We have the lock, so no other hub can listen here. Clients
        would not trust a false socket, but they could not find us either."""
        while True:
            await asyncio.sleep(SOCKET_LOOK_S)
            if not self.server.is_reachable and not self._stopping.is_set():
                await self.server.listen_again()
                log.warning("something else was in the place of the hub's socket; the hub listens again")
                self.ledger.note(AuditEvent.SOCKET_TAKEN)
                self.router.notify("Another program took the place of the hub's socket. The hub has it back.")

    async def _stop(self) -> None:
        log.info("the hub ends")
        timeout_s = self._plan.settings.graceful_timeout_s
        for link in self.hosts.all():
            link.send("goodbye")
        await self.server.stop()
        self.rounds.finish()
        await self.later.close()
        await self.queue.close()
        await self.router.stop(timeout_s)
        self.rounds.finish()
        self.stream.close()
        self.hosts.close()
        self.replies.close()
        self.rules.close()
        self.ledger.note(AuditEvent.HUB_STOP)
        self.heads.send()

    def request_reload(self) -> None:
        """For a command that reports configuration errors at once."""
        self._checked = self._read_plan()  # this configuration is applied, even if the files change in the meantime
        self._reload_wanted.set()

    async def _reload_loop(self) -> None:
        while True:
            await self._reload_wanted.wait()
            self._reload_wanted.clear()
            checked, self._checked = self._checked, None
            try:
                plan = checked or self._read_plan()
            except AtlasBridgeError as error:
                log.error("the configuration was not reloaded: %s (%s)", error, error.hint)
                continue
            await self._apply(plan)

    async def _apply(self, plan: HubPlan) -> None:
        await self.router.stop(self._plan.settings.graceful_timeout_s)
        self.rounds.finish()
        self._plan = plan
        self.router.policy = plan.settings.policy
        self.replies.settings = self.sessions.settings = self.hub_api.settings = plan.settings
        self.operations.use_launchers(plan.launchers)
        self.rules.use(plan.rules)
        self.rules.get_ready()
        self.hub_api.drop_work_of_removed_people()
        self._add_channels()
        self.router.start()
        for record in self.ledger.open_prompts():
            session = self.ledger.session(record.session_id)
            if session is not None:
                self.life.watch_again(record, session)
        self.ledger.note(AuditEvent.CONFIG_RELOADED, **self.heads.noted_files())
        self.heads.chats = plan.settings.heads_to
        self.heads.compare_rules(plan.rules)
        log.info("the configuration was reloaded")

    def _add_channels(self) -> None:
        if not any(channel.name == CHANNEL for channel in self._plan.channels):
            self.ledger.membership.end()  # otherwise changes would be collected that nobody fetches
        for channel in self._plan.channels:
            build = channel.build
            self.router.add(
                ChannelWorker(
                    channel.name,
                    channel.remote,
                    lambda build=build: build(self.hub_api),  # type: ignore[misc]
                    self.replies.reply,
                    self._plan.settings.worker,
                )
            )

    def _remove_old_logs(self, before: float) -> None:
        living = {session.session_id[:8] for session in self.ledger.sessions()}
        for path in (*self._home.sessions.glob("*.log"), *self._home.sessions.glob(f"*{SETTINGS_SUFFIX}")):
            if path.stem not in living and path.stat().st_mtime < before:
                path.unlink(missing_ok=True)

    def _schedule_upkeep(self) -> None:
        """Deletes old rows, and retries an audit file that could not be written."""
        settings = self._plan.settings
        keep = settings.retention
        self.ledger.cleanup(prompts_s=keep.prompts_s, sessions_s=keep.sessions_s, inbox_s=keep.inbox_s)
        self._remove_old_logs(self.clock.wall() - keep.session_logs_s)
        if self.ledger.alarm:
            self.ledger.flush()
        if self.ledger.alarm:
            self._look_soon()
        else:
            self.scheduler.set("upkeep", self.clock.now() + settings.cleanup_every_s, self._schedule_upkeep)

    def _look_soon(self) -> None:
        """The store has a problem: retries until it is solved."""
        self.scheduler.set("upkeep", self.clock.now() + ALARM_RETRY_S, self._schedule_upkeep)
