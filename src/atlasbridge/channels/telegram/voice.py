"""What is answered to a person where they spoke: toasts, replies, screens.  None of it keeps the poll waiting."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from atlasbridge.channels.delivery import Delivery
from atlasbridge.channels.outbox import Outbox, Params, Place, Refused, Unreachable
from atlasbridge.channels.quoting import LAST_OUTPUT, whole_text
from atlasbridge.channels.reading import split_rows
from atlasbridge.channels.shown import Shown
from atlasbridge.channels.tasks import TaskSet
from atlasbridge.channels.telegram import templates
from atlasbridge.channels.telegram.api import BotApi
from atlasbridge.channels.telegram.keyboard import render_which
from atlasbridge.channels.turns import EDIT
from atlasbridge.channels.wording import offers_again
from atlasbridge.core.prompt.model import PromptRecord
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.visible import visible

log = logging.getLogger(__name__)
TOAST_LIMIT, TOASTS_AT_ONCE = 200, 4
CAPTION_LIMIT = 1000
MOST_PIECES = 4  # messages instead of a file


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a reply came from, so that this very reply can be answered; `at` is by Telegram's clock."""

    chat_id: int
    message_id: int
    topic_id: int | None = None
    query_id: str = ""
    update_id: str = ""
    seen_before: bool = False
    at: float = 0.0

    @property
    def place(self) -> Place:
        return str(self.chat_id), str(self.message_id)


class Voice:
    def __init__(
        self, api: BotApi, outbox: Outbox, delivery: Delivery, shown: Shown, tasks: TaskSet, host: str
    ) -> None:
        self._api, self._outbox, self._delivery, self._shown = api, outbox, delivery, shown
        self._tasks, self._host = tasks, host
        self._toasting = asyncio.Semaphore(TOASTS_AT_ONCE)  # a storm of taps is no reason for a storm of connections

    def say(self, origin: Origin, sentence: str) -> None:
        """A toast for a tap, a reply for a text."""
        if origin.query_id:
            self._tasks.hold(self._toast(origin, templates.cut_text(visible(sentence), TOAST_LIMIT)))
        else:
            self.answer(origin, templates.render_notice(sentence, None, self._host) | reply_to(origin.message_id))

    def answer(self, origin: Origin, params: Params) -> None:
        self._outbox.post(str(origin.chat_id), params | in_topic(origin.topic_id), EDIT)

    def ask_which(self, origin: Origin, sentence: str, offered: Iterable[tuple[PromptRecord, SessionRecord]]) -> None:
        """The question back, as a reply to the text it is about."""
        params = templates.render_notice(sentence, None, self._host) | reply_to(origin.message_id)
        keyboard = render_which(offered, origin.message_id)
        self.answer(origin, params | {"reply_markup": {"inline_keyboard": keyboard}})

    def ask_for_words(self, origin: Origin, record: PromptRecord, label: str) -> None:
        """The field for the words opens by itself; a reply to that message answers the prompt."""
        self.say(origin, "Write your words as a reply.")
        params = templates.render_words_wanted(record, label) | in_topic(origin.topic_id) | reply_to(origin.message_id)
        self._tasks.hold(self._ask_for_words(str(origin.chat_id), record.prompt_id, params))

    async def _ask_for_words(self, chat: str, prompt_id: str, params: Params) -> None:
        """Telegram lets nobody edit a message with such a field: it refers to the prompt, and does not show it."""
        posted = await self._outbox.send(chat, params)
        self._shown.refer(prompt_id, (chat, posted.message))

    def send_screen(self, origin: Origin, title: str, screen: str) -> None:
        """Inside a message where it fits, else as a file."""
        if inline := templates.render_screen(title, screen):
            self.answer(origin, inline)
        else:
            self.send_file(origin, title, "screen.txt", visible(screen).encode())

    def tell(self, origin: Origin, text: str) -> None:
        """What a command answers: in a few messages where these are enough, else as a file."""
        pieces = split_rows(visible(text).split("\n"), templates.INLINE_LIMIT, templates.utf16_units) or [""]
        if len(pieces) > MOST_PIECES:
            self.send_file(origin, pieces[0].partition("\n")[0], "answer.txt", visible(text).encode())
            return
        for piece in pieces:
            self.answer(origin, templates.render_notice(piece, None, ""))

    def send_words(self, origin: Origin, title: str, text: str, name: str) -> None:
        """In a few messages where these are enough, else as a file: all of it in either."""
        pieces = split_rows(visible(text).rstrip().split("\n"), templates.INLINE_LIMIT, templates.utf16_units)
        if len(pieces) > MOST_PIECES:
            self.send_file(origin, title, name, visible(text).encode())
            return
        for number, piece in enumerate(pieces or ["(nothing)"], 1):
            counted = title if len(pieces) < 2 else f"{title} ({number} of {len(pieces)})"
            self.answer(origin, templates.render_screen(counted, piece) or {})

    def send_file(self, origin: Origin, title: str, name: str, content: bytes, picture: bool = False) -> None:
        caption = templates.cut_text(visible(title), CAPTION_LIMIT)
        kind = "photo" if picture else "document"  # a person's own file is sent as it is
        self.answer(origin, {"caption": caption, kind: (name, content)})

    def show_more(self, origin: Origin, record: PromptRecord) -> None:
        self.say(origin, "Here it is.")
        again = offers_again(record)
        whole = (record.prompt.screen or record.prompt.excerpt) if again else whole_text(record.prompt)
        if not again or len(whole) > LAST_OUTPUT:
            self.send_screen(origin, "Last output:" if again else "All of it:", whole)
        if again:
            params = templates.render_again(record) | in_topic(origin.topic_id)
            send = self._delivery.send_to(str(origin.chat_id), record, lambda *_: params, patient=True)
            self._tasks.hold(send)

    async def _toast(self, origin: Origin, text: str) -> None:
        try:
            async with self._toasting:
                await self._api.call("answerCallbackQuery", {"callback_query_id": origin.query_id, "text": text})
        except (Refused, Unreachable) as fault:
            log.info("a tap could not be answered: %s", fault)


def in_topic(topic_id: int | None) -> dict[str, int]:
    return {} if topic_id is None else {"message_thread_id": topic_id}


def reply_to(message_id: int) -> dict[str, Any]:
    return {"reply_parameters": {"message_id": message_id, "allow_sending_without_reply": True}}


def file_of(message: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """What a person sent along: how to ask for it, and what to call it; of a photo, the largest."""
    if document := message.get("document"):
        return document, str(document.get("file_name") or "file")
    if photos := message.get("photo"):
        return photos[-1], f"photo-{int(message.get('date') or 0)}.jpg"
    return message.get("voice") or message.get("audio") or {}, "note.oga"
