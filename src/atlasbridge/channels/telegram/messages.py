"""Renders prompts and notices for Telegram: plain text with entities (UTF-16 offsets) and inline keyboards. Pure.

Every message stays within the server's limits: the tool's text gets the space that our own text leaves.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from atlasbridge.channels import templates
from atlasbridge.channels.base import TaskSet
from atlasbridge.channels.callback import (
    AGAIN,
    ALWAYS,
    ANSWER,
    GRANT,
    LATER,
    PAGE,
    SEND,
    SHOW,
    THIS,
    TOGGLE,
    encode_callback,
    encode_verb,
)
from atlasbridge.channels.delivery import Delivery, Shown
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
from atlasbridge.channels.outbox import EDIT, Outbox, Params, Place, Refused, Unreachable
from atlasbridge.channels.receipts import Outcome
from atlasbridge.channels.telegram.api import BotApi
from atlasbridge.channels.templates import Button, Role, offers_again
from atlasbridge.channels.transcript import split_rows
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import short_id
from atlasbridge.core.prompt.model import Choice, PromptRecord
from atlasbridge.core.session.model import SessionRecord

log = logging.getLogger(__name__)

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

    def join(self, other: Body) -> Body:
        at = utf16_units(self.text)
        self.text += other.text
        self.entities += [{**one, "offset": one["offset"] + at} for one in other.entities]
        return self

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
    body = _quoted(record, session, host, templates.render_title(prompt, session), utf16_units(foot.text))
    keyboard = [*render_rows(record, marks), *render_keyboard(record, page)]
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
    body = Body().line(title, "bold")
    origin = Body().some("" if ended else templates.render_kind(prompt, session), "italic")
    origin.line(cut_text(templates.render_header(prompt, session, host, titled=not ended), 300))
    room = TEXT_LIMIT - utf16_units(body.text + origin.text) - taken - NOTES_ROOM
    quotes = fit_quotes(quotes_of(prompt, titled=True), room, utf16_units)
    for quote in quotes:
        _add_quote(body, quote)
    body.some(count_missing(quotes, t(templates.REST)), "bold").some(warn_incomplete(prompt), "bold")
    return body.some(render_effects(prompt), "bold").join(origin)


def _add_quote(body: Body, quote: Quote) -> None:
    if quote.caption:
        body.line(cut_text(f"{quote.caption}:", 140), "italic")
    body.line(quote.text if quote.text.strip() else t("(blank)"), "pre")


# Answers to a person in the same chat: toasts, replies, screens. They run in the background and never delay the poll.

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


# The keyboards of Telegram's messages: answers, marks for several choices, pages of long lists. Pure.

# Marking several choices with inline buttons: each tap changes one mark, and one button sends them all. A button
# contains the marks at the time it was shown, so marks survive a restart; `Picks` knows later taps.

KEPT = 1000
MOST = 30  # number of buttons in one keyboard; a longer list is answered with a text
_TOGGLE = re.compile(r"(\d{1,2})\.([0-9a-f]{1,16})")
_MASK = re.compile(r"[0-9a-f]{1,16}")


class Picks:
    """The marks of each message, as far as this process knows them."""

    def __init__(self) -> None:
        self._masks: OrderedDict[Place, int] = OrderedDict()

    def current(self, place: Place, shown: int) -> int:
        return self._masks.get(place, shown)

    def toggle(self, place: Place, number: int, shown: int) -> int:
        """Change one mark; return the new marks."""
        mask = self._masks[place] = self.current(place, shown) ^ (1 << number)
        while len(self._masks) > KEPT:
            self._masks.popitem(last=False)
        return mask


def render_rows(record: PromptRecord, marks: int | None) -> list[list[dict[str, str]]]:
    """One row per choice and the send button; none if there are too many choices. Without marks, use those of
    the tool."""
    choices = templates.pickable(record.prompt)
    if not choices or choices[-1][0] >= MOST:
        return []
    mask = sum(1 << place for place in templates.premarked(record.prompt)) if marks is None else marks
    rows = [
        [
            {
                "text": f"{'☑' if mask >> place & 1 else '☐'} {templates.short_label(text)}",
                "callback_data": encode_verb(record, TOGGLE, f"{place}.{mask:x}"),
            }
        ]
        for place, text in choices
    ]
    chosen = t("Send ({count} chosen)", count=mask.bit_count())
    send = {"text": f"✅ {chosen}", "callback_data": encode_verb(record, SEND, f"{mask:x}")}
    return [*rows, [send]]


def parse_toggle(value: str, record: PromptRecord) -> tuple[int, int] | None:
    """Return the choice and the marks of the button; None for anything else."""
    match = _TOGGLE.fullmatch(value)
    if match is None or int(match[1]) not in dict(templates.pickable(record.prompt)):
        return None
    return int(match[1]), int(match[2], 16)


def parse_marks(value: str) -> int | None:
    return int(value, 16) if _MASK.fullmatch(value) else None


def marked_value(record: PromptRecord, mask: int) -> str:
    places = [place for place, _ in templates.pickable(record.prompt) if mask >> place & 1]
    return templates.picked_value(record.prompt, places)


# The keyboard of a Telegram message: answers, refusing answers in separate rows, long lists as pages. Pure.

PAIRED_LABEL = 16  # buttons at most this long share a row
ON_ONE_PAGE = 24  # the limit of a keyboard is about 10,000 bytes
PAGE_SIZE = 20
MOST_REFUSING = 6
Keyboard = list[list[dict[str, str]]]
T = TypeVar("T")


def render_keyboard(record: PromptRecord, page: int = 0) -> Keyboard:
    """Short answers share a row; refusing, default, cancel and show have separate rows, in that order."""
    buttons = templates.render_buttons(record.prompt)
    answers = [button for button in buttons if button.role in (Role.ANSWER, Role.ALWAYS)]
    refusing = [button for button in buttons if button.role is Role.REFUSE][:MOST_REFUSING]
    others = [button for button in buttons if button not in answers and button.role is not Role.REFUSE]
    rows: list[list[Button]] = []
    for button in [*_page_of(answers, page), *refusing, *others]:
        if rows and _may_share(button, rows[-1]):
            rows[-1].append(button)
        else:
            rows.append([button])
    shown = [[{"text": button.label, "callback_data": _data(record, button)} for button in row] for row in rows]
    return [*shown, *_turning(record, len(answers), page)]


def render_which(records: Iterable[tuple[PromptRecord, SessionRecord]], message_id: int) -> Keyboard:
    """One button for each prompt that a text can mean."""
    return [
        [{"text": templates.render_brief(record.prompt, session), "callback_data": _this(record, message_id)}]
        for record, session in records
    ]


def render_granting(record: PromptRecord, buttons: Sequence[tuple[str, str]]) -> Keyboard:
    """Two buttons per row: the duration of the grant, and the way out."""
    shown = [{"text": label, "callback_data": encode_verb(record, GRANT, value)} for label, value in buttons]
    return [shown[place : place + 2] for place in range(0, len(shown), 2)]


def render_sure(record: PromptRecord, value: str) -> Keyboard:
    """The second tap of an answer that is not asked again, and the way back to the first buttons."""
    choice = next(one for one in record.prompt.choices if one.value == value)
    sure = {"text": templates.sure_label(choice), "callback_data": encode_callback(record, value)}
    return [[sure], [{"text": f"‹ {t(templates.BACK)}", "callback_data": encode_verb(record, PAGE, "0")}]]


def render_ask_again(record: PromptRecord) -> Keyboard:
    return [[{"text": f"🔁 {t('Ask again')}", "callback_data": encode_verb(record, AGAIN, "")}]]


def render_snooze(record: PromptRecord) -> Keyboard:
    """Buttons below a reminder, to be asked again later."""
    spans = (("In 15 minutes", "15"), ("In an hour", "60"))
    return [
        [{"text": f"💤 {t(span)}", "callback_data": encode_verb(record, LATER, minutes)} for span, minutes in spans]
    ]


def listed_on(record: PromptRecord, page: int) -> Sequence[Choice]:
    """The choices that the text of this page lists."""
    choices = record.prompt.choices
    if record.prompt.constraints.get("multi_select"):
        return choices[:ON_ONE_PAGE]
    plain = [choice for choice in choices if not choice.refuses]
    return [*_page_of(plain, page), *[choice for choice in choices if choice.refuses][:MOST_REFUSING]]


def pages_of(record: PromptRecord) -> int:
    plain = sum(not choice.refuses for choice in record.prompt.choices)
    return 1 if plain <= ON_ONE_PAGE else -(-plain // PAGE_SIZE)


def _page_of(items: Sequence[T], page: int) -> Sequence[T]:
    if len(items) <= ON_ONE_PAGE:
        return items
    return items[page * PAGE_SIZE : (page + 1) * PAGE_SIZE]


def _turning(record: PromptRecord, answers: int, page: int) -> Keyboard:
    pages = pages_of(record)
    if answers <= ON_ONE_PAGE or pages < 2:
        return []
    wanted = [(f"‹ {page}/{pages}", page - 1)] if page else []
    wanted += [(f"{page + 2}/{pages} ›", page + 1)] if page + 1 < pages else []
    return [[{"text": label, "callback_data": encode_verb(record, PAGE, str(to))} for label, to in wanted]]


def _this(record: PromptRecord, message_id: int) -> str:
    return encode_verb(record, THIS, str(message_id))


def _data(record: PromptRecord, button: Button) -> str:
    if button.role is Role.LATER:
        return encode_verb(record, LATER, button.value)
    verb = {Role.SHOW: SHOW, Role.GRANT: GRANT, Role.ALWAYS: ALWAYS}.get(button.role, ANSWER)
    return encode_callback(record, button.value, verb)


def _may_share(button: Button, row: list[Button]) -> bool:
    """Two short plain answers share a row; a refusing or lasting answer never does."""
    return len(row) == 1 and all(
        shown.role is Role.ANSWER and len(shown.label) <= PAIRED_LABEL for shown in [*row, button]
    )
