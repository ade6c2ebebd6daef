"""Photos, files and voice notes from a chat: saved in the session's folder, or transcribed.

Each chat downloads them itself. A transcript is never an answer by itself: it is shown first, and a tap sends it.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atlasbridge.channels.commands import Speaker
from atlasbridge.channels.files import MOST_IN, NotHanded, save_inside, too_large
from atlasbridge.channels.language import hub_says, t
from atlasbridge.channels.outbox import Refused, Unreachable
from atlasbridge.channels.templates import session_name
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ports import HubApi
from atlasbridge.core.session.model import SessionRecord

log = logging.getLogger(__name__)
TRANSCRIBER_S = 120.0
HEARD_LIMIT = 4096
WHICH = "Which session? Send it as a reply to one of its messages, or say {sign}switch NAME first."
NO_TRANSCRIBER = "Voice notes are not taken here: config.toml names no `transcriber` for {title}."
NOTHING_HEARD = "Nothing could be made out. Write it instead."


@dataclass(frozen=True, slots=True)
class Sent:
    """An incoming file: its name, its size as announced, and how to download it (None: it is too large)."""

    name: str
    size: int
    fetch: Callable[[int], Awaitable[bytes | None]]


class Received:
    """`say` sends an answer to the same chat; `title` is the name of the service."""

    def __init__(
        self, hub_api: HubApi, say: Callable[[Any, str], None], speaker: Speaker, transcriber: Sequence[str], title: str
    ) -> None:
        self._hub_api, self._say, self._speaker = hub_api, say, speaker
        self._transcriber, self._title = transcriber, title

    async def keep_file(self, origin: Any, sent: Sent, caption: str, session: SessionRecord, identity: str) -> None:
        """Save the file. A caption becomes an instruction about it, typed when the tool is idle."""
        try:
            content = await _fetch(sent)
            path = await asyncio.to_thread(save_inside, self._hub_api.folder(session.session_id), sent.name, content)
        except NotHanded as why:
            self._say(origin, str(why))
            return
        self._hub_api.note(
            "FILE_RECEIVED", session_id=session.session_id, decided_by=identity, path=path, size=len(content)
        )
        told = t("Saved in {name} as {path}.", name=session_name(session), path=path)
        if words := caption.strip():
            hub = self._hub_api.by(self._speaker.caller(identity))
            queued = await hub.enqueue(session.session_id, f"{words} ({path})")
            told = f"{told} {hub_says(queued.message)}"
        self._say(origin, told)

    async def hear(self, origin: Any, sent: Sent, then: Callable[[str], None]) -> None:
        if not self._transcriber:
            self._say(origin, t(NO_TRANSCRIBER, title=self._title))
            return
        try:
            text = await self._transcribe(await _fetch(sent))
        except NotHanded as why:
            self._say(origin, str(why))
            return
        if text:
            then(text)
        else:
            self._say(origin, t(NOTHING_HEARD))

    async def _transcribe(self, content: bytes) -> str:
        """Return the output of the configured transcription command, as one line."""
        with tempfile.TemporaryDirectory(prefix="atlasbridge-voice-") as folder:
            file = Path(folder) / "note.oga"
            file.write_bytes(content)
            words = [word.replace("{file}", str(file)) for word in self._transcriber]
            try:
                output = await _run(words)
            except (OSError, TimeoutError) as fault:
                log.warning("the transcriber failed: %s", fault or type(fault).__name__)
                raise NotHanded(t("The transcriber failed; see `atlasbridge logs`.")) from None
        return " ".join(escape_controls(output.decode("utf-8", "replace")).split())[:HEARD_LIMIT]


async def _run(words: list[str]) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), TRANSCRIBER_S)
    except BaseException:
        if process.returncode is None:
            process.kill()
            await process.wait()
        raise
    if process.returncode:
        raise OSError(f"it ended with status {process.returncode}")
    return output


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
