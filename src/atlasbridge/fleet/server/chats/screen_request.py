"""One look at a session's screen, for a chat: as on the page it is asked of the machine, by right, and logged."""

from __future__ import annotations

import asyncio
from typing import Any

from atlasbridge.fleet.server import screens
from atlasbridge.fleet.server.chats.mapping import Key
from atlasbridge.fleet.server.context import ServerContext

PATIENCE_S = 4.0


async def glance(context: ServerContext, session: Key, person: str) -> dict[str, Any] | None:
    """None: it may not be looked at, or the machine does not show it in time."""
    if not await screens.look(context.database, *session, person, first=True):
        return None
    try:
        with context.wakeups.waiting(f"screen:{session[0]}:{session[1]}") as called:
            context.wakeups.tell(f"job:{session[0]}")
            return await _frame(context, session, called)
    finally:
        await screens.look_away(context.database, *session, person)
        context.wakeups.tell(f"job:{session[0]}")


async def _frame(context: ServerContext, session: Key, called: asyncio.Event) -> dict[str, Any] | None:
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found = await screens.shown(context.database, *session)
                if isinstance(found, dict) and isinstance(found.get("lines"), list):
                    return {"text": "\n".join(str(line) for line in found["lines"])}
                called.clear()
                await called.wait()
    except TimeoutError:
        return None
