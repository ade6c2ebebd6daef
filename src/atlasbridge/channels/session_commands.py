"""Commands of a chat about one session: its screen, what it said, its files, instructions for later, start and end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar

from atlasbridge.channels.answer_commands import Speaker
from atlasbridge.channels.commands import Command, Spoken, find_session
from atlasbridge.channels.handed import NotHanded, read_inside
from atlasbridge.channels.listening import active
from atlasbridge.channels.reading import last_answer, rows_of, since_instruction
from atlasbridge.channels.screenshot import make_picture
from atlasbridge.channels.wording import session_name, tool_name
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.ids import short_id
from atlasbridge.core.ports import Desk
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.visible import visible

ESC = b"\x1b"
LISTED_TEXT = 200
LOOKED_BACK = 20  # prompts: where the last instruction is looked for
NO_ANSWER = "That session does not answer."


class SessionCommands:
    """`chosen` is the session that plain texts of a chat go to."""

    NAMES: ClassVar[tuple[str, ...]] = (
        "screen",
        "picture",
        "last",
        "transcript",
        "get",
        "queue",
        "new",
        "esc",
        "resume",
        "stop",
    )

    def __init__(self, desk: Desk, sign: str, chosen: Callable[[str], str], speaker: Speaker) -> None:
        self._desk, self._sign, self._chosen, self._speaker = desk, sign, chosen, speaker

    async def run(self, chat: str, command: Command, identity: str) -> Spoken:
        match command.name:
            case "queue":
                return Spoken(self._queue(chat, command.rest, identity))
            case "new":
                return Spoken(await self._new(command.rest, identity))
            case "stop":
                return Spoken(await self._stop(command.rest, identity))
            case "get":
                return await self._get(chat, command.rest, identity)
        session = self.meant(chat, command.rest)
        if session is None:
            return Spoken(self._which(command.name))
        if command.name == "esc":
            return Spoken(await self._esc(session, identity))
        if command.name == "resume":
            resumed = await self._desk.resume(session.session_id)
            return Spoken(f"{session_name(session)} goes on." if resumed else NO_ANSWER)
        return await self._read(command.name, session)

    def meant(self, chat: str, rest: str) -> SessionRecord | None:
        """Whom these words name; without words, the chosen one, or the only one there is."""
        sessions = self._desk.sessions()
        wanted = rest or self._chosen(chat)
        if wanted or len(active(sessions)) != 1:
            return find_session(sessions, wanted)
        return active(sessions)[0]

    async def _read(self, what: str, session: SessionRecord) -> Spoken:
        title = f"{session_name(session)} · {tool_name(session)} {short_id(session.session_id)}"
        if what == "screen":
            screen = await self._desk.screen(session.session_id)
            text = "" if screen is None else str(screen.get("text") or "\n".join(screen.get("lines") or []))
            return Spoken(NO_ANSWER) if screen is None else Spoken(f"{title}:", text)
        if what == "picture":
            return await self._picture(session, title)
        screen = await self._desk.screen(session.session_id, past=True)
        if screen is None:
            return Spoken(NO_ANSWER)
        pick, about = (
            (last_answer, "the last answer") if what == "last" else (since_instruction, "since the last prompt")
        )
        rows = pick(rows_of(screen), self._given(session))
        return Spoken(f"{title}, {about}:", "\n".join(rows), f"{what}.txt", split=True)

    async def _picture(self, session: SessionRecord, title: str) -> Spoken:
        screen = await self._desk.screen(session.session_id, styled=True)
        if screen is None:
            return Spoken(NO_ANSWER)
        made = await make_picture(screen)
        return Spoken(made) if isinstance(made, str) else Spoken(title, name="screen.png", file=made, picture=True)

    def _given(self, session: SessionRecord) -> list[str]:
        """The last instruction that went through the desk; it is the newest unless somebody typed at the terminal."""
        records = self._desk.history(limit=LOOKED_BACK, session_id=session.session_id)
        return [record.decided_value for record in records if record.prompt.idle and record.decided_value][:1]

    async def _get(self, chat: str, rest: str, identity: str) -> Spoken:
        """The session may be named first; else it is the chosen one, or the only one."""
        first, _, more = rest.partition(" ")
        named = find_session(self._desk.sessions(), first) if more else None
        session, path = (named, more) if named else (self.meant(chat, ""), rest)
        if session is None or not path:
            return Spoken(f"Say {self._sign}get PATH, or {self._sign}get NAME PATH; {self._sign}sessions lists names.")
        try:
            name, content = await asyncio.to_thread(read_inside, self._desk.folder(session.session_id), path)
        except NotHanded as why:
            return Spoken(str(why))
        self._desk.note(
            "FILE_SENT", session_id=session.session_id, decided_by=identity, path=path.strip(), size=len(content)
        )
        return Spoken(f"{session_name(session)}: {visible(path.strip(), keep_lines=False)}", name=name, file=content)

    def _queue(self, chat: str, rest: str, identity: str) -> str:
        word, _, more = rest.partition(" ")
        if not rest:
            return self._queued()
        if word.lower() == "off":
            return self._desk.dequeue(self._speaker.speak(identity, "", "", None), more.strip()).sentence
        named = find_session(self._desk.sessions(), word.rstrip(":")) if more else None
        session, text = (named, more) if named else (self.meant(chat, ""), rest)
        if session is None:
            return f"Which session? Say {self._sign}queue NAME TEXT; {self._sign}sessions lists them."
        reply = self._speaker.speak(identity, "", text.strip(), None, session_id=session.session_id)
        return f"{session_name(session)}: {self._desk.enqueue(reply).sentence}"

    def _queued(self) -> str:
        waiting = self._desk.queued()
        if not waiting:
            return f"Nothing is queued. Say {self._sign}queue TEXT, or {self._sign}queue NAME TEXT."
        lines = [
            f"{number}. {one['name']}: “{_brief(one['text'])}” · {one['by_name']} · {one['queue_id'][:8]}"
            for number, one in enumerate(waiting, 1)
        ]
        return visible("\n".join([*lines, f"To take one back: {self._sign}queue off ID"]))

    async def _new(self, name: str, identity: str) -> str:
        known = [str(launcher["name"]) for launcher in self._desk.launchers()]
        if not known:
            return "Nothing may be started from here: config.toml has no [[launchers]]."
        if name not in known:
            return f"Say {self._sign}new NAME with one of: {', '.join(known)}"
        try:
            session_id = await self._desk.launch(name, identity)
        except AtlasBridgeError as fault:
            return f"It could not be started: {fault}"
        return f"Started {name}: {short_id(session_id)}"

    async def _esc(self, session: SessionRecord, identity: str) -> str:
        typed = await self._desk.type_keys(session.session_id, ESC, identity)
        return f"Esc was pressed in {session_name(session)}." if typed else NO_ANSWER

    async def _stop(self, rest: str, identity: str) -> str:
        """It must be named: what is ended is not to be guessed."""
        session = find_session(self._desk.sessions(), rest)
        if session is None:
            return self._which("stop")
        self._desk.note("SESSION_STOPPED", session_id=session.session_id, decided_by=identity)
        ended = await self._desk.kill(session.session_id)
        return f"{session_name(session)} was told to end." if ended else NO_ANSWER

    def _which(self, command: str) -> str:
        return f"Which session? Say {self._sign}{command} NAME; {self._sign}sessions lists them."


def _brief(text: Any) -> str:
    line = " ".join(str(text).split())
    return line if len(line) <= LISTED_TEXT else f"{line[: LISTED_TEXT - 1]}…"
