"""Live screens for people at the desk: sent while somebody looks, and for a moment longer; never where forbidden."""

from __future__ import annotations

import asyncio
from typing import Any

from atlasbridge.core.ports import LinkDesk
from atlasbridge.fleet.link import FleetLink

LOOK_S = 30.0  # a look ends by itself when the desk does not ask for it again
FPS = 3.0
MOST = 8  # sessions that are looked at together


class Onlookers:
    def __init__(self, desk: LinkDesk, link: FleetLink, allowed: bool) -> None:
        self._desk = desk
        self._link = link
        self._allowed = allowed
        self._looks: dict[str, asyncio.Task[None]] = {}
        self._limits: dict[str, asyncio.Timeout] = {}

    def watch(self, session_id: str, on: bool) -> None:
        if not on:
            self._end(session_id)
        elif session_id in self._limits:
            self._limits[session_id].reschedule(asyncio.get_running_loop().time() + LOOK_S)
        elif session_id not in self._looks and len(self._looks) < MOST:
            self._looks[session_id] = asyncio.create_task(self._show(session_id), name="desk-screen")

    def close(self) -> None:
        for session_id in tuple(self._looks):
            self._end(session_id)

    def _end(self, session_id: str) -> None:
        if session_id in self._looks:
            self._looks.pop(session_id).cancel()

    async def _show(self, session_id: str) -> None:
        try:
            async with asyncio.timeout(LOOK_S) as limit:
                self._limits[session_id] = limit
                if self._allowed and self._desk.shows(session_id):
                    await self._send_all(session_id)
        except TimeoutError:
            pass  # nobody looks any more
        finally:
            self._looks.pop(session_id, None)
            self._limits.pop(session_id, None)
        await self._link.send("screen", session_id=session_id, screen=None, allowed=self._allowed)

    async def _send_all(self, session_id: str) -> None:
        screens = self._desk.watch(session_id, FPS)
        try:
            async for screen in screens:
                await self._link.send("screen", session_id=session_id, screen=_plain(screen), allowed=True)
        finally:
            await screens.aclose()


def _plain(screen: dict[str, Any]) -> dict[str, Any]:
    """Rows of text: what the page shows needs no colours."""
    styled = screen.get("styled")
    lines = screen.get("lines") or ["".join(run[0] for run in row) for row in styled or ()]
    return {"rows": screen.get("rows"), "cols": screen.get("cols"), "lines": lines, "title": screen.get("title", "")}
