"""A topic for each session, in groups that are forums and in which the bot may manage topics; elsewhere nothing.

Topics are kept in the desk's notes, so that a restarted hub goes on in the same ones.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

from atlasbridge.channels.outbox import Refused, Unreachable
from atlasbridge.channels.telegram.api import BotApi
from atlasbridge.channels.wording import session_name, tool_name
from atlasbridge.core.ids import short_id
from atlasbridge.core.ports import Desk
from atlasbridge.core.session.model import SessionRecord, SessionState

log = logging.getLogger(__name__)
NAME_LIMIT = 128
OPENING_S = 5.0  # a question does not wait longer for its topic


class Forum:
    """`groups`: the chats that were opted in as a whole."""

    def __init__(self, api: BotApi, desk: Desk, groups: Iterable[str]) -> None:
        self._api, self._desk = api, desk
        self._kinds: dict[str, bool | None] = dict.fromkeys(groups)  # None: not known yet whether it is a forum
        self._turn = asyncio.Lock()

    def topic_of(self, chat: str, session_id: str) -> int | None:
        known = self._desk.recall(_topic(chat, session_id)) if chat in self._kinds else ""
        return int(known) if known else None

    def room_of(self, chat: str, topic_id: int | None) -> str:
        room = f"{chat}/{topic_id}"
        return room if topic_id is not None and self._desk.recall(_chosen(room)) else chat

    async def open(self, session: SessionRecord) -> None:
        """Where a topic cannot be made, messages go to the group itself."""
        missing = [chat for chat in self._kinds if self.topic_of(chat, session.session_id) is None]
        if not missing or self._has_ended(session):
            return
        try:
            async with asyncio.timeout(OPENING_S), self._turn:
                for chat in missing:
                    await self._open(chat, session)
        except (TimeoutError, Unreachable) as fault:
            log.info("no topic for %s now: %s", short_id(session.session_id), fault or "it takes too long")

    async def close_ended(self, session: SessionRecord) -> None:
        if not self._has_ended(session):
            return
        for chat in self._kinds:
            topic_id = self.topic_of(chat, session.session_id)
            if topic_id is not None:
                self._desk.remember(_chosen(f"{chat}/{topic_id}"), "")
                self._desk.remember(_topic(chat, session.session_id), "")
                await self._try("closeForumTopic", {"chat_id": int(chat), "message_thread_id": topic_id})

    async def _open(self, chat: str, session: SessionRecord) -> None:
        if self._kinds[chat] is None:
            about = await self._try("getChat", {"chat_id": int(chat)})
            self._kinds[chat] = bool(about and about.get("is_forum"))
        if not self._kinds[chat] or self.topic_of(chat, session.session_id) is not None:
            return
        name = f"{session_name(session)} · {tool_name(session)} · {short_id(session.session_id)}"[:NAME_LIMIT]
        made = await self._try("createForumTopic", {"chat_id": int(chat), "name": name})
        if made is None:
            self._kinds[chat] = False  # until the next start: the bot has no right to make topics there
            return
        topic_id = int(made["message_thread_id"])
        self._desk.remember(_topic(chat, session.session_id), str(topic_id))
        self._desk.remember(_chosen(f"{chat}/{topic_id}"), session.session_id)

    async def _try(self, method: str, params: dict[str, Any]) -> Any:
        try:
            return await self._api.call(method, params)
        except Refused as fault:
            log.info("%s: %s", method, fault)
            return None

    def _has_ended(self, session: SessionRecord) -> bool:
        now = self._desk.session(session.session_id) or session
        return now.state is not SessionState.ACTIVE


def _topic(chat: str, session_id: str) -> str:
    return f"telegram.topic.{chat}.{session_id}"


def _chosen(room: str) -> str:
    return f"telegram.switch.{room}"
