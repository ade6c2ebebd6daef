"""Channel workers and the router: each channel in a lane of its own, edited in order, started again after a fault."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.support.bare_hub_api import BareHubApi
from tests.support.memory_channel import MemoryChannel
from tests.support.sample_prompt import YES_NO
from tests.support.waiting import stays, until

from atlasbridge.core.clock import ManualClock
from atlasbridge.core.errors import ChannelError, ConfigError
from atlasbridge.core.ports import Channel
from atlasbridge.core.prompt.model import InboundReply, PromptRecord, PromptState, Receipt, Reject
from atlasbridge.core.routing.router import ChannelWorker, Job, WorkerSettings

RECORD = PromptRecord("p" * 36, "s" * 36, YES_NO, PromptState.ROUTED, "n" * 32, "", "", 0.0)
SETTINGS = WorkerSettings(call_timeout_s=0.2, first_retry_s=0.01, last_retry_s=0.04, outbox_limit=3)


def worker_for(build: Callable[[], Channel]) -> ChannelWorker:
    async def answer(reply: InboundReply) -> Receipt | Reject:
        return Receipt("typed", "done")

    return ChannelWorker("memory", False, build, answer, SETTINGS)


def channel() -> MemoryChannel:
    return MemoryChannel({}, BareHubApi(), ManualClock())


def notice(text: str) -> Job:
    return Job(lambda channel: channel.notify(text))


async def test_jobs_are_done_in_order() -> None:
    person = channel()
    worker = worker_for(lambda: person)
    worker.start()
    for text in ("a", "b", "c"):
        worker.put(notice(text))
    await until(lambda: person.notices == ["a", "b", "c"])
    await worker.stop(1)
    assert person.closed and worker.health()["state"] == "closed"


async def test_a_failed_job_is_tried_again_only_while_it_is_wanted() -> None:
    person, tries, wanted = channel(), [], [True]

    async def fail(_: Channel) -> None:
        tries.append(1)
        if len(tries) == 3:
            wanted[0] = False
        raise ChannelError("unreachable")

    worker = worker_for(lambda: person)
    worker.start()
    worker.put(Job(fail, wanted=lambda: wanted[0]))
    await until(lambda: len(tries) == 3)
    await stays(lambda: len(tries) == 3)
    await worker.stop(0)


async def test_an_job_that_hangs_is_cut_off_and_the_next_one_goes() -> None:
    person = channel()

    async def hang(_: Channel) -> None:
        await asyncio.get_running_loop().create_future()

    worker = worker_for(lambda: person)
    worker.start()
    worker.put(Job(hang))
    worker.put(notice("after"))
    await until(lambda: person.notices == ["after"])
    await worker.stop(0)


async def test_a_channel_that_breaks_is_built_anew_and_keeps_the_message() -> None:
    built: list[MemoryChannel] = []

    def build() -> MemoryChannel:
        built.append(channel())
        return built[-1]

    async def once(target: Channel) -> None:
        if target is built[0]:
            raise RuntimeError("a bug in the channel")
        await target.notify("delivered")

    worker = worker_for(build)
    worker.start()
    worker.put(Job(once, wanted=lambda: True))
    await until(lambda: len(built) == 2 and built[1].notices == ["delivered"])
    assert built[0].closed and worker.health()["restarts"] == 1
    await worker.stop(0)


async def test_a_reply_loop_that_breaks_restarts_the_channel() -> None:
    class Deaf(MemoryChannel):
        async def receive_reply(self) -> InboundReply:
            raise ConnectionError("poll failed")

    built: list[Deaf] = []

    def build() -> Deaf:
        built.append(Deaf({}, BareHubApi(), ManualClock()))
        return built[-1]

    worker = worker_for(build)
    worker.start()
    await until(lambda: len(built) >= 3 and worker.health().get("fault") == "ConnectionError: poll failed")
    await worker.stop(0)
    assert worker.health()["state"] == "closed"


async def test_a_channel_that_fails_in_the_moment_of_stopping_is_stopped() -> None:
    failing = asyncio.Event()

    class Failing(MemoryChannel):
        async def receive_reply(self) -> InboundReply:
            failing.set()
            raise ConnectionError("poll failed")

    worker = worker_for(lambda: Failing({}, BareHubApi(), ManualClock()))
    worker.start()
    await failing.wait()  # its task group is about to fail, and is cancelled now
    await worker.stop(0)
    assert worker.health()["state"] == "closed"


async def test_a_channel_that_is_set_up_wrongly_is_not_tried_again() -> None:
    tries = []

    def build() -> Channel:
        tries.append(1)
        raise ConfigError("no such token")

    worker = worker_for(build)
    worker.start()
    await until(lambda: worker.health()["state"] == "fault")
    await stays(lambda: tries == [1] and worker.health()["fault"] == "no such token")
    await worker.stop(0)


async def test_a_full_outbox_drops_instead_of_growing() -> None:
    worker = worker_for(channel)
    assert [worker.put(notice("x")) for _ in range(4)] == [True, True, True, False]


async def test_a_reply_is_answered_to_its_sender() -> None:
    person = channel()
    worker = worker_for(lambda: person)
    worker.start()
    person.say(RECORD, "y")
    await person.until(lambda: person.outcomes)
    assert person.outcomes[0][1] == Receipt("typed", "done")
    await worker.stop(0)
