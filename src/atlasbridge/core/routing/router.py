"""Sends prompts to the channels that ask, and updates about them afterwards. The policy decides who is notified."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.policy.escalation import Notification, Route, Tone, decide_tone
from atlasbridge.core.ports import Channel
from atlasbridge.core.prompt.model import OPEN, PromptRecord, Receipt
from atlasbridge.core.routing.channel_worker import ChannelWorker, Job
from atlasbridge.core.routing.policy import Audience, PolicySettings, decide_audience, decide_chat_route
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.values import replace

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
        return f"A question could not be shown in {channel}: {shown}. It is tried again, and it waits for you here."

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

    def chat_routes(self, record: PromptRecord, session: SessionRecord) -> tuple[Route, ...]:
        """The channels that are allowed to carry this prompt."""
        return tuple(
            decide_chat_route(name, self._workers[name].remote, self.policy)
            for name in self._audience(record, session).ask
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
