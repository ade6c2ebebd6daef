"""A hostile Telegram and Slack for a long time: `python -m tests.torture soak_channels [--updates N] [--seed N]`.

Duplicates, reordering, cuts, 5xx, floods, slow answers, disconnects and restarts of the channel, while people tap and
write.  In the end every prompt was answered exactly once, and nothing that was sent is missing.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Protocol

from atlasbridge.channels.base import BaseChannel
from atlasbridge.channels.delivery import parse_places
from atlasbridge.channels.slack.channel import SlackChannel
from atlasbridge.channels.telegram.channel import TelegramChannel
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.errors import ChannelError
from atlasbridge.core.prompt.model import PromptRecord
from tests.channels import prompts
from tests.channels.conftest import slack_settings, telegram_settings
from tests.channels.mini_hub import MiniHub
from tests.support.fake_server import FakeServer, FaultKind
from tests.support.fake_slack import Envelope, FakeSlack
from tests.support.fake_telegram import FakeTelegram

ADA = 1001
ROUND = 1000  # updates between two restarts of the channel
WAVE = 25  # prompts open at once
DEADLINE_S = 120.0
QUICK: dict[str, Any] = {"replies_per_minute": 10_000_000, "backoff_first_s": 0.002, "messages_per_s": 1e6}
FAULTS: list[tuple[FaultKind, dict[str, Any]]] = [
    ("status", {"status": 502}),
    ("garbage", {}),
    ("cut_before", {}),
    ("cut_after", {}),
    ("slow", {"seconds": 0.05}),
    ("status", {"status": 429, "description": "Too Many Requests: retry after 0", "retry_after": 0}),
]
Action = Callable[[], object]
BUTTON = re.compile(r"ans:([0-9a-f]{8})")


@dataclass(slots=True)
class Tally:
    """What was tried, and what was found wrong."""

    tried: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


async def wait(look: Callable[[], object], what: str, tally: Tally) -> None:
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not look():
                await asyncio.sleep(0.005)
    except TimeoutError:
        tally.wrong.append(f"never happened: {what}")


async def ask(hub: MiniHub, channel: BaseChannel, record: PromptRecord, tally: Tally) -> None:
    """As the hub does: again and again while it fails."""
    for _ in range(200):
        try:
            await hub.ask(channel, record)
        except ChannelError:
            tally.tried["sends that failed and were repeated"] += 1
        else:
            return
    tally.wrong.append("a prompt could not be sent in 200 tries")


class World(Protocol):
    """A service and its person."""

    name: str
    random: Random

    @property
    def server(self) -> FakeServer: ...
    def build(self, hub: MiniHub) -> BaseChannel: ...
    def break_something(self, tally: Tally) -> None: ...
    def answers(self, records: list[PromptRecord], tally: Tally) -> list[Action]:
        """What people do about these prompts; each action is one update."""

    def persist(self, records: list[PromptRecord], hub: MiniHub, tally: Tally) -> None: ...
    def shows_outcome(self, record: PromptRecord, hub: MiniHub) -> bool: ...
    def is_drained(self) -> bool: ...
    def forget(self) -> None: ...


class TelegramSoak:
    name = "telegram"

    def __init__(self, random: Random) -> None:
        self.random = random
        self.server = FakeTelegram(seed=random.randrange(1 << 30))
        self.server.duplicate_share, self.server.reorder_share = 0.3, 0.3
        self.person = self.server.person(ADA)

    def build(self, hub: MiniHub) -> BaseChannel:
        return TelegramChannel(telegram_settings(self.server, **QUICK), hub, SystemClock())

    def break_something(self, tally: Tally) -> None:
        method = self.random.choice(["getUpdates", "sendMessage", "editMessageText", "answerCallbackQuery"])
        plan_fault(self.server, method, self.random, tally)

    def answers(self, records: list[PromptRecord], tally: Tally) -> list[Action]:
        """Some taps, perhaps more than one for a prompt, and a forged one for each."""
        shown = group_by_prompt(self.server.chats[ADA].messages, records)
        actions: list[Action] = []
        for record in records:
            for _ in range(self.random.choice((1, 1, 2, 5))):
                message, label = self.random.choice(shown[record.prompt_id]), self.random.choice(("Yes", "No"))
                actions.append(partial(self.person.tap, message, label))
                tally.tried["taps"] += 1
            forged = f"ans:{record.prompt_id[:8]}:{record.session_id[:8]}:{'0' * 16}:y"
            actions.append(partial(self.person.tap_data, shown[record.prompt_id][0], forged))
            tally.tried["forged taps"] += 1
        return actions

    def persist(self, records: list[PromptRecord], hub: MiniHub, tally: Tally) -> None:
        """A tap waits on the server: nobody needs to tap again."""

    def shows_outcome(self, record: PromptRecord, hub: MiniHub) -> bool:
        return any(
            "reply_markup" not in self.server.chats[ADA].messages[int(message)]
            for places in hub.deliveries(record.prompt_id, self.name)
            for _, message, _ in parse_places(places)
        )

    def is_drained(self) -> bool:
        return self.server.unconfirmed() == 0

    def forget(self) -> None:
        """Keep the fake small: old messages and calls are of no interest."""
        self.server.calls.clear()
        self.server.taps.clear()
        self.server.confirmed.clear()
        self.server.chats[ADA].messages.clear()


class SlackSoak:
    name = "slack"

    def __init__(self, random: Random) -> None:
        self.random = random
        self.server = FakeSlack(ack_s=10.0)
        self.person = self.server.person("U0ADA")
        self.clicks: dict[str, Envelope] = {}

    def build(self, hub: MiniHub) -> BaseChannel:
        return SlackChannel(slack_settings(self.server, **QUICK), hub, SystemClock())

    def break_something(self, tally: Tally) -> None:
        if self.random.random() < 0.1:
            self.random.choice((self.server.cut_sockets, self.server.disconnect))()
            tally.tried["sockets cut or sent away"] += 1
        else:
            method = self.random.choice(["chat.postMessage", "chat.update", "apps.connections.open"])
            plan_fault(self.server, method, self.random, tally)

    def answers(self, records: list[PromptRecord], tally: Tally) -> list[Action]:
        """Clicks, and words in the thread; each of the words comes as two events, which is what Slack repeats."""
        shown = group_by_prompt(self.server.rooms[self.person.dm].messages, records)
        actions: list[Action] = []
        for record in records:
            for _ in range(self.random.choice((1, 1, 2))):
                message = self.random.choice(shown[record.prompt_id])
                act = self._click if self.random.random() < 0.5 else self._write
                actions.append(partial(act, record, message, tally))
        return actions

    def _click(self, record: PromptRecord, message: dict[str, Any], tally: Tally) -> None:
        self.clicks[record.prompt_id] = self.person.click(message, self.random.choice(("Yes", "No")))
        tally.tried["clicks"] += 1

    def _write(self, record: PromptRecord, message: dict[str, Any], tally: Tally) -> None:
        self.person.write(self.random.choice("yn"), thread=message)
        self.server.emit("events_api", self.server.envelopes[-1].payload)
        tally.tried["thread replies"] += 1
        tally.tried["copies of an event"] += 1

    def persist(self, records: list[PromptRecord], hub: MiniHub, tally: Tally) -> None:
        """Slack shows that a click failed, and sends it no second time: the person clicks again."""
        for record in records:
            envelope = self.clicks.get(record.prompt_id)
            if record.prompt_id not in hub.answers and envelope is not None and envelope.failed and self.server.sockets:
                shown = group_by_prompt(self.server.rooms[self.person.dm].messages, [record])
                self._click(record, shown[record.prompt_id][0], tally)
                tally.tried["clicks that failed and were repeated"] += 1

    def shows_outcome(self, record: PromptRecord, hub: MiniHub) -> bool:
        return any(
            "Expires in" not in str(self.server.rooms[room].messages[ts])
            for places in hub.deliveries(record.prompt_id, self.name)
            for room, ts, _ in parse_places(places)
        )

    def is_drained(self) -> bool:
        return all(envelope.acked or envelope.failed for envelope in self.server.envelopes)

    def forget(self) -> None:
        self.clicks.clear()
        self.server.calls.clear()
        self.server.envelopes.clear()
        for room in self.server.rooms.values():
            room.messages.clear()


def plan_fault(server: FakeServer, method: str, random: Random, tally: Tally) -> None:
    kind, options = random.choice(FAULTS)
    server.fail(method, kind, **options)
    tally.tried[f"fault: {kind} {options.get('status', '')}".strip()] += 1


def group_by_prompt(messages: dict[Any, dict[str, Any]], records: list[PromptRecord]) -> dict[str, list[Any]]:
    """The newest messages with buttons, by the prompt that their buttons name."""
    found: dict[str, list[Any]] = {record.prompt_id: [] for record in records}
    short = {prompt_id[:8]: prompt_id for prompt_id in found}
    for message in list(messages.values())[-6 * WAVE :]:
        named = BUTTON.search(str(message.get("reply_markup") or message.get("blocks")))
        if named and named[1] in short:
            found[short[named[1]]].append(message)
    return found


async def soak(world: World, updates: int, tally: Tally) -> None:
    async with world.server.serving_here():
        hub, done = MiniHub(), 0
        while done < updates and not tally.wrong:
            channel = world.build(hub)
            await channel.start()
            router = asyncio.create_task(hub.serve(channel))
            done += await one_round(world, hub, channel, min(ROUND, updates - done), tally)
            router.cancel()
            with suppress(asyncio.CancelledError):
                await router
            await channel.close()
            tally.tried["restarts of the channel"] += 1
            world.forget()
            print(f"soak_channels: {world.name}: {done} updates so far", flush=True)
        tally.tried[f"{world.name} updates"] += done


async def one_round(world: World, hub: MiniHub, channel: BaseChannel, updates: int, tally: Tally) -> int:
    done = 0
    session = hub.add_session()
    while done < updates and not tally.wrong:
        records = [hub.add_prompt(session, prompts.YES_NO) for _ in range(WAVE)]
        await asyncio.gather(*(ask(hub, channel, record, tally) for record in records))
        actions = world.answers(records, tally)
        world.random.shuffle(actions)
        for number, act in enumerate(actions):
            if number % 3 == 0 and world.random.random() < 0.3:
                world.break_something(tally)
            act()
        done += len(actions)

        def all_answered(records: list[PromptRecord] = records) -> bool:
            world.persist(records, hub, tally)
            return all(record.prompt_id in hub.answers for record in records)

        await wait(all_answered, "every answer", tally)
        tally.tried["prompts answered once"] += WAVE
    await wait(world.is_drained, "every update confirmed", tally)
    everything = list(hub.records.values())
    await wait(lambda: all(world.shows_outcome(record, hub) for record in everything), "every outcome shown", tally)
    for kept in (hub.session_records, hub.records, hub.answers, hub.shown, hub.inbox, hub.replies):
        kept.clear()
    return done


def main(
    updates: int = 100_000,  # for Telegram; Slack gets a tenth
    seed: int = 1,
) -> int:
    logging.disable(logging.ERROR)
    tally = Tally()
    for kind, wanted in ((TelegramSoak, updates), (SlackSoak, updates // 10)):
        world = kind(Random(seed))
        try:
            asyncio.run(soak(world, wanted, tally))
        except AssertionError as error:
            tally.wrong.append(f"{kind.name}: {error}")
    print(f"soak_channels: seed {seed}, tried: {dict(tally.tried)}")
    for line in tally.wrong:
        print(f"soak_channels: FAILED: {line}")
    return 1 if tally.wrong else 0
