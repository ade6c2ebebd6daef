"""Runs one channel: its outbox, its reply loop and its restarts. A dead channel does not delay any other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from atlasbridge.core.errors import AtlasBridgeError, ConfigError
from atlasbridge.core.ports import Channel, HubApi
from atlasbridge.core.prompt.model import InboundReply, Receipt, Refusal, Reject
from atlasbridge.core.routing.policy import PolicySettings
from atlasbridge.core.values import field, frozen, mutable

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
    """Builds its channel, keeps it running, and passes jobs to it one after the other."""

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
            raise _first(group_error) from None
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
            outcome = Reject(Refusal.UNAVAILABLE, f"The hub could not take this reply: {error}.")
        try:
            async with asyncio.timeout(self._settings.call_timeout_s):
                await channel.answer_reply(reply, outcome)
        except Exception:  # the channel boundary: the reply has taken effect, only its sender was not told
            log.exception("channel %s could not answer a sender", self.name)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


# The configuration of a fleet server besides its database: channels, escalation and limits.


@frozen
class ChatRoute:
    """A channel that the server runs. `personal`: each person has a separate chat there."""

    name: str
    personal: bool
    build: Callable[[HubApi], Channel]
    key: str  # identifies its settings: if they have not changed, the channel keeps running


@frozen
class ChatPlan:
    chat_routes: tuple[ChatRoute, ...] = ()
    policy: PolicySettings = field(default_factory=PolicySettings)  # without the people, who are in the database
    worker: WorkerSettings = field(default_factory=WorkerSettings)
    idle: tuple[str, ...] = ()  # channels without participants


ReadPlan = Callable[[Mapping[str, tuple[str, ...]]], ChatPlan]
"""From the identities that take part, by channel.  Raises ConfigError."""
