"""Carries prompts to the channels that are to ask, and news of them afterwards.  Who is asked is policy's decision."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from atlasbridge.core.ports import Channel
from atlasbridge.core.prompt.machine import OPEN
from atlasbridge.core.prompt.model import PromptRecord
from atlasbridge.core.prompt.reply import Receipt
from atlasbridge.core.routing.courier import Courier, Errand
from atlasbridge.core.routing.policy import PolicySettings, decide_audience
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.store.ledger import Ledger
from atlasbridge.core.values import replace

LOCAL = "local"  # there even when no courier serves it: the hub's own socket
SECRET_ELSEWHERE = "A secret is asked for. It is answered at the terminal or on the page, never here."

Delivered = Callable[[PromptRecord, str], None]


class PromptRouter:
    """`on_delivered(record, channel)` is called when a channel has shown a prompt."""

    def __init__(self, ledger: Ledger, policy: PolicySettings, on_delivered: Delivered) -> None:
        self._ledger = ledger
        self.policy = policy
        self._on_delivered = on_delivered
        self._couriers: dict[str, Courier] = {}

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
        return [courier.health() for courier in self._couriers.values()]

    def route(self, record: PromptRecord, session: SessionRecord) -> PromptRecord:
        """Hand a new prompt to its audience.  Returns the record as it is afterwards."""
        known = [(courier.name, courier.remote) for courier in self._couriers.values()]
        audience = decide_audience(record.prompt, session, known, self.policy)
        for name in audience.tell:
            self._tell(name, SECRET_ELSEWHERE, session)
        return self._ask_all(list(audience.ask), record, session)

    def _ask_all(self, names: list[str], record: PromptRecord, session: SessionRecord) -> PromptRecord:
        asked = [name for name in names if self._ask(name, record, session)]
        moved = self._ledger.route_prompt(record.prompt_id) if asked else None
        return moved or record

    def reroute(self, record: PromptRecord, session: SessionRecord) -> None:
        """After a restart: ask again only where the prompt was not yet shown."""
        known = [(courier.name, courier.remote) for courier in self._couriers.values()]
        audience = decide_audience(record.prompt, session, known, self.policy)
        unasked = [name for name in audience.ask if not self._ledger.deliveries(record.prompt_id, name)]
        self._ask_all(unasked, record, session)

    def update(self, record: PromptRecord, receipt: Receipt, answered_in: str = "") -> None:
        """Edit every message that shows this prompt; `answered_in`: the others hear that it happened elsewhere."""
        elsewhere = replace(receipt, stage="answered_elsewhere")
        for name, courier in self._couriers.items():
            told = elsewhere if answered_in and name != answered_in else receipt
            courier.put(Errand(self._editing(name, record, told)))

    def notify(self, message: str, session: SessionRecord | None = None) -> None:
        for name in self._couriers:
            if session is None or session.channels is None or name in session.channels:
                self._tell(name, message, session)

    def _ask(self, name: str, record: PromptRecord, session: SessionRecord) -> bool:
        async def send(channel: Channel) -> None:
            message_id = await channel.send_prompt(record, session)
            shown = self._ledger.deliver_prompt(record.prompt_id, name, message_id)
            if shown is not None:  # otherwise it ended meanwhile; the edit that says so is next in this lane
                self._on_delivered(shown, name)

        return self._couriers[name].put(Errand(send, wanted=lambda: self._is_open(record.prompt_id)))

    def _editing(self, name: str, record: PromptRecord, receipt: Receipt) -> Callable[[Channel], Any]:
        async def edit(channel: Channel) -> None:
            for message_id in self._ledger.deliveries(record.prompt_id, name):
                await channel.update_prompt(message_id, record, receipt)

        return edit

    def _tell(self, name: str, message: str, session: SessionRecord | None) -> None:
        async def tell(channel: Channel) -> None:
            await channel.notify(message, session)

        self._couriers[name].put(Errand(tell))

    def _is_open(self, prompt_id: str) -> bool:
        record = self._ledger.prompt(prompt_id)
        return record is not None and record.state in OPEN
