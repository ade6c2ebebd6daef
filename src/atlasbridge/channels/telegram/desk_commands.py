"""Carries out the commands of a chat: asks the desk, and answers in that chat."""

from __future__ import annotations

from typing import Any

from atlasbridge.channels.listening import active
from atlasbridge.channels.outbox import Outbox
from atlasbridge.channels.telegram import templates
from atlasbridge.channels.telegram.commands import (
    Command,
    find_session,
    parse_span,
    render_help,
    render_sessions,
    render_status,
)
from atlasbridge.channels.telegram.inbound import Origin
from atlasbridge.channels.wording import render_left, tool_name
from atlasbridge.core.clock import Clock
from atlasbridge.core.ids import short_id
from atlasbridge.core.ports import Desk
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.visible import visible


class DeskCommands:
    def __init__(self, desk: Desk, clock: Clock, outbox: Outbox) -> None:
        self._desk, self._clock, self._outbox = desk, clock, outbox

    async def run(self, origin: Origin, command: Command) -> None:
        sessions, prompts = self._desk.sessions(), self._desk.open_prompts()
        match command.name:
            case "sessions":
                answer = render_sessions(sessions, prompts, self._desk.recall(f"telegram.switch.{origin.chat_id}"))
            case "switch":
                answer = self._switch(origin, command.rest, sessions)
            case "status":
                answer = render_status(prompts, sessions, self._clock.now())
            case "mute":
                answer = self._mute(origin, command.rest)
            case "screen":
                answer = await self._screen(origin, command.rest, sessions)
            case "help" | "start":
                answer = render_help()
            case _:
                answer = f"I do not know /{command.name}.\n{render_help()}"
        if answer:
            self._answer(origin, templates.render_notice(answer, None, ""))

    def is_muted(self, chat: str) -> bool:
        return self._clock.wall() < float(self._desk.recall(f"telegram.mute.{chat}", "0"))

    def send_screen(self, origin: Origin, title: str, screen: str) -> None:
        """Inside a message where it fits, else as a file."""
        params = templates.render_screen(title, screen)
        if params is not None:
            self._answer(origin, params)
            return
        document = ("screen.txt", visible(screen).encode())
        self._answer(origin, {"caption": title, "document": document})

    def _answer(self, origin: Origin, params: dict[str, Any]) -> None:
        topic = {} if origin.topic_id is None else {"message_thread_id": origin.topic_id}
        self._outbox.post(str(origin.chat_id), params | topic)

    def _switch(self, origin: Origin, rest: str, sessions: list[SessionRecord]) -> str:
        key = f"telegram.switch.{origin.chat_id}"
        if rest.lower() == "off":
            self._desk.remember(key, "")
            return "Plain texts go to no particular session any more."
        session = find_session(sessions, rest)
        if session is None:
            return "There is no such session. /sessions lists them."
        self._desk.remember(key, session.session_id)
        return f"Plain texts now go to {tool_name(session)} {short_id(session.session_id)}."

    def _mute(self, origin: Origin, rest: str) -> str:
        span_s = parse_span(rest)
        if span_s is None:
            return "Say /mute 30m, /mute 2h or /mute off."
        self._desk.remember(f"telegram.mute.{origin.chat_id}", str(self._clock.wall() + span_s))
        if span_s == 0:
            return "No longer muted."
        return f"Muted for {render_left(span_s)}: prompts come without a sound, and notices not at all."

    async def _screen(self, origin: Origin, rest: str, sessions: list[SessionRecord]) -> str:
        wanted = rest or self._desk.recall(f"telegram.switch.{origin.chat_id}")
        session = find_session(sessions, wanted) if wanted else None
        if not wanted and len(active(sessions)) == 1:
            session = active(sessions)[0]
        if session is None:
            return "Which session? Say /screen ID; /sessions lists them."
        screen = await self._desk.screen(session.session_id)
        if screen is None:
            return "That session does not answer."
        text = str(screen.get("text") or "\n".join(screen.get("lines") or []))
        self.send_screen(origin, f"{tool_name(session)} {short_id(session.session_id)}:", text)
        return ""
