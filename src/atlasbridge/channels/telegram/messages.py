"""Renders prompts and notices for Telegram: plain text with entities (UTF-16 offsets) and inline keyboards. Pure.

Every message stays within the server's limits: the tool's text gets the space that our own text leaves.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from atlasbridge.channels import templates
from atlasbridge.channels.delivery import Delivery
from atlasbridge.channels.excerpt import (
    LAST_OUTPUT,
    Quote,
    count_missing,
    cut_to,
    fit_quotes,
    quotes_of,
    render_effects,
    title_whole,
    warn_incomplete,
    whole_text,
)
from atlasbridge.channels.language import t
from atlasbridge.channels.message_index import Shown
from atlasbridge.channels.outbox import EDIT, Outbox, Params, Place, Refused, Unreachable
from atlasbridge.channels.receipts import Outcome
from atlasbridge.channels.tasks import TaskSet
from atlasbridge.channels.telegram import buttons
from atlasbridge.channels.telegram.api import BotApi
from atlasbridge.channels.telegram.buttons import Keyboard, listed_on, render_keyboard, render_which
from atlasbridge.channels.templates import offers_again
from atlasbridge.channels.transcript import split_rows
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import short_id
from atlasbridge.core.prompt.model import PromptRecord
from atlasbridge.core.session.model import SessionRecord

TEXT_LIMIT = 4096
INLINE_LIMIT = 3500  # longer output goes out as a file
LISTED_ROOM = 1500
NOTES_ROOM = 300  # for captions, counts and warnings about quotes
PLACEHOLDER_LIMIT = 64


def utf16_units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


@dataclass(slots=True)
class Body:
    """A message under construction: text, and its entities at the right offsets."""

    text: str = ""
    entities: list[dict[str, Any]] = field(default_factory=list)

    def add(self, text: str, style: str = "") -> Body:
        if style and text:
            at = utf16_units(self.text)
            self.entities.append({"type": style, "offset": at, "length": utf16_units(text)})
        self.text += text
        return self

    def line(self, text: str = "", style: str = "") -> Body:
        return self.add(text, style).add("\n")

    def some(self, text: str, style: str = "") -> Body:
        """Add a line, unless it is empty."""
        return self.line(text, style) if text else self

    def params(self, keyboard: Keyboard | None = None) -> dict[str, Any]:
        """Return the parameters for Telegram. The end of the text is stripped, because the server does the same."""
        out: dict[str, Any] = {"text": self.text.rstrip("\n"), "link_preview_options": {"is_disabled": True}}
        if self.entities:
            out["entities"] = self.entities
        if keyboard:
            out["reply_markup"] = {"inline_keyboard": keyboard}
        return out


def render_prompt(
    record: PromptRecord, session: SessionRecord, host: str, marks: int | None = None, page: int = 0
) -> dict[str, Any]:
    """Render the prompt with its keyboard."""
    prompt = record.prompt
    foot = Body()
    if listed := templates.listed_choices(prompt, listed_on(record, page), LISTED_ROOM):
        foot.line().line(cut_text("\n".join(listed), LISTED_ROOM + 100))
    if hint := templates.render_hint(prompt, record.prompt_id):
        foot.line().line(hint)
    foot.line().line(templates.render_deadline(record))
    body = _quoted(record, session, host, templates.render_headline(prompt, session), utf16_units(foot.text))
    keyboard = [*buttons.render_rows(record, marks), *render_keyboard(record, page)]
    return body.add(foot.text).params(keyboard)


def render_short(record: PromptRecord, session: SessionRecord) -> dict[str, Any]:
    """A short form if the server refuses the whole message: it says that a prompt waits and where to read it."""
    title = f"❗ {t('{name} asks something', name=templates.session_name(session))}"
    return (
        Body().line(cut_text(title, 200), "bold").line(t(templates.NOT_SHOWN)).line(short_id(record.prompt_id)).params()
    )


def render_outcome(
    record: PromptRecord, session: SessionRecord, outcome: Outcome, host: str, keyboard: Keyboard | None = None
) -> dict[str, Any]:
    """The same message after the prompt ended or was answered: the title tells the outcome; the buttons are gone."""
    foot = Body().line().line(outcome.detail, "italic") if outcome.detail else Body()
    body = _quoted(record, session, host, cut_text(outcome.title, 300), utf16_units(foot.text), ended=True)
    if outcome.detail:
        body.line().line(outcome.detail, "italic")
    return body.params(keyboard)


def render_notice(message: str, session: SessionRecord | None, host: str) -> dict[str, Any]:
    body = Body()
    if session is not None:
        name = templates.session_name(session)
        parts = (name, templates.tool_name(session), short_id(session.session_id), templates.host_name(session, host))
        body.line(" · ".join(part for part in parts if part), "italic")
    return body.line(cut_text(escape_controls(message), INLINE_LIMIT) or "…").params()


def render_words_wanted(record: PromptRecord, label: str) -> dict[str, Any]:
    """Ask for the text that a choice needs. The answer is a reply to this message."""
    wanted = t("Write your words for “{label}” as a reply to this message.", label=templates.short_label(label))
    asked = Body().line(f"✍ {wanted}")
    held = cut_text(templates.short_label(label), PLACEHOLDER_LIMIT)
    return asked.params() | {"reply_markup": {"force_reply": True, "selective": True, "input_field_placeholder": held}}


def render_again(record: PromptRecord) -> dict[str, Any]:
    """The last output of an ambiguous prompt, with the same buttons again."""
    text = cut_text(
        escape_controls(record.prompt.screen or record.prompt.excerpt).rstrip()[-LAST_OUTPUT:], INLINE_LIMIT
    )
    return Body().line(t("Last output:")).line(text or t("(empty)"), "pre").params(render_keyboard(record))


def render_screen(title: str, screen: str) -> dict[str, Any] | None:
    """Render a screen as a message; None if it is too long, then it is sent as a file."""
    text = escape_controls(screen).rstrip()
    if utf16_units(text) > INLINE_LIMIT:
        return None
    return Body().line(cut_text(title, 200)).line(text or t("(empty)"), "pre").params()


def cut_text(text: str, limit: int) -> str:
    """Cut to at most `limit` UTF-16 units, never inside a surrogate pair."""
    return cut_to(text, limit, utf16_units)


def _quoted(
    record: PromptRecord, session: SessionRecord, host: str, title: str, taken: int, ended: bool = False
) -> Body:
    """Title, origin, and the tool's own text in the remaining space."""
    prompt = record.prompt
    body = Body().line(title, "bold").some("" if ended else templates.render_kind(prompt, session), "italic")
    body.line(cut_text(templates.render_header(prompt, session, host), 300)).line()
    room = TEXT_LIMIT - utf16_units(body.text) - taken - NOTES_ROOM
    quotes = fit_quotes(quotes_of(prompt), room, utf16_units)
    for quote in quotes:
        _add_quote(body, quote)
    return (
        body.some(count_missing(quotes, t(templates.REST)), "bold")
        .some(warn_incomplete(prompt), "bold")
        .some(render_effects(prompt), "bold")
    )


def _add_quote(body: Body, quote: Quote) -> None:
    if quote.caption:
        body.line(cut_text(f"{quote.caption}:", 140), "italic")
    body.line(quote.text if quote.text.strip() else t("(blank)"), "pre")


# Answers to a person in the same chat: toasts, replies, screens. They run in the background and never delay the poll.

log = logging.getLogger(__name__)
TOAST_LIMIT, TOASTS_AT_ONCE = 200, 4
CAPTION_LIMIT = 1000
MOST_PIECES = 4  # a longer text is sent as a file


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a reply came from, so that it can be answered there. `at` is by Telegram's clock."""

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
        self._toasting = asyncio.Semaphore(TOASTS_AT_ONCE)  # many taps must not open many connections

    def say(self, origin: Origin, sentence: str) -> None:
        """Answer a tap with a toast, and a text with a reply."""
        if origin.query_id:
            self._tasks.hold(self._toast(origin, cut_text(escape_controls(sentence), TOAST_LIMIT)))
        else:
            self.answer(origin, render_notice(sentence, None, self._host) | reply_to(origin.message_id))

    def answer(self, origin: Origin, params: Params) -> None:
        self._outbox.post(str(origin.chat_id), params | in_topic(origin.topic_id), EDIT)

    def ask_which(self, origin: Origin, sentence: str, offered: Iterable[tuple[PromptRecord, SessionRecord]]) -> None:
        """Ask which prompt the text means, as a reply to that text."""
        params = render_notice(sentence, None, self._host) | reply_to(origin.message_id)
        keyboard = render_which(offered, origin.message_id)
        self.answer(origin, params | {"reply_markup": {"inline_keyboard": keyboard}})

    def ask_for_words(self, origin: Origin, record: PromptRecord, label: str) -> None:
        """Ask for a text. The input field opens by itself, and a reply to that message answers the prompt."""
        self.say(origin, t("Write your words as a reply."))
        params = render_words_wanted(record, label) | in_topic(origin.topic_id) | reply_to(origin.message_id)
        self._tasks.hold(self._ask_for_words(str(origin.chat_id), record.prompt_id, params))

    async def _ask_for_words(self, chat: str, prompt_id: str, params: Params) -> None:
        """Telegram cannot edit a message with such a field, so it is recorded as a reference, not as a place of the
        prompt."""
        posted = await self._outbox.send(chat, params)
        self._shown.refer(prompt_id, (chat, posted.message))

    def send_screen(self, origin: Origin, title: str, screen: str) -> None:
        """Show the screen in a message if it fits, otherwise as a file."""
        if inline := render_screen(title, screen):
            self.answer(origin, inline)
        else:
            self.send_file(origin, title, "screen.txt", escape_controls(screen).encode())

    def tell(self, origin: Origin, text: str) -> None:
        """Send the answer of a command as a few messages if it fits, otherwise as a file."""
        pieces = split_rows(escape_controls(text).split("\n"), INLINE_LIMIT, utf16_units) or [""]
        if len(pieces) > MOST_PIECES:
            self.send_file(origin, pieces[0].partition("\n")[0], "answer.txt", escape_controls(text).encode())
            return
        for piece in pieces:
            self.answer(origin, render_notice(piece, None, ""))

    def send_words(self, origin: Origin, title: str, text: str, name: str) -> None:
        """Send the complete text as a few messages if it fits, otherwise as a file."""
        pieces = split_rows(escape_controls(text).rstrip().split("\n"), INLINE_LIMIT, utf16_units)
        if len(pieces) > MOST_PIECES:
            self.send_file(origin, title, name, escape_controls(text).encode())
            return
        for number, piece in enumerate(pieces or [t("(nothing)")], 1):
            counted = title if len(pieces) < 2 else f"{title} ({templates.page_of(number, len(pieces))})"
            self.answer(origin, render_screen(counted, piece) or {})

    def send_file(self, origin: Origin, title: str, name: str, content: bytes, picture: bool = False) -> None:
        caption = cut_text(escape_controls(title), CAPTION_LIMIT)
        kind = "photo" if picture else "document"  # a person's own file is sent unchanged
        self.answer(origin, {"caption": caption, kind: (name, content)})

    def show_more(self, origin: Origin, record: PromptRecord) -> None:
        self.say(origin, t("Here it is."))
        again = offers_again(record)
        whole = (record.prompt.screen or record.prompt.excerpt) if again else whole_text(record.prompt)
        if not again or len(whole) > LAST_OUTPUT:
            self.send_screen(origin, t("Last output:") if again else title_whole(record.prompt), whole)
        if again:
            params = render_again(record) | in_topic(origin.topic_id)
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
    """Return the attachment of a message (of a photo, the largest size) and a file name for it."""
    if document := message.get("document"):
        return document, str(document.get("file_name") or "file")
    if photos := message.get("photo"):
        return photos[-1], f"photo-{int(message.get('date') or 0)}.jpg"
    return message.get("voice") or message.get("audio") or {}, "note.oga"
