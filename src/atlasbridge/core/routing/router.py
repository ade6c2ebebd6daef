"""Carries prompts to the channels that are to ask, and news of them afterwards.  Who is asked is policy's decision."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.policy.attention import Tone, decide_tone
from atlasbridge.core.policy.ladder import Outlet, Telling
from atlasbridge.core.ports import Channel
from atlasbridge.core.prompt.machine import OPEN
from atlasbridge.core.prompt.model import PromptRecord
from atlasbridge.core.prompt.reply import Receipt
from atlasbridge.core.routing.courier import Courier, Errand
from atlasbridge.core.routing.policy import Audience, PolicySettings, decide_audience, decide_lane
from atlasbridge.core.routing.unreached import Unreached
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.store.ledger import Ledger
from atlasbridge.core.store.rounds import Rounds
from atlasbridge.core.values import replace

LOCAL = "local"  # there even when no courier serves it: the hub's own socket
SECRET_ELSEWHERE = "A secret is asked for. It is answered at the terminal or on the page, never here."
REMINDER = Receipt("reminder", "Still waiting for an answer.")

Delivered = Callable[[PromptRecord, str], None]


class PromptRouter:
    """`on_delivered(record, channel)` is called when a channel has shown a prompt."""

    def __init__(self, ledger: Ledger, policy: PolicySettings, rounds: Rounds, on_delivered: Delivered) -> None:
        self._ledger = ledger
        self.policy = policy
        self._rounds = rounds
        self._recording: dict[tuple[str, str], asyncio.Future[None]] = {}  # by prompt and channel
        self._on_delivered = on_delivered
        self._couriers: dict[str, Courier] = {}
        self._tones: dict[str, dict[str, Tone]] = {}  # by prompt and channel
        self._unreached = Unreached()

    def add(self, courier: Courier) -> None:
        self._couriers[courier.name] = courier

    def start(self) -> None:
        for courier in self._couriers.values():
            courier.start()

    async def stop(self, timeout_s: float) -> None:
        await asyncio.gather(*(courier.stop(timeout_s) for courier in self._couriers.values()))
        self._couriers.clear()

    def remote(self, channel: str) -> bool:
        """Whether text in this channel leaves the machine; a channel we do not know is taken to be remote."""
        courier = self._couriers.get(channel)
        return channel != LOCAL if courier is None else courier.remote

    def health(self) -> list[dict[str, Any]]:
        return [courier.health() | self._unreached.report(courier.name) for courier in self._couriers.values()]

    def _audience(self, record: PromptRecord, session: SessionRecord) -> Audience:
        known = [(courier.name, courier.remote) for courier in self._couriers.values()]
        return decide_audience(record.prompt, session, known, self.policy)

    def lanes(self, record: PromptRecord, session: SessionRecord) -> tuple[Outlet, ...]:
        """The channels that may carry this prompt."""
        return tuple(
            decide_lane(name, self._couriers[name].remote, self.policy) for name in self._audience(record, session).ask
        )

    def mention(self, record: PromptRecord, session: SessionRecord) -> None:
        """Tell those who may not carry it that something waits."""
        for name in self._audience(record, session).tell:
            self._tell(name, SECRET_ELSEWHERE, session)

    def send(self, telling: Telling, record: PromptRecord, session: SessionRecord) -> None:
        """Ask, or remind, in one channel, as the ladder says."""
        name = telling.channel
        if name not in self._couriers:
            return
        identities = self.policy.allowed.get(name) or ()
        self._tones.setdefault(record.prompt_id, {})[name] = decide_tone(
            telling, identities, self.policy.attention.people
        )
        if telling.reminder:
            self._put(name, Errand(self._editing(name, record, REMINDER, while_open=True)))
        else:
            self._ask(name, record, session)

    def tone(self, prompt_id: str, channel: str) -> Tone:
        """How this channel is to show that prompt."""
        return self._tones.get(prompt_id, {}).get(channel, Tone())

    def forget(self, prompt_id: str) -> None:
        """It has ended: nobody is told how to show it any more."""
        self._tones.pop(prompt_id, None)

    def update(self, record: PromptRecord, receipt: Receipt, answered_in: str = "") -> None:
        """Edit every message that shows this prompt; `answered_in`: the others hear that it happened elsewhere."""
        elsewhere = replace(receipt, stage="answered_elsewhere")
        for name in self._couriers:
            told = elsewhere if answered_in and name != answered_in else receipt
            self._put(name, Errand(self._editing(name, record, told)))

    def notify(self, message: str, session: SessionRecord | None = None, but: str = "") -> None:
        """Tell every channel but that one."""
        for name in self._couriers:
            if name != but and (session is None or session.channels is None or name in session.channels):
                self._tell(name, message, session)

    def digest(self, channel: str, key: str, text: str, loud: bool) -> None:
        """One message for many: shown first, edited afterwards.  A channel that cannot edit is spared it."""

        async def tell(target: Channel) -> None:
            await target.tell_digest(key, text, loud)

        if channel in self._couriers:
            self._put(channel, Errand(tell))

    def _put(self, name: str, errand: Errand) -> None:
        """Once the store has on disk what it is about; a channel may have gone by then."""
        courier = self._couriers[name]
        self._ledger.when_durable(lambda: courier.put(errand))

    def _ask(self, name: str, record: PromptRecord, session: SessionRecord) -> None:
        async def send(channel: Channel) -> None:
            message_id = await channel.send_prompt(record, session)
            self._unreached.reached(name, record.prompt_id)
            self._record_shown(name, record.prompt_id, message_id, errand)

        def wanted() -> bool:
            if self._is_open(record.prompt_id):
                return True
            self._unreached.gave_up(name, record.prompt_id)
            return False

        def failed(attempts: int, why: str) -> None:
            if sentence := self._unreached.failed(name, record, attempts, why):
                self.notify(sentence, but=name)

        errand = Errand(send, wanted=wanted, failed=failed)
        self._put(name, errand)

    def _record_shown(self, name: str, prompt_id: str, message_id: str, errand: Errand) -> None:
        """With the next round, so that many do not wait for one another.  What cannot be recorded is sent again."""
        courier, key = self._couriers[name], (prompt_id, name)

        def shown() -> None:
            record = self._ledger.deliver_prompt(prompt_id, name, message_id)
            if record is not None:  # otherwise it ended meanwhile; the edit that says so is next in this lane
                self._on_delivered(record, name)

        def recorded(done: asyncio.Future[None]) -> None:
            if self._recording.get(key) is done:
                del self._recording[key]
            fault = None if done.cancelled() else done.exception()
            if isinstance(fault, AtlasBridgeError):
                courier.put_again(errand, str(fault))
            elif fault is not None:
                raise fault

        self._recording[key] = self._rounds.start(shown)
        self._recording[key].add_done_callback(recorded)

    def just_shown(self, prompt_id: str) -> frozenset[str]:
        """The channels that have shown it, and of which the store does not know that yet."""
        return frozenset(name for known, name in self._recording if known == prompt_id)

    def _editing(
        self, name: str, record: PromptRecord, receipt: Receipt, while_open: bool = False
    ) -> Callable[[Channel], Any]:
        async def edit(channel: Channel) -> None:
            if (recording := self._recording.get((record.prompt_id, name))) is not None:
                await asyncio.wait([recording])
            if while_open and not self._is_open(record.prompt_id):
                return  # it was settled while this waited for its turn
            for message_id in self._ledger.deliveries(record.prompt_id, name):
                await channel.update_prompt(message_id, record, receipt)

        return edit

    def _tell(self, name: str, message: str, session: SessionRecord | None) -> None:
        async def tell(channel: Channel) -> None:
            await channel.notify(message, session)

        self._put(name, Errand(tell))

    def _is_open(self, prompt_id: str) -> bool:
        record = self._ledger.prompt(prompt_id)
        return record is not None and record.state in OPEN
