"""Carries out the commands of a chat: asks the desk, and says what to answer.  Looks are the channel's."""

from __future__ import annotations

from dataclasses import dataclass

from atlasbridge.channels.commands import (
    Command,
    find_session,
    parse_span,
    render_help,
    render_sessions,
    render_status,
)
from atlasbridge.channels.listening import active
from atlasbridge.channels.wording import render_left, tool_name
from atlasbridge.core.clock import Clock
from atlasbridge.core.ids import short_id
from atlasbridge.core.ports import Desk
from atlasbridge.core.session.model import SessionRecord


@dataclass(frozen=True, slots=True)
class Spoken:
    """An answer in words; with a `screen`, the words are its title."""

    text: str
    screen: str | None = None


class DeskCommands:
    """`channel` names the notes that are kept, `sign` begins a command there, `mute_effect` says what muting does."""

    def __init__(self, desk: Desk, clock: Clock, channel: str, sign: str, mute_effect: str) -> None:
        self._desk, self._clock = desk, clock
        self._channel, self._sign, self._mute_effect = channel, sign, mute_effect

    async def run(self, chat: str, command: Command) -> Spoken:
        sessions, prompts = self._desk.sessions(), self._desk.open_prompts()
        match command.name:
            case "sessions":
                return Spoken(render_sessions(sessions, prompts, self.chosen(chat)))
            case "switch":
                return Spoken(self._switch(chat, command.rest, sessions))
            case "status":
                return Spoken(render_status(prompts, sessions, self._clock.now()))
            case "mute":
                return Spoken(self._mute(chat, command.rest))
            case "screen":
                return await self._screen(chat, command.rest, sessions)
            case "help" | "start":
                return Spoken(render_help(self._sign))
            case _:
                return Spoken(f"I do not know {self._sign}{command.name}.\n{render_help(self._sign)}")

    def chosen(self, chat: str) -> str:
        """The session that plain texts of this chat go to, or ""."""
        return self._desk.recall(f"{self._channel}.switch.{chat}")

    def is_muted(self, chat: str) -> bool:
        return self._clock.wall() < float(self._desk.recall(f"{self._channel}.mute.{chat}", "0"))

    def _switch(self, chat: str, rest: str, sessions: list[SessionRecord]) -> str:
        key = f"{self._channel}.switch.{chat}"
        if rest.lower() == "off":
            self._desk.remember(key, "")
            return "Plain texts go to no particular session any more."
        session = find_session(sessions, rest)
        if session is None:
            return f"There is no such session. {self._sign}sessions lists them."
        self._desk.remember(key, session.session_id)
        return f"Plain texts now go to {tool_name(session)} {short_id(session.session_id)}."

    def _mute(self, chat: str, rest: str) -> str:
        span_s = parse_span(rest)
        if span_s is None:
            return f"Say {self._sign}mute 30m, {self._sign}mute 2h or {self._sign}mute off."
        self._desk.remember(f"{self._channel}.mute.{chat}", str(self._clock.wall() + span_s))
        return f"Muted for {render_left(span_s)}: {self._mute_effect}" if span_s else "No longer muted."

    async def _screen(self, chat: str, rest: str, sessions: list[SessionRecord]) -> Spoken:
        wanted = rest or self.chosen(chat)
        session = find_session(sessions, wanted) if wanted else None
        if not wanted and len(active(sessions)) == 1:
            session = active(sessions)[0]
        if session is None:
            return Spoken(f"Which session? Say {self._sign}screen ID; {self._sign}sessions lists them.")
        screen = await self._desk.screen(session.session_id)
        if screen is None:
            return Spoken("That session does not answer.")
        text = str(screen.get("text") or "\n".join(screen.get("lines") or []))
        return Spoken(f"{tool_name(session)} {short_id(session.session_id)}:", text)
