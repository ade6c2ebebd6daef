"""The channel `desktop`: shows a notification on this machine's screen and removes it when the prompt is settled."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from atlasbridge.channels.base import OneWayChannel, run_program
from atlasbridge.channels.language import machine_reader, reading, say_digest, t
from atlasbridge.channels.receipts import is_end
from atlasbridge.channels.settings import DesktopSettings
from atlasbridge.channels.templates import render_headline, render_notice, tool_name
from atlasbridge.core.clock import Clock
from atlasbridge.core.errors import ChannelError, ConfigError
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import short_id
from atlasbridge.core.newest import Newest
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.model import PromptRecord, Receipt
from atlasbridge.core.session.model import SessionRecord, session_name

# Command lines of the desktop's own program: show, replace or remove a notification. Pure. Text is passed as a separate
# argument, so that the output of a tool is never read as an option, markup or script.

Words = list[str]
APP = "AtlasBridge"
LINUX, MACOS = "notify-send", "osascript"
SCRIPT = (
    "on run argv",
    'if item 3 of argv is not "" then',
    "display notification (item 2 of argv) with title (item 1 of argv) sound name (item 3 of argv)",
    "else",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end if",
    "end run",
)


def choose_program(platform: str, find: Callable[[str], str | None], wanted: str = "") -> str:
    """Return the path of the program that shows notifications, or "" if there is none."""
    if wanted:
        return find(wanted) or ""
    return find(MACOS if platform == "darwin" else LINUX) or ""


def show_words(program: str, title: str, text: str, *, urgent: bool, sound: bool, replaces: str = "") -> Words:
    if program.endswith(MACOS):
        lines = [word for line in SCRIPT for word in ("-e", line)]
        return [program, *lines, "--", title, text, "Ping" if sound else ""]
    words = [program, "--app-name", APP, "--print-id", "--urgency", "critical" if urgent else "normal"]
    words += ["--replace-id", replaces] if replaces else []
    words += ["--hint", "string:sound-name:message-new-instant"] if sound else ["--hint", "boolean:suppress-sound:true"]
    return [*words, "--", title, escape(text)]


def close_words(program: str, shown: str) -> Words:
    """Replace the notification by one that disappears at once. On macOS, notifications cannot be removed."""
    if program.endswith(MACOS) or not shown:
        return []
    gone = ["--expire-time", "1", "--hint", "boolean:transient:true", "--hint", "boolean:suppress-sound:true"]
    return [program, "--app-name", APP, *gone, "--replace-id", shown, "--", APP, t("Settled.")]


def escape(text: str) -> str:
    """Some desktops interpret markup in the text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


LONGEST = 400
CALL_S = 5.0
KEPT = 256
HINT = "install libnotify (notify-send), or switch it off: [channels.desktop] enabled = false"


class DesktopChannel(OneWayChannel):
    """`remote` although it is local: then the person at the terminal gets a moment to answer, several prompts become
    one digest, and no secret is shown."""

    name: ClassVar[str] = "desktop"
    remote: ClassVar[bool] = True

    def __init__(self, settings: Mapping[str, Any], hub_api: HubApi, clock: Clock) -> None:
        super().__init__(settings, hub_api, clock)
        self._own = DesktopSettings.model_validate(dict(settings))
        self._program = choose_program(sys.platform, shutil.which, self._own.program)
        if not self._program:
            raise ConfigError("there is no program that shows a notification here", HINT)
        self._shown: Newest[str, str] = Newest(KEPT)  # prompt or digest -> the desktop's notification id
        self._failed = 0
        self._reader = machine_reader(self._own.language)

    async def send_prompt(self, event: PromptRecord, session: SessionRecord) -> str:
        """A silent prompt gets no notification of its own; the digest lists it."""
        if not self.hub_api.tone(event.prompt_id, self.name).loud:
            return f"silent-{short_id(event.prompt_id)}"
        with reading(self._reader):
            title, text = self._title(event, session), self._text(event)
        await self._show(event.prompt_id, title, text, not event.prompt.idle)
        return f"shown-{short_id(event.prompt_id)}"

    def _title(self, event: PromptRecord, session: SessionRecord) -> str:
        waits = f"{t('{name} waits for you', name=tool_name(session))} · {session_name(session)}"
        return render_headline(event.prompt, session) if self._own.show_text else waits

    def _text(self, event: PromptRecord) -> str:
        asked = escape_controls(event.prompt.excerpt) if self._own.show_text and not event.prompt.secret else ""
        return f"{asked[:LONGEST]}\n{t('atlasbridge approvals, or the page')}".strip()

    async def update_prompt(self, message_id: str, event: PromptRecord, receipt: Receipt) -> None:
        session = self.hub_api.session(event.session_id)
        if session is not None and receipt.stage == "reminder":
            with reading(self._reader):
                title, text = f"{t('Still waiting')}: {session_name(session)}", self._text(event)
            await self._show(event.prompt_id, title, text, not event.prompt.idle)
        elif is_end(receipt) and (shown := self._shown.pop(event.prompt_id, "")):
            await self._call(close_words(self._program, shown))

    async def notify(self, message: str, session: SessionRecord | None = None) -> None:
        if session is None or self._own.session_notices:
            with reading(self._reader):
                told = render_notice(message, session)
            await self._show("", "AtlasBridge", told[:LONGEST], False)

    async def tell_digest(self, key: str, text: str, loud: bool) -> None:
        """Replace the notification of this digest when it changes, so that there is only one."""
        if loud or f"digest-{key}" in self._shown:
            with reading(self._reader):
                told, title = say_digest(escape_controls(text)), t("AtlasBridge: more questions for you")
            lines = told if self._own.show_text else told.partition("\n")[0]
            await self._show(f"digest-{key}", title, lines[:LONGEST], False)

    async def _show(self, key: str, title: str, text: str, urgent: bool) -> None:
        before = self._shown.get(key, "")
        words = show_words(self._program, title, text, urgent=urgent, sound=self._own.sound, replaces=before)
        number = (await self._call(words)).strip()
        if key and number.isdecimal():
            self._shown[key] = number

    async def _call(self, words: Words) -> str:
        if not words:
            return ""
        try:
            status, said, why = await run_program(words, CALL_S)
        except TimeoutError:
            raise ChannelError("the desktop did not take a notification in time", HINT) from None
        except OSError as fault:
            raise ChannelError(f"the notification could not be shown ({fault.strerror})", HINT) from None
        if status:
            self._failed += 1
            raise ChannelError(f"the notification could not be shown ({why})", HINT)
        return said.decode(errors="replace")

    def health(self) -> dict[str, Any]:
        return {"state": "ok", "program": self._program, "failed": self._failed}
