"""What a chat does with a message before it passes a reply on: known sender, not a copy, not too many replies; which
prompt a text means; and files and voice notes.

A text that was written before a question never answers it. Only the gate decides whether a reply is accepted.
"""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atlasbridge.channels.base import run_program
from atlasbridge.channels.delivery import Shown
from atlasbridge.channels.files import MOST_IN, NotHanded, save_inside, too_large
from atlasbridge.channels.language import hub_says, t
from atlasbridge.channels.outbox import Refused, Unreachable
from atlasbridge.core.clock import RateWindow
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import short_id
from atlasbridge.core.newest import Newest
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.gate import fate
from atlasbridge.core.prompt.model import OPEN, PromptRecord
from atlasbridge.core.session.model import SessionRecord, SessionState, session_name
from atlasbridge.core.values import frozen

if TYPE_CHECKING:
    from atlasbridge.channels.chat import Asked, ChatChannel

log = logging.getLogger(__name__)

KEPT_UPDATES = 20_000
KEPT_STRANGERS = 1000
WITHHELD = '{"kept": "ids only: a secret is being asked for"}'


class Strangers:
    """Unknown senders get no answer and are logged once each."""

    def __init__(self, hub_api: HubApi, channel: str) -> None:
        self._hub_api, self._channel = hub_api, channel
        self._seen: set[str] = set()

    def note(self, who: str) -> None:
        if who not in self._seen and len(self._seen) < KEPT_STRANGERS:
            self._seen.add(who)
            log.warning("a %s message from %s, who is not allowed, was dropped", self._channel, who)
            self._hub_api.note("CHANNEL_STRANGER", channel=self._channel, identity=f"{self._channel}:{who}")


class SeenUpdates:
    """Stores every update in the hub's inbox once, and recognises copies."""

    def __init__(self, hub_api: HubApi, channel: str) -> None:
        self._hub_api, self._channel = hub_api, channel
        self._seen: Newest[str, None] = Newest(KEPT_UPDATES)

    async def take(self, update_id: str, payload: str) -> str:
        """Return "new", "copy" (this process has it already) or "again" (an earlier process received it and perhaps
        lost it)."""
        if update_id in self._seen:
            return "copy"
        secret = any(record.prompt.secret for record in self._hub_api.open_prompts())
        fresh = await self._hub_api.accept_update(self._channel, update_id, WITHHELD if secret else payload)
        if update_id in self._seen:  # a copy arrived while we waited for the store
            return "copy"
        self._seen[update_id] = None
        return "new" if fresh else "again"

    async def settle(self, update_id: str) -> None:
        """Mark the update as processed."""
        await self._hub_api.settle_update(self._channel, update_id)

    def left_over(self) -> list[tuple[str, Any]]:
        """Return updates that an earlier process accepted but did not finish. A withheld payload is None."""
        found = self._hub_api.pending_updates(self._channel)
        for update_id, _ in found:
            self._seen[update_id] = None
        return [(update_id, None if payload == WITHHELD else json.loads(payload)) for update_id, payload in found]


class Throttle:
    """Limits the replies to each session, with one warning per pause.

    Accepted answers and invalid texts do not count: a prompt accepts only one reply, and a typo is not an attack. A
    second, wider limit counts everything.
    """

    def __init__(self, replies_per_minute: int) -> None:
        self._window = RateWindow(replies_per_minute)
        self._everything = RateWindow(replies_per_minute * 6)
        self._warned_until: dict[str, float] = {}

    def admit(self, session_id: str, now: float) -> tuple[str, bool]:
        """Return the text for the sender ("" if the reply is allowed), and whether to warn the operators."""
        wait_s = self._window.admit(session_id, now) or self._everything.admit(session_id, now)
        if wait_s <= 0:
            return "", False
        warn = self._warned_until.get(session_id, 0.0) <= now
        if warn:
            self._warned_until[session_id] = now + wait_s
        said = "Too many replies in a minute for this session. Wait {count} seconds."
        return t(said, count=int(wait_s) + 1), warn

    def forgive(self, session_id: str) -> None:
        """Do not count the last admitted reply, because it was legitimate."""
        self._window.forget_last(session_id)


def active(sessions: list[SessionRecord]) -> list[SessionRecord]:
    return [session for session in sessions if session.state is SessionState.ACTIVE]


# Which prompt a text without a reference means: the prompt that its writer had seen, or a question back.

NOTHING_OPEN = "Nothing is waiting for an answer."
WORKING = "Nothing is waiting for an answer. To queue an instruction for when the tool is done, send {sign}queue TEXT."
NOT_OPEN = "That prompt is no longer open."
WHICH = "Which one do you mean? Tap it, or reply to its message."
RESTARTED = "AtlasBridge restarted while this came in. Which one do you mean? Tap it, or reply to its message."
GONE = "That text is no longer stored. Send it again as a reply to the question."
EDITED = "An edit changes nothing that was already taken. Write a new message instead."
NO_MARKS = "{title} did not send your selection. Reply with the numbers instead."
KEPT_TEXTS = 200
MOST_OFFERED = 20


@frozen
class Doubt:
    """Why the prompt is unclear, and which prompts to offer."""

    sentence: str
    offered: tuple[PromptRecord, ...] = ()

    def told(self, sign: str, threads: bool = False) -> str:
        """The sentence for the reader, with the chat's own sign of commands; with `threads`, people reply in one."""
        said = self.sentence.replace("reply to its message", "reply in its thread") if threads else self.sentence
        return hub_says(t(said, sign=sign))


def find_target(
    hub_api: HubApi, shown: Shown, chat: str, written_at: float, chosen: str, again: bool = False
) -> PromptRecord | Doubt:
    """`chosen` is the session that the person switched to. `again`: an earlier process received this text already."""
    only = chosen if any(session.session_id == chosen for session in active(hub_api.sessions())) else ""
    standing = shown.standing(chat, written_at)
    records = [record for one in standing.prompts if (record := hub_api.prompt(one)) is not None]
    meant = _of(records, only)
    if len(meant) == 1 and standing.certain and not again:
        return meant[0] if meant[0].state in OPEN else Doubt(f"{NOT_OPEN} {fate(meant[0])}")
    return offer(hub_api, shown, chat, only, RESTARTED if again else WHICH)


def offer(hub_api: HubApi, shown: Shown, chat: str, only: str = "", sentence: str = WHICH) -> Doubt:
    """Ask back, offering the open prompts that this chat shows."""
    open_prompts = hub_api.open_prompts()
    here = [r for r in open_prompts if any(place[0] == chat for place in shown.places(r.prompt_id))]
    secret = [r for r in open_prompts if r.prompt.secret and (r in here or shown.is_everybodys(r))]
    told = tuple(record for record in _of(here, only) or here if not record.prompt.secret)[:MOST_OFFERED]
    if told:
        return Doubt(sentence, told)
    if secret:
        return Doubt(refuse_secret(secret[0]))
    return Doubt(WORKING if active(hub_api.sessions()) and not open_prompts else NOTHING_OPEN)


def refuse_secret(record: PromptRecord) -> str:
    said = "Secrets are never taken in a chat. Delete your message, then answer at the terminal or with: {command}"
    return t(said, command=f"atlasbridge reply {short_id(record.prompt_id)} -")


def _of(records: Iterable[PromptRecord], session_id: str) -> list[PromptRecord]:
    return [record for record in records if session_id in ("", record.session_id)]


# Photos, files and voice notes from a chat: saved in the session's folder, or transcribed.

TRANSCRIBER_S = 120.0
HEARD_LIMIT = 4096
WHICH_SESSION = "Which session? Send it as a reply to one of its messages, or send {sign}switch NAME first."
NO_TRANSCRIBER = "Voice notes are not accepted here: config.toml sets no `transcriber` for {title}."
NOTHING_HEARD = "The voice note could not be understood. Write your message instead."


@dataclass(frozen=True, slots=True)
class Sent:
    """An incoming file: its name, its size as announced, and how to download it (None: it is too large)."""

    name: str
    size: int
    fetch: Callable[[int], Awaitable[bytes | None]]


class Received:
    def __init__(self, channel: ChatChannel, transcriber: Sequence[str]) -> None:
        self._channel, self._hub_api, self._transcriber = channel, channel.hub_api, transcriber

    async def keep_file(self, origin: Asked, sent: Sent, caption: str, session: SessionRecord, identity: str) -> None:
        """Save the file. A caption becomes an instruction about it, typed when the tool is idle."""
        try:
            content = await _fetch(sent)
            path = await asyncio.to_thread(save_inside, self._hub_api.folder(session.session_id), sent.name, content)
        except NotHanded as why:
            self._channel.tell(origin, str(why))
            return
        self._hub_api.note(
            "FILE_RECEIVED", session_id=session.session_id, decided_by=identity, path=path, size=len(content)
        )
        told = t("Saved in {name} as {path}.", name=session_name(session), path=path)
        if words := caption.strip():
            hub = self._hub_api.by(self._channel.caller(identity))
            queued = await hub.enqueue(session.session_id, f"{words} ({path})")
            told = f"{told} {hub_says(queued.message)}"
        self._channel.tell(origin, told)

    async def hear(self, origin: Asked, sent: Sent, then: Callable[[str], None]) -> None:
        if not self._transcriber:
            self._channel.tell(origin, t(NO_TRANSCRIBER, title=self._channel.title))
            return
        try:
            text = await self._transcribe(await _fetch(sent))
        except NotHanded as why:
            self._channel.tell(origin, str(why))
            return
        if text:
            then(text)
        else:
            self._channel.tell(origin, t(NOTHING_HEARD))

    async def _transcribe(self, content: bytes) -> str:
        """Return the output of the configured transcription command, as one line."""
        with tempfile.TemporaryDirectory(prefix="atlasbridge-voice-") as folder:
            file = Path(folder) / "note.oga"
            file.write_bytes(content)
            words = [word.replace("{file}", str(file)) for word in self._transcriber]
            try:
                status, output, why = await run_program(words, TRANSCRIBER_S)
                if status:
                    raise OSError(f"it ended with status {status}: {why}")
            except (OSError, TimeoutError) as fault:
                log.warning("the transcriber failed: %s", fault or type(fault).__name__)
                raise NotHanded(t("The transcriber failed; see `atlasbridge logs`.")) from None
        return " ".join(escape_controls(output.decode("utf-8", "replace")).split())[:HEARD_LIMIT]


async def _fetch(sent: Sent) -> bytes:
    if sent.size > MOST_IN:
        raise NotHanded(too_large())
    try:
        content = await sent.fetch(MOST_IN)
    except (Refused, Unreachable) as fault:
        raise NotHanded(t("It could not be fetched: {fault}.", fault=fault)) from None
    if content is None:
        raise NotHanded(too_large())
    return content
