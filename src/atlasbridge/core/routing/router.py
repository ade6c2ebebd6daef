"""Sends prompts to the channels that ask, and updates about them afterwards. The policy decides who is notified.

One worker runs each channel, so that a dead channel does not delay any other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from atlasbridge.core.errors import AtlasBridgeError, ConfigError, first_of
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.policy.escalation import Notification, Route, Tone, decide_tone
from atlasbridge.core.ports import Channel, HubApi
from atlasbridge.core.prompt.model import OPEN, InboundReply, PromptRecord, Receipt, Refusal, Reject
from atlasbridge.core.routing.policy import Audience, PolicySettings, decide_audience, decide_route
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.values import field, frozen, mutable, replace

log = logging.getLogger(__name__)

Answerer = Callable[[InboundReply], Awaitable[Receipt | Reject]]


@mutable
class Job:
    """A task for the channel. After a failure it is retried as long as it is `wanted`."""

    run: Callable[[Channel], Awaitable[None]]
    wanted: Callable[[], bool] = lambda: False
    attempts: int = 0
    failed: Callable[[int, str], None] = lambda attempts, why: None  # called after every failed attempt


@frozen
class WorkerSettings:
    call_timeout_s: float = 10.0
    first_retry_s: float = 1.0
    last_retry_s: float = 60.0
    outbox_limit: int = 1000


class ChannelWorker:
    """Runs one channel: builds it, restarts it, passes jobs to it one after the other, and hands on the replies."""

    def __init__(
        self,
        name: str,
        remote: bool,
        build: Callable[[], Channel],
        answer: Answerer,
        settings: WorkerSettings,
    ) -> None:
        self.name = name
        self.remote = remote
        self._build = build
        self._answer = answer
        self._settings = settings
        self._outbox: asyncio.Queue[Job] = asyncio.Queue(settings.outbox_limit)
        self._channel: Channel | None = None
        self._state = "starting"
        self._fault = ""
        self._restarts = 0
        self._task: asyncio.Task[None] | None = None
        self._answers: set[asyncio.Task[None]] = set()
        self._stopping = False

    def start(self) -> None:
        self._task = asyncio.create_task(self._supervise(), name=f"channel-{self.name}")

    async def stop(self, timeout_s: float) -> None:
        """Waits briefly for the outbox to drain, then closes the channel in any case."""
        try:
            async with asyncio.timeout(timeout_s):
                if self._state == "ok":
                    await self._outbox.join()
        except TimeoutError:
            log.warning("channel %s: messages were left unsent", self.name)
        self._stopping = True
        tasks = [task for task in (self._task, *self._answers) if task is not None]
        while pending := [task for task in tasks if not task.done()]:
            for task in pending:
                task.cancel()
            await asyncio.wait(pending, timeout=0.1)
        self._state = "closed"

    def put(self, job: Job) -> bool:
        """Returns False if the channel has been dead for so long that its outbox is full."""
        try:
            self._outbox.put_nowait(job)
        except asyncio.QueueFull:
            log.error("channel %s: outbox full, a message was dropped", self.name)
            return False
        return True

    def put_again(self, job: Job, why: str) -> None:
        if job.wanted():
            job.attempts += 1
            job.failed(job.attempts, why)
            delay_s = min(self._settings.first_retry_s * 2 ** (job.attempts - 1), self._settings.last_retry_s)
            asyncio.get_running_loop().call_later(delay_s, self.put, job)

    def health(self) -> dict[str, Any]:
        report: dict[str, Any] = {"name": self.name, "state": self._state, "waiting": self._outbox.qsize()}
        if self._fault:
            report["fault"] = self._fault
        if self._restarts:
            report["restarts"] = self._restarts
        if self._channel is not None and self._state == "ok":
            report.update(self._channel.health())
        return report

    async def _supervise(self) -> None:
        delay_s = self._settings.first_retry_s
        while True:
            began = asyncio.get_running_loop().time()
            try:
                await self._live()
            except (ConfigError, ImportError) as error:
                self._fail(error)
                log.error("channel %s cannot be used: %s", self.name, error)
                return
            except Exception as error:  # the channel boundary: no error of a channel affects anything else
                self._fail(error)
                log.exception("channel %s failed", self.name)
            if self._stopping:
                return  # before Python 3.13, a task group that fails while it is cancelled loses the cancellation
            if asyncio.get_running_loop().time() - began > self._settings.last_retry_s:
                delay_s = self._settings.first_retry_s
            self._restarts += 1
            await asyncio.sleep(delay_s)
            delay_s = min(delay_s * 2, self._settings.last_retry_s)

    def _fail(self, error: BaseException) -> None:
        self._state = "fault"
        self._fault = str(error) if isinstance(error, AtlasBridgeError) else f"{type(error).__name__}: {error}"

    async def _live(self) -> None:
        """Runs from start to failure. Both loops run until one of them raises."""
        channel = self._build()
        self._channel = channel
        try:
            async with asyncio.timeout(self._settings.call_timeout_s):
                await channel.start()
            self._state, self._fault = "ok", ""
            async with asyncio.TaskGroup() as group:
                group.create_task(self._send_loop(channel), name=f"{self.name}-outbox")
                group.create_task(self._receive_loop(channel), name=f"{self.name}-replies")
        except BaseExceptionGroup as group_error:
            raise first_of(group_error) from None
        finally:
            self._channel = None
            await self._close(channel)

    async def _close(self, channel: Channel) -> None:
        try:
            async with asyncio.timeout(self._settings.call_timeout_s):
                await channel.close()
        except Exception:  # the channel boundary: a channel that cannot close must not keep the hub from stopping
            log.exception("channel %s did not close", self.name)

    async def _send_loop(self, channel: Channel) -> None:
        while True:
            job = await self._outbox.get()
            try:
                async with asyncio.timeout(self._settings.call_timeout_s):
                    await job.run(channel)
            except TimeoutError:
                log.warning("channel %s did not take a message in time", self.name)
                self.put_again(job, "it did not take the message in time")
            except AtlasBridgeError as error:
                log.warning("channel %s: %s", self.name, error)
                self.put_again(job, str(error))
            except Exception as error:  # the channel boundary: the message is kept, then the channel restarts
                self.put_again(job, f"{type(error).__name__}: {error}")
                raise
            finally:
                self._outbox.task_done()

    async def _receive_loop(self, channel: Channel) -> None:
        while True:
            reply = await channel.receive_reply()
            task = asyncio.create_task(self._carry(channel, reply), name=f"{self.name}-reply")
            self._answers.add(task)
            task.add_done_callback(self._answers.discard)

    async def _carry(self, channel: Channel, reply: InboundReply) -> None:
        outcome: Receipt | Reject
        try:
            outcome = await self._answer(reply)
        except AtlasBridgeError as error:  # the sender must be told that nothing was accepted
            log.error("channel %s: a reply could not be taken: %s", self.name, error)
            outcome = Reject(Refusal.UNAVAILABLE, f"The hub could not accept this reply: {error}.")
        try:
            async with asyncio.timeout(self._settings.call_timeout_s):
                await channel.answer_reply(reply, outcome)
        except Exception:  # the channel boundary: the reply has taken effect, only its sender was not told
            log.exception("channel %s could not answer a sender", self.name)


# The configuration of a fleet server besides its database: channels, escalation and limits.


@frozen
class ServerChannel:
    """A channel that the server runs. `personal`: each person has a separate chat there."""

    name: str
    personal: bool
    build: Callable[[HubApi], Channel]
    key: str  # identifies its settings: if they have not changed, the channel keeps running


@frozen
class ChatPlan:
    channels: tuple[ServerChannel, ...] = ()
    policy: PolicySettings = field(default_factory=PolicySettings)  # without the people, who are in the database
    worker: WorkerSettings = field(default_factory=WorkerSettings)
    idle: tuple[str, ...] = ()  # channels without participants


ReadPlan = Callable[[Mapping[str, tuple[str, ...]]], ChatPlan]
"""From the identities that take part, by channel.  Raises ConfigError."""

# Channels that could not show a prompt: counted for `status`, and reported to the other channels once per outage.

TOLD_AFTER = 3  # attempts: a short failure is not reported
LONGEST_WHY = 120


class Unreached:
    def __init__(self) -> None:
        self._waiting: dict[str, dict[str, str]] = {}  # channel -> prompt -> why
        self._told: set[str] = set()

    def failed(self, channel: str, record: PromptRecord, attempts: int, why: str) -> str:
        """Returns the message for the other channels, or an empty string."""
        shown = escape_controls(why, keep_lines=False)[:LONGEST_WHY]
        self._waiting.setdefault(channel, {})[record.prompt_id] = shown
        if attempts < TOLD_AFTER or channel in self._told:
            return ""
        self._told.add(channel)
        return f"AtlasBridge could not show a question in {channel}: {shown}. It tries again; you can also answer here."

    def reached(self, channel: str, prompt_id: str) -> None:
        """The channel works again, so the next outage will be reported."""
        self._waiting.pop(channel, None)
        self._told.discard(channel)

    def gave_up(self, channel: str, prompt_id: str) -> None:
        """The prompt ended before it could be shown."""
        self._waiting.get(channel, {}).pop(prompt_id, None)

    def report(self, channel: str) -> dict[str, Any]:
        waiting = self._waiting.get(channel)
        return {"unreached": len(waiting), "why": next(reversed(waiting.values()))} if waiting else {}


LOCAL = "local"  # exists even without a channel worker: the hub's own socket
SECRET_ELSEWHERE = "A secret is asked for. It is answered at the terminal or on the page, never here."
REMINDER = Receipt("reminder", "Still waiting for an answer.")


class DeliveryStore(Protocol):
    """Stores which prompt was shown in which message: a hub's ledger, or the tables of a fleet server."""

    def prompt(self, prompt_id: str, /) -> PromptRecord | None: ...
    def deliveries(self, prompt_id: str, channel: str, /) -> list[str]: ...
    def when_durable(self, consequence: Callable[[], object], /) -> None: ...
    def record_shown(self, prompt_id: str, channel: str, message_id: str, /) -> asyncio.Future[None]: ...


class PromptRouter:
    def __init__(self, store: DeliveryStore, policy: PolicySettings) -> None:
        self._store = store
        self.policy = policy
        self._recording: dict[tuple[str, str], asyncio.Future[None]] = {}  # by prompt and channel
        self._workers: dict[str, ChannelWorker] = {}
        self._tones: dict[str, dict[str, Tone]] = {}  # by prompt and channel
        self._unreached = Unreached()

    def add(self, worker: ChannelWorker) -> None:
        self._workers[worker.name] = worker

    def start(self) -> None:
        for worker in self._workers.values():
            worker.start()

    async def stop(self, timeout_s: float) -> None:
        await asyncio.gather(*(worker.stop(timeout_s) for worker in self._workers.values()))
        self._workers.clear()

    def remote(self, channel: str) -> bool:
        """Whether text in this channel leaves the machine; an unknown channel is assumed to be remote."""
        worker = self._workers.get(channel)
        return channel != LOCAL if worker is None else worker.remote

    def health(self) -> list[dict[str, Any]]:
        return [worker.health() | self._unreached.report(worker.name) for worker in self._workers.values()]

    def _audience(self, record: PromptRecord, session: SessionRecord) -> Audience:
        known = [(worker.name, worker.remote) for worker in self._workers.values()]
        return decide_audience(record.prompt, session, known, self.policy)

    def routes(self, record: PromptRecord, session: SessionRecord) -> tuple[Route, ...]:
        """The channels that are allowed to carry this prompt."""
        return tuple(
            decide_route(name, self._workers[name].remote, self.policy) for name in self._audience(record, session).ask
        )

    def mention(self, record: PromptRecord, session: SessionRecord) -> None:
        """Tells the channels that must not carry the prompt that something waits."""
        for name in self._audience(record, session).tell:
            self._tell(name, SECRET_ELSEWHERE, session)

    def send(self, notification: Notification, record: PromptRecord, session: SessionRecord) -> None:
        """Asks or reminds in one channel, as the escalation policy decided."""
        name = notification.channel
        if name not in self._workers:
            return
        identities = self.policy.allowed.get(name) or ()
        self._tones.setdefault(record.prompt_id, {})[name] = decide_tone(
            notification, identities, self.policy.attention.people
        )
        if notification.reminder:
            self.put(name, Job(self.editing(name, record, REMINDER, while_open=True)))
        else:
            self._ask(name, record, session)

    def tone(self, prompt_id: str, channel: str) -> Tone:
        """How this channel shows the prompt: to whom, and for whom without a sound."""
        return self._tones.get(prompt_id, {}).get(channel, Tone())

    def forget(self, prompt_id: str) -> None:
        """The prompt has ended: its tones are no longer needed."""
        self._tones.pop(prompt_id, None)

    def update(self, record: PromptRecord, receipt: Receipt, answered_in: str = "") -> None:
        """Edits every message that shows this prompt. Channels other than `answered_in` say that it was answered
        elsewhere."""
        elsewhere = replace(receipt, stage="answered_elsewhere")
        for name in self._workers:
            told = elsewhere if answered_in and name != answered_in else receipt
            self.put(name, Job(self.editing(name, record, told)))

    def notify(self, message: str, session: SessionRecord | None = None, but: str = "") -> None:
        """Sends a message to every channel except `but`."""
        for name in self._workers:
            if name != but and (session is None or session.channels is None or name in session.channels):
                self._tell(name, message, session)

    def tell(self, channel: str, message: str, session: SessionRecord | None = None) -> None:
        """Sends a message to one channel, if it is running."""
        if channel in self._workers:
            self._tell(channel, message, session)

    def digest(self, channel: str, key: str, text: str, loud: bool) -> None:
        """Shows one message for several prompts and edits it afterwards. A channel that cannot edit skips it."""

        async def tell(target: Channel) -> None:
            await target.tell_digest(key, text, loud)

        if channel in self._workers:
            self.put(channel, Job(tell))

    def put(self, name: str, job: Job) -> None:
        """Queues the job once the store has written the related changes to disk; the channel can be gone by then."""
        worker = self._workers[name]
        self._store.when_durable(lambda: worker.put(job))

    def _ask(self, name: str, record: PromptRecord, session: SessionRecord) -> None:
        async def send(channel: Channel) -> None:
            if not wanted():
                return  # it was settled while this job waited in the queue
            message_id = await channel.send_prompt(record, session)
            self._unreached.reached(name, record.prompt_id)
            self._record_shown(name, record.prompt_id, message_id, job)

        def wanted() -> bool:
            if self._is_open(record.prompt_id):
                return True
            self._unreached.gave_up(name, record.prompt_id)
            return False

        def failed(attempts: int, why: str) -> None:
            if sentence := self._unreached.failed(name, record, attempts, why):
                self.notify(sentence, but=name)

        job = Job(send, wanted=wanted, failed=failed)
        self.put(name, job)

    def _record_shown(self, name: str, prompt_id: str, message_id: str, job: Job) -> None:
        """Records the delivery. If it cannot be recorded, the prompt is sent again."""
        worker, key = self._workers[name], (prompt_id, name)

        def recorded(done: asyncio.Future[None]) -> None:
            if self._recording.get(key) is done:
                del self._recording[key]
            fault = None if done.cancelled() else done.exception()
            if isinstance(fault, AtlasBridgeError):
                worker.put_again(job, str(fault))
            elif fault is not None:
                raise fault

        self._recording[key] = self._store.record_shown(prompt_id, name, message_id)
        self._recording[key].add_done_callback(recorded)

    def just_shown(self, prompt_id: str) -> frozenset[str]:
        """The channels that have shown the prompt, where the store does not know it yet."""
        return frozenset(name for known, name in self._recording if known == prompt_id)

    def editing(
        self, name: str, record: PromptRecord, receipt: Receipt, while_open: bool = False
    ) -> Callable[[Channel], Any]:
        async def edit(channel: Channel) -> None:
            if (recording := self._recording.get((record.prompt_id, name))) is not None:
                await asyncio.wait([recording])
            if while_open and not self._is_open(record.prompt_id):
                return  # it was settled while this job waited in the queue
            for message_id in self._store.deliveries(record.prompt_id, name):
                await channel.update_prompt(message_id, record, receipt)

        return edit

    def _tell(self, name: str, message: str, session: SessionRecord | None) -> None:
        async def tell(channel: Channel) -> None:
            await channel.notify(message, session)

        self.put(name, Job(tell))

    def _is_open(self, prompt_id: str) -> bool:
        record = self._store.prompt(prompt_id)
        return record is not None and record.state in OPEN
