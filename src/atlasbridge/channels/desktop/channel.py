"""The channel `desktop`: a notification on this machine's screen, taken back when its prompt is settled."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, ClassVar

from atlasbridge.channels.base import BaseChannel
from atlasbridge.channels.desktop.notifiers import Words, choose_program, close_words, show_words
from atlasbridge.channels.desktop.settings import DesktopSettings
from atlasbridge.channels.outcome import is_end
from atlasbridge.channels.wording import render_headline, session_name, tool_name
from atlasbridge.core.clock import Clock
from atlasbridge.core.errors import ChannelError, ConfigError
from atlasbridge.core.ids import short_id
from atlasbridge.core.ports import Desk
from atlasbridge.core.prompt.model import PromptRecord, Reject
from atlasbridge.core.prompt.reply import InboundReply, Receipt
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.visible import visible

LONGEST = 400
CALL_S = 5.0
KEPT = 256
HINT = "install libnotify (notify-send), or switch it off: [channels.desktop] enabled = false"


class DesktopChannel(BaseChannel):
    """Called `remote`: who types in that very session is given a moment, many are told together, no secret is shown."""

    name: ClassVar[str] = "desktop"
    remote: ClassVar[bool] = True

    def __init__(self, settings: Mapping[str, Any], desk: Desk, clock: Clock) -> None:
        super().__init__(settings, desk, clock)
        self._own = DesktopSettings.model_validate(dict(settings))
        self._program = choose_program(sys.platform, shutil.which, self._own.program)
        if not self._program:
            raise ConfigError("there is no program that shows a notification here", HINT)
        self._shown: OrderedDict[str, str] = OrderedDict()  # prompt or digest -> the desktop's own number
        self._failed = 0

    async def send_prompt(self, event: PromptRecord, session: SessionRecord) -> str:
        """What is to make no sound is not shown by itself: it stands in the digest."""
        if not self.desk.tone(event.prompt_id, self.name).loud:
            return f"silent-{short_id(event.prompt_id)}"
        await self._show(event.prompt_id, self._title(event, session), self._text(event), not event.prompt.idle)
        return f"shown-{short_id(event.prompt_id)}"

    def _title(self, event: PromptRecord, session: SessionRecord) -> str:
        waits = f"{tool_name(session)} waits for you · {session_name(session)}"
        return render_headline(event.prompt, session) if self._own.show_text else waits

    def _text(self, event: PromptRecord) -> str:
        asked = visible(event.prompt.excerpt) if self._own.show_text and not event.prompt.secret else ""
        return f"{asked[:LONGEST]}\natlasbridge approvals, or the page".strip()

    async def update_prompt(self, message_id: str, event: PromptRecord, receipt: Receipt) -> None:
        session = self.desk.session(event.session_id)
        if session is not None and receipt.stage == "reminder":
            title = f"Still waiting: {session_name(session)}"
            await self._show(event.prompt_id, title, self._text(event), not event.prompt.idle)
        elif is_end(receipt) and (shown := self._shown.pop(event.prompt_id, "")):
            await self._call(close_words(self._program, shown, "AtlasBridge"))

    async def notify(self, message: str, session: SessionRecord | None = None) -> None:
        if session is None or self._own.session_notices:
            await self._show("", "AtlasBridge", visible(message)[:LONGEST], False)

    async def tell_digest(self, key: str, text: str, loud: bool) -> None:
        """Put in its own place again as it changes; nobody wants a second one."""
        if loud or f"digest-{key}" in self._shown:
            lines = visible(text) if self._own.show_text else visible(text).partition("\n")[0]
            await self._show(f"digest-{key}", "AtlasBridge: more questions wait", lines[:LONGEST], False)

    async def _show(self, key: str, title: str, text: str, urgent: bool) -> None:
        before = self._shown.get(key, "")
        words = show_words(self._program, title, text, urgent=urgent, sound=self._own.sound, replaces=before)
        number = (await self._call(words)).strip()
        if key and number.isdecimal():
            self._shown[key] = number
            while len(self._shown) > KEPT:
                self._shown.popitem(last=False)

    async def _call(self, words: Words) -> str:
        if not words:
            return ""
        try:
            process = await asyncio.create_subprocess_exec(
                *words, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
            )
        except OSError as fault:
            raise ChannelError(f"the notification could not be shown ({fault.strerror})", HINT) from None
        try:
            said, fault_text = await asyncio.wait_for(process.communicate(), CALL_S)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise ChannelError("the desktop did not take a notification in time", HINT) from None
        if process.returncode:
            self._failed += 1
            why = visible(fault_text.decode(errors="replace").strip(), keep_lines=False)[:120]
            raise ChannelError(f"the notification could not be shown ({why})", HINT)
        return said.decode(errors="replace")

    async def receive_reply(self) -> InboundReply:
        never: asyncio.Future[InboundReply] = asyncio.get_running_loop().create_future()
        return await never

    async def answer_reply(self, reply: InboundReply, outcome: Receipt | Reject) -> None:
        """Nobody replies here."""

    async def close(self) -> None:
        """Nothing is open."""

    def health(self) -> dict[str, Any]:
        return {"state": "ok", "program": self._program, "failed": self._failed}
