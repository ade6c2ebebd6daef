"""Carries out the commands of a chat: asks the desk, and says what to answer.  Looks are the channel's."""

from __future__ import annotations

from typing import Any

from atlasbridge.channels.answer_commands import AnswerCommands, Speaker
from atlasbridge.channels.commands import (
    Command,
    Spoken,
    find_session,
    parse_grant,
    parse_span,
    render_grant,
    render_help,
    render_sessions,
    render_status,
)
from atlasbridge.channels.session_commands import SessionCommands
from atlasbridge.channels.wording import render_left, session_name, tool_name
from atlasbridge.core.clock import Clock
from atlasbridge.core.ports import Desk
from atlasbridge.core.session.model import SessionRecord


class DeskCommands:
    """`channel` names the notes that are kept, `sign` begins a command there, `mute_effect` says what muting does."""

    def __init__(self, desk: Desk, clock: Clock, channel: str, sign: str, mute_effect: str, speaker: Speaker) -> None:
        self._desk, self._clock = desk, clock
        self._channel, self._sign, self._mute_effect = channel, sign, mute_effect
        self._speaker = speaker

    async def run(self, chat: str, command: Command, identity: str, token: Any = None) -> Spoken:
        """`token`: where it was said, for whoever answers a reply that the command became."""
        desk = self._desk.seen_by(identity, self._speaker.is_alone(chat, identity))
        if command.name in AnswerCommands.NAMES:
            return Spoken(AnswerCommands(desk, self._sign, self._speaker).run(command, identity, token))
        if command.name in SessionCommands.NAMES:
            return await self._about_session(desk).run(chat, command, identity)
        sessions, prompts = desk.sessions(), desk.open_prompts()
        match command.name:
            case "sessions":
                return Spoken(render_sessions(sessions, prompts, self.chosen(chat)))
            case "switch":
                return Spoken(self._switch(chat, command.rest, sessions))
            case "status":
                return Spoken(render_status(prompts, sessions))
            case "grant":
                return Spoken(self._grant(desk, command.rest, identity))
            case "mute":
                return Spoken(self._mute(chat, command.rest))
            case "away":
                return Spoken(self._away(desk, command.rest))
            case "here":
                desk.come_back()
                return Spoken("Good. Who types in a session is given a moment before you are asked here.")
            case "help" | "start":
                return Spoken(render_help(self._sign))
            case _:
                return Spoken(f"I do not know {self._sign}{command.name}.\n{render_help(self._sign)}")

    def meant(self, chat: str, identity: str) -> SessionRecord | None:
        """The session that something without a name is about."""
        desk = self._desk.seen_by(identity, self._speaker.is_alone(chat, identity))
        return self._about_session(desk).meant(chat, "")

    def _about_session(self, desk: Desk) -> SessionCommands:
        return SessionCommands(desk, self._sign, self.chosen, self._speaker)

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
        return f"Plain texts now go to {session_name(session)} ({tool_name(session)})."

    def _grant(self, desk: Desk, rest: str, identity: str) -> str:
        wanted = parse_grant(rest)
        if wanted is None:
            return f"Say {self._sign}grant ID 30m or {self._sign}grant ID 5x; ID is the prompt's."
        prompt_id, for_s, times, folder = wanted
        preview = for_s is None and times is None
        made = desk.grant(prompt_id, identity, for_s=for_s, times=times, folder=folder, preview=preview)
        return render_grant(made, self._sign)

    def _mute(self, chat: str, rest: str) -> str:
        span_s = parse_span(rest)
        if span_s is None:
            return f"Say {self._sign}mute 30m, {self._sign}mute 2h or {self._sign}mute off."
        self._desk.remember(f"{self._channel}.mute.{chat}", str(self._clock.wall() + span_s))
        return f"Muted for {render_left(span_s)}: {self._mute_effect}" if span_s else "No longer muted."

    def _away(self, desk: Desk, rest: str) -> str:
        span_s = parse_span(rest) if rest else None
        if span_s is None and rest:
            return f"Say {self._sign}away, {self._sign}away 2h or {self._sign}here."
        if span_s == 0:
            desk.come_back()
            return "No longer away."
        desk.go_away(span_s)
        until = f"for {render_left(span_s)}" if span_s else f"until {self._sign}here"
        return f"Away {until}: everything is asked here at once."
