"""How the sessions are doing, asked and not guessed: is the host connected, does it answer, does the tool live."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from atlasbridge.core.daemon.hosts import HostLink
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.system import lives

OK = "ok"


async def look_at_sessions(
    sessions: list[SessionRecord], link_of: Callable[[str], HostLink | None], timeout_s: float
) -> dict[str, str]:
    """By session: "ok", or what is wrong.  All are asked at once, so one that hangs costs its own time only."""
    found = await asyncio.gather(*(_look_at(item, link_of(item.session_id), timeout_s) for item in sessions))
    return {session.session_id: health for session, health in zip(sessions, found, strict=True)}


async def _look_at(session: SessionRecord, link: HostLink | None, timeout_s: float) -> str:
    if link is None:
        return "its host is not connected to the hub"
    if session.pid > 0 and not lives(session.pid):
        return "its program has ended"
    if link.tty and await link.capture(False, timeout_s) is None:  # a question of a script has no screen to show
        return "its host does not answer"
    return OK
