"""A thread for each session, in the channels that take part: its questions and notices stand there, and what is written
there is about that session.  Direct messages stay as they are: a question in a thread would be missed there.

Threads are kept in the desk's notes, so that a restarted hub goes on in the same ones.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from atlasbridge.channels.outbox import Outbox, Params, Place
from atlasbridge.channels.wording import session_name
from atlasbridge.core.errors import ChannelError
from atlasbridge.core.ids import short_id
from atlasbridge.core.ports import Desk
from atlasbridge.core.session.model import SessionRecord, SessionState

log = logging.getLogger(__name__)
OPENING_S = 5.0  # a question does not wait longer for its thread


class Threads:
    """`rooms`: the channels that have threads; `paint` makes the message that a thread begins with."""

    def __init__(
        self, outbox: Outbox, desk: Desk, rooms: Iterable[str], paint: Callable[[SessionRecord], Params]
    ) -> None:
        self._outbox, self._desk, self._paint = outbox, desk, paint
        self._rooms = frozenset(rooms)
        self._turn = asyncio.Lock()

    def thread_of(self, room: str, session_id: str) -> str:
        """The timestamp of the message that the session's thread begins with; "" where it has none."""
        return self._desk.recall(_thread(room, session_id)) if room in self._rooms else ""

    def session_at(self, room: str, thread: str) -> str:
        return self._desk.recall(f"slack.switch.{room_of(room, thread)}") if room in self._rooms and thread else ""

    def inside(self, room: str, session: SessionRecord | None, loud: bool = False) -> Params:
        """What puts a message into its session's thread; `loud`: it is shown in the channel, too."""
        thread = self.thread_of(room, session.session_id) if session is not None else ""
        return ({"thread_ts": thread} | ({"reply_broadcast": True} if loud else {})) if thread else {}

    def root_of(self, place: Place, session_id: str) -> str:
        """Where replies to this message go: its session's thread, or a thread of its own."""
        return self.thread_of(place[0], session_id) or place[1]

    async def open(self, session: SessionRecord) -> None:
        """Where none can be made, messages go to the channel itself.  A channel is read by all who take part."""
        if self._desk.readers(session.session_id, "slack") is not None:
            return
        missing = [room for room in self._rooms if not self.thread_of(room, session.session_id)]
        now = self._desk.session(session.session_id) or session
        if not missing or now.state is not SessionState.ACTIVE:
            return
        try:
            async with asyncio.timeout(OPENING_S), self._turn:
                for room in missing:
                    await self._open(room, session)
        except (TimeoutError, ChannelError) as fault:
            log.info("no thread for %s now: %s", short_id(session.session_id), fault or "it takes too long")

    async def _open(self, room: str, session: SessionRecord) -> None:
        if self.thread_of(room, session.session_id):
            return
        posted = await self._outbox.send(room, self._paint(session))
        self._desk.remember(_thread(room, session.session_id), posted.message)
        self._desk.remember(f"slack.switch.{room_of(room, posted.message)}", session.session_id)

    def forget_ended(self, session: SessionRecord) -> None:
        now = self._desk.session(session.session_id) or session
        for room in self._rooms if now.state is not SessionState.ACTIVE else ():
            if thread := self.thread_of(room, session.session_id):
                self._desk.remember(f"slack.switch.{room_of(room, thread)}", "")
                self._desk.remember(_thread(room, session.session_id), "")


def room_of(room: str, thread: str) -> str:
    """A session's thread is a room of its own: commands there are about that session."""
    return f"{room}/{thread}"


def beginning(session: SessionRecord, tool: str) -> str:
    return f"🧵 {session_name(session)} · {tool} · {short_id(session.session_id)} · {session.cwd}"


def _thread(room: str, session_id: str) -> str:
    return f"slack.thread.{room}.{session_id}"
