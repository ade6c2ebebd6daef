"""A hostile Telegram and Slack for a long time: `python -m tests.torture soak_channels [--updates N] [--seed N]`.

Duplicates, reordering, cuts, 5xx, floods, slow answers, disconnects and restarts of the channel, while people tap and
write.  In the end every prompt was answered exactly once, and nothing that was sent is missing.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from atlasbridge.channels.base import BaseChannel
from atlasbridge.channels.slack import SlackChannel
from atlasbridge.channels.telegram import TelegramChannel
from atlasbridge.core.clock import SystemClock
from atlasbridge.core.errors import ChannelError
from atlasbridge.core.prompt.model import PromptRecord
from tests.channels import prompts
from tests.channels.conftest import slack_settings, telegram_settings
from tests.channels.mini_hub import MiniHub
from tests.support.fake_slack import FakeSlack
from tests.support.fake_telegram import FakeTelegram

ADA = 1001
ROUND = 1000  # updates between two restarts of the channel
WAVE = 25  # prompts open at once
DEADLINE_S = 120.0
QUICK: dict[str, Any] = {"replies_per_minute": 10_000_000, "backoff_first_s": 0.002, "messages_per_s": 1e6}
FAULTS: list[tuple[str, dict[str, Any]]] = [
    ("status", {"status": 502}),
    ("garbage", {}),
    ("cut_before", {}),
    ("cut_after", {}),
    ("slow", {"seconds": 0.05}),
    ("status", {"status": 429, "description": "Too Many Requests: retry after 0", "retry_after": 0}),
]


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


class TelegramSoak:
    name = "telegram"

    def __init__(self, random: Random) -> None:
        self.random = random
        self.server = FakeTelegram(seed=random.randrange(1 << 30)).start()
        self.server.duplicate_share, self.server.reorder_share = 0.3, 0.3
        self.person = self.server.person(ADA)

    def build(self, hub: MiniHub) -> BaseChannel:
        settings = telegram_settings(
            self.server, replies_per_minute=10_000_000, backoff_first_s=0.002, messages_per_s=1e6
        )
        return TelegramChannel(settings, hub, SystemClock())

    def break_something(self, tally: Tally) -> None:
        kind, options = self.random.choice(FAULTS)
        method = self.random.choice(["getUpdates", "sendMessage", "editMessageText", "answerCallbackQuery"])
        self.server.fail(method, kind, **options)  # type: ignore[arg-type]
        tally.tried[f"fault: {kind} {options.get('status', '')}".strip()] += 1

    def answer(self, record: PromptRecord, tally: Tally) -> int:
        """Some taps, perhaps more than one, perhaps forged; returns how many updates that were."""
        with self.server.lock:  # the newest only, uncopied: this runs a hundred thousand times
            newest = list(self.server.chats[ADA].messages.values())[-4 * WAVE :]
            shown = [message for message in newest if record.prompt_id[:8] in str(message.get("reply_markup"))]
        count = self.random.choice((1, 1, 2, 5))
        for _ in range(count):
            self.person.tap(self.random.choice(shown), self.random.choice(("Yes", "No")))
        forged = f"ans:{record.prompt_id[:8]}:{record.session_id[:8]}:{'0' * 16}:y"
        self.person.tap_data(shown[0], forged)
        tally.tried["taps"] += count
        tally.tried["forged taps"] += 1
        return count + 1

    def is_drained(self) -> bool:
        return self.server.unconfirmed() == 0

    def forget(self) -> None:
        """Keep the fake small: old messages and calls are of no interest."""
        with self.server.lock:
            self.server.calls.clear()
            self.server.taps.clear()
            self.server.chats[ADA].messages.clear()

    def stop(self) -> None:
        self.server.stop()


class SlackSoak:
    name = "slack"

    def __init__(self, random: Random) -> None:
        self.random = random
        self.server = FakeSlack(ack_s=10.0).start()
        self.person = self.server.person("U0ADA")

    def build(self, hub: MiniHub) -> BaseChannel:
        settings = slack_settings(self.server, **QUICK)
        return SlackChannel(settings, hub, SystemClock())

    def break_something(self, tally: Tally) -> None:
        if self.random.random() < 0.1:
            self.random.choice((self.server.cut_sockets, self.server.disconnect))()
            tally.tried["sockets cut or sent away"] += 1
            return
        kind, options = self.random.choice(FAULTS)
        method = self.random.choice(["chat.postMessage", "chat.update", "apps.connections.open"])
        self.server.fail(method, kind, **options)  # type: ignore[arg-type]
        tally.tried[f"fault: {kind} {options.get('status', '')}".strip()] += 1

    def answer(self, record: PromptRecord, tally: Tally) -> int:
        """Words in the thread, twice as events: they are what Slack repeats and holds back."""
        with self.server.lock:
            newest = list(self.server.rooms[self.person.dm].messages.values())[-6 * WAVE :]
            shown = [message for message in newest if record.prompt_id in str(message.get("blocks"))]
        count = self.random.choice((1, 1, 2))
        for _ in range(count):
            self.person.write(self.random.choice("yn"), thread=self.random.choice(shown))
        event = self.server.envelopes[-1].payload
        self.server.emit("events_api", event)
        tally.tried["thread replies"] += count
        tally.tried["copies of an event"] += 1
        return count + 1

    def is_drained(self) -> bool:
        with self.server.lock:
            return all(envelope.acked or envelope.failed for envelope in self.server.envelopes)

    def forget(self) -> None:
        with self.server.lock:
            self.server.calls.clear()
            self.server.envelopes.clear()
            for room in self.server.rooms.values():
                room.messages.clear()

    def stop(self) -> None:
        self.server.stop()


async def soak(world: TelegramSoak | SlackSoak, updates: int, tally: Tally) -> None:
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


async def one_round(
    world: TelegramSoak | SlackSoak, hub: MiniHub, channel: BaseChannel, updates: int, tally: Tally
) -> int:
    done = 0
    session = hub.add_session()
    while done < updates and not tally.wrong:
        records = [hub.add_prompt(session, prompts.YES_NO) for _ in range(WAVE)]
        await asyncio.gather(*(ask(hub, channel, record, tally) for record in records))
        for record in records:
            if world.random.random() < 0.3:
                world.break_something(tally)
            done += world.answer(record, tally)
        await wait(lambda: all(r.prompt_id in hub.answers for r in records), "every answer", tally)  # noqa: B023
        tally.tried["prompts answered once"] += WAVE
    await wait(world.is_drained, "every update confirmed", tally)
    hub.session_records.clear()
    for kept in (hub.records, hub.answers, hub.shown, hub.inbox):
        kept.clear()
    hub.replies.clear()
    return done


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="soak_channels")
    parser.add_argument("--updates", type=int, default=100_000, help="for Telegram; Slack gets a tenth")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    logging.disable(logging.ERROR)
    tally = Tally()
    for kind, updates in ((TelegramSoak, given.updates), (SlackSoak, given.updates // 10)):
        world = kind(Random(given.seed))
        try:
            asyncio.run(soak(world, updates, tally))
        except AssertionError as error:
            tally.wrong.append(f"{kind.name}: {error}")
        finally:
            world.stop()
    print(f"soak_channels: seed {given.seed}, tried: {dict(tally.tried)}")
    for line in tally.wrong:
        print(f"soak_channels: FAILED: {line}")
    return 1 if tally.wrong else 0
