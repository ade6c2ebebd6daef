"""Photos, files and voice notes that a person sends: fetched, put into the session's folder, or made into words.

Words that were heard are never an answer by themselves: they are shown, and a tap sends them.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from atlasbridge.channels.answer_commands import Speaker
from atlasbridge.channels.handed import MOST_IN, NotHanded, save_inside
from atlasbridge.channels.outbox import Refused, Unreachable
from atlasbridge.channels.telegram.api import BotApi
from atlasbridge.channels.telegram.voice import Origin, Voice
from atlasbridge.channels.wording import session_name
from atlasbridge.core.ports import Desk
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.visible import visible

log = logging.getLogger(__name__)
TRANSCRIBER_S = 120.0
HEARD_LIMIT = 4096
TOO_LARGE = f"A file may have at most {MOST_IN // 2**20} MB."
WHICH = "Which session? Send it as a reply to one of its messages, or say /switch NAME first."
NO_TRANSCRIBER = "Voice notes are not taken here: config.toml names no `transcriber` for Telegram."
NOTHING_HEARD = "Nothing could be made out. Write it instead."


class Received:
    def __init__(self, api: BotApi, desk: Desk, voice: Voice, speaker: Speaker, transcriber: Sequence[str]) -> None:
        self._api, self._desk, self._voice, self._speaker = api, desk, voice, speaker
        self._transcriber = transcriber

    async def keep_file(self, origin: Origin, message: dict[str, Any], session: SessionRecord, identity: str) -> None:
        """With a caption, that is an instruction about it, typed at the next idle box."""
        about, name = _file_of(message)
        try:
            content = await self._fetch(about)
            path = await asyncio.to_thread(save_inside, self._desk.folder(session.session_id), name, content)
        except NotHanded as why:
            self._voice.say(origin, str(why))
            return
        self._desk.note(
            "FILE_RECEIVED", session_id=session.session_id, decided_by=identity, path=path, size=len(content)
        )
        told = f"Saved in {session_name(session)} as {path}."
        if caption := str(message.get("caption") or "").strip():
            reply = self._speaker.speak(identity, "", f"{caption} ({path})", None, session_id=session.session_id)
            told = f"{told} {self._desk.enqueue(reply).sentence}"
        self._voice.say(origin, told)

    async def hear(self, origin: Origin, message: dict[str, Any], then: Callable[[str], None]) -> None:
        if not self._transcriber:
            self._voice.say(origin, NO_TRANSCRIBER)
            return
        about = message.get("voice") or message.get("audio") or {}
        try:
            text = await self._transcribe(await self._fetch(about))
        except NotHanded as why:
            self._voice.say(origin, str(why))
            return
        if text:
            then(text)
        else:
            self._voice.say(origin, NOTHING_HEARD)

    async def _fetch(self, about: dict[str, Any]) -> bytes:
        if int(about.get("file_size") or 0) > MOST_IN:
            raise NotHanded(TOO_LARGE)
        try:
            content = await self._api.download(str(about.get("file_id")), MOST_IN)
        except (Refused, Unreachable) as fault:
            raise NotHanded(f"It could not be fetched: {fault}.") from None
        if content is None:
            raise NotHanded(TOO_LARGE)
        return content

    async def _transcribe(self, content: bytes) -> str:
        """What the configured command writes about the file; one line, whatever it was."""
        with tempfile.TemporaryDirectory(prefix="atlasbridge-voice-") as folder:
            file = Path(folder) / "note.oga"
            file.write_bytes(content)
            words = [word.replace("{file}", str(file)) for word in self._transcriber]
            try:
                output = await _run(words)
            except (OSError, TimeoutError) as fault:
                log.warning("the transcriber failed: %s", fault or type(fault).__name__)
                raise NotHanded("The transcriber failed; see `atlasbridge logs`.") from None
        return " ".join(visible(output.decode("utf-8", "replace")).split())[:HEARD_LIMIT]


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


def _file_of(message: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """What to fetch, and what to call it; of a photo, the largest."""
    if document := message.get("document"):
        return document, str(document.get("file_name") or "file")
    photos = message.get("photo") or [{}]
    return photos[-1], f"photo-{int(message.get('date') or 0)}.jpg"
