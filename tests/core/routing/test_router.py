"""Couriers and the router: each channel in a lane of its own, edited in order, started anew after a fault."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.support.bare_desk import BareDesk
from tests.support.sample_prompt import YES_NO
from tests.support.waiting import stays, until

from atlasbridge.channels.memory import MemoryChannel
from atlasbridge.core.clock import ManualClock
from atlasbridge.core.errors import ChannelError, ConfigError
from atlasbridge.core.ports import Channel
from atlasbridge.core.prompt.model import PromptRecord, PromptState, Reject
from atlasbridge.core.prompt.reply import InboundReply, Receipt
from atlasbridge.core.routing.courier import Courier, CourierSettings, Errand

RECORD = PromptRecord("p" * 36, "s" * 36, YES_NO, PromptState.ROUTED, "n" * 32, "", "", 0.0)
SETTINGS = CourierSettings(call_timeout_s=0.2, first_retry_s=0.01, last_retry_s=0.04, outbox_limit=3)


def courier_for(build: Callable[[], Channel]) -> Courier:
    async def answer(reply: InboundReply) -> Receipt | Reject:
        return Receipt("typed", "done")

    return Courier("memory", False, build, answer, SETTINGS)


def channel() -> MemoryChannel:
    return MemoryChannel({}, BareDesk(), ManualClock())


def notice(text: str) -> Errand:
    return Errand(lambda channel: channel.notify(text))


async def test_errands_are_done_in_order() -> None:
    person = channel()
    courier = courier_for(lambda: person)
    courier.start()
    for text in ("a", "b", "c"):
        courier.put(notice(text))
    await until(lambda: person.notices == ["a", "b", "c"])
    await courier.stop(1)
    assert person.closed and courier.health()["state"] == "closed"


async def test_a_failed_errand_is_tried_again_only_while_it_is_wanted() -> None:
    person, tries, wanted = channel(), [], [True]

    async def fail(_: Channel) -> None:
        tries.append(1)
        if len(tries) == 3:
            wanted[0] = False
        raise ChannelError("unreachable")

    courier = courier_for(lambda: person)
    courier.start()
    courier.put(Errand(fail, wanted=lambda: wanted[0]))
    await until(lambda: len(tries) == 3)
    await stays(lambda: len(tries) == 3)
    await courier.stop(0)


async def test_an_errand_that_hangs_is_cut_off_and_the_next_one_goes() -> None:
    person = channel()

    async def hang(_: Channel) -> None:
        await asyncio.get_running_loop().create_future()

    courier = courier_for(lambda: person)
    courier.start()
    courier.put(Errand(hang))
    courier.put(notice("after"))
    await until(lambda: person.notices == ["after"])
    await courier.stop(0)


async def test_a_channel_that_breaks_is_built_anew_and_keeps_the_message() -> None:
    built: list[MemoryChannel] = []

    def build() -> MemoryChannel:
        built.append(channel())
        return built[-1]

    async def once(target: Channel) -> None:
        if target is built[0]:
            raise RuntimeError("a bug in the channel")
        await target.notify("delivered")

    courier = courier_for(build)
    courier.start()
    courier.put(Errand(once, wanted=lambda: True))
    await until(lambda: len(built) == 2 and built[1].notices == ["delivered"])
    assert built[0].closed and courier.health()["restarts"] == 1
    await courier.stop(0)


async def test_a_reply_loop_that_breaks_restarts_the_channel() -> None:
    class Deaf(MemoryChannel):
        async def receive_reply(self) -> InboundReply:
            raise ConnectionError("poll failed")

    built: list[Deaf] = []

    def build() -> Deaf:
        built.append(Deaf({}, BareDesk(), ManualClock()))
        return built[-1]

    courier = courier_for(build)
    courier.start()
    await until(lambda: len(built) >= 3 and courier.health().get("fault") == "ConnectionError: poll failed")
    await courier.stop(0)
    assert courier.health()["state"] == "closed"


async def test_a_channel_that_fails_in_the_moment_of_stopping_is_stopped() -> None:
    failing = asyncio.Event()

    class Failing(MemoryChannel):
        async def receive_reply(self) -> InboundReply:
            failing.set()
            raise ConnectionError("poll failed")

    courier = courier_for(lambda: Failing({}, BareDesk(), ManualClock()))
    courier.start()
    await failing.wait()  # its task group is about to fail, and is cancelled now
    async with asyncio.timeout(20):
        await courier.stop(0)
    assert courier.health()["state"] == "closed"


async def test_a_channel_that_is_set_up_wrongly_is_not_tried_again() -> None:
    tries = []

    def build() -> Channel:
        tries.append(1)
        raise ConfigError("no such token")

    courier = courier_for(build)
    courier.start()
    await until(lambda: courier.health()["state"] == "fault")
    await stays(lambda: tries == [1] and courier.health()["fault"] == "no such token")
    await courier.stop(0)


async def test_a_full_outbox_drops_instead_of_growing() -> None:
    courier = courier_for(channel)
    assert [courier.put(notice("x")) for _ in range(4)] == [True, True, True, False]


async def test_a_reply_is_answered_to_its_sender() -> None:
    person = channel()
    courier = courier_for(lambda: person)
    courier.start()
    person.say(RECORD, "y")
    await person.until(lambda: person.outcomes)
    assert person.outcomes[0][1] == Receipt("typed", "done")
    await courier.stop(0)
