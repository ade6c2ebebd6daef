"""Waiting for a door from asyncio: each question has a thread of its own, so that any number can wait at once."""

from __future__ import annotations

import asyncio
import threading

from atlasbridge.core.prompt.model import Prompt
from atlasbridge.core.prompt.question import Handed
from atlasbridge.doors.ways import AnyDoor


async def ask_async(door: AnyDoor, prompt: Prompt, ttl_s: float | None = None) -> Handed:
    """As a door's own `ask`; being cancelled withdraws the question, and ends only when the hub has heard of it."""
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[Handed] = loop.create_future()

    def wait() -> None:
        try:
            handed = door.ask(prompt, ttl_s)
        except BaseException as error:  # it is raised where the answer is awaited
            loop.call_soon_threadsafe(_settle, answered, None, error)
        else:
            loop.call_soon_threadsafe(_settle, answered, handed, None)

    threading.Thread(target=wait, name="door", daemon=True).start()
    try:
        return await asyncio.shield(answered)
    except asyncio.CancelledError:
        door.withdraw()
        await answered
        raise


def _settle(future: asyncio.Future[Handed], handed: Handed | None, error: BaseException | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    elif handed is not None:
        future.set_result(handed)
