"""One look at a session's screen, for a chat: as on the page it is asked of the machine, by right, and logged."""

from __future__ import annotations

import asyncio
from typing import Any

from atlasbridge.desk import screens
from atlasbridge.desk.chats.readout import Key
from atlasbridge.desk.office import Office

PATIENCE_S = 4.0


async def glance(office: Office, session: Key, person: str) -> dict[str, Any] | None:
    """None: it may not be looked at, or the machine does not show it in time."""
    if not await screens.look(office.database, *session, person, first=True):
        return None
    try:
        with office.wakeups.waiting(f"screen:{session[0]}:{session[1]}") as called:
            office.wakeups.tell(f"errand:{session[0]}")
            return await _frame(office, session, called)
    finally:
        await screens.look_away(office.database, *session, person)
        office.wakeups.tell(f"errand:{session[0]}")


async def _frame(office: Office, session: Key, called: asyncio.Event) -> dict[str, Any] | None:
    try:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found = await screens.shown(office.database, *session)
                if isinstance(found, dict) and isinstance(found.get("lines"), list):
                    return {"text": "\n".join(str(line) for line in found["lines"])}
                called.clear()
                await called.wait()
    except TimeoutError:
        return None
