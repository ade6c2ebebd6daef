"""Renders cards for Telegram: plain text with entities (UTF-16 offsets) and inline keyboards. Pure.

Every message stays within the server's limits: the tool's text gets the space that our own text leaves.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from atlasbridge.channels import card as cards
from atlasbridge.channels import templates
from atlasbridge.channels.callback import Verb, encode_verb
from atlasbridge.channels.card import Card, Press
from atlasbridge.channels.excerpt import cut_to
from atlasbridge.channels.language import t
from atlasbridge.channels.outbox import Params
from atlasbridge.channels.templates import Role
from atlasbridge.core.prompt.model import Choice, PromptRecord
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.values import replace

TEXT_LIMIT = 4096
INLINE_LIMIT = 3500  # longer output goes out as a file
LISTED_ROOM = 1500
NOTES_ROOM = 300  # for captions, counts and warnings about quotes
PLACEHOLDER_LIMIT = 64
CAPTION_LIMIT = 1000
Keyboard = list[list[dict[str, str]]]
T = TypeVar("T")


def utf16_units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def cut_text(text: str, limit: int) -> str:
    """Cut to at most `limit` UTF-16 units, never inside a surrogate pair."""
    return cut_to(text, limit, utf16_units)


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

    def params(self, keyboard: Keyboard | None = None) -> Params:
        """Return the parameters for Telegram. The end of the text is stripped, because the server does the same."""
        out: Params = {"text": self.text.rstrip("\n"), "link_preview_options": {"is_disabled": True}}
        if self.entities:
            out["entities"] = self.entities
        if keyboard:
            out["reply_markup"] = {"inline_keyboard": keyboard}
        return out


def question(record: PromptRecord, session: SessionRecord, host: str, page: int = 0) -> Card:
    return replace(cards.question(record, session, host, listed_on(record, page), LISTED_ROOM), page=page)


def render(card: Card) -> Params:
    body = Body().some(cut_text(card.title, 300), "bold")
    origin = Body().some(card.kind, "italic").some(cut_text(card.header, 300))
    if not card.quotes:
        body.join(origin).some(cut_text(card.text, INLINE_LIMIT))
    foot = "".join(f"\n{part}\n" for part in (cut_text(card.listed, LISTED_ROOM + 100), card.hint, card.last) if part)
    if card.quotes:
        taken = utf16_units(body.text + origin.text + foot) + NOTES_ROOM
        quotes, notes = card.fitted(TEXT_LIMIT - taken, utf16_units)
        for quote in quotes:
            if quote.caption:
                body.line(cut_text(f"{quote.caption}:", 140), "italic")
            body.line(quote.text if quote.text.strip() else t("(blank)"), "pre")
        for note in notes:
            body.line(note, "bold")
        body.join(origin)
    keyboard = [[_button(one) for one in row] for row in card.rows]
    if card.asks and not card.rows:
        keyboard = [*render_rows(card.asks, card.marks), *render_keyboard(card.asks, card.page)]
    return body.add(foot).params(keyboard)


def in_topic(topic_id: str) -> dict[str, int]:
    return {"message_thread_id": int(topic_id)} if topic_id else {}


def reply_to(message_id: str) -> dict[str, Any]:
    return {"reply_parameters": {"message_id": int(message_id), "allow_sending_without_reply": True}}


def file_of(message: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the attachment of a message (of a photo, the largest size) and a file name for it."""
    if document := message.get("document"):
        return document, str(document.get("file_name") or "file")
    if photos := message.get("photo"):
        return photos[-1], f"photo-{int(message.get('date') or 0)}.jpg"
    return message.get("voice") or message.get("audio") or {}, "note.oga"


# Marking several choices with inline buttons: each tap changes one mark, and one button sends them all. A button
# contains the marks at the time it was shown, so marks survive a restart; the channel knows later taps.

KEPT = 1000  # messages of which later taps are known
MOST = 30  # number of buttons in one keyboard; a longer list is answered with a text
_TOGGLE = re.compile(r"(\d{1,2})\.([0-9a-f]{1,16})")
_MASK = re.compile(r"[0-9a-f]{1,16}")


def render_rows(record: PromptRecord, marks: int | None) -> Keyboard:
    """One row per choice and the send button; none if there are too many choices. Without marks, use those of
    the tool."""
    choices = templates.pickable(record.prompt)
    if not choices or choices[-1][0] >= MOST:
        return []
    mask = sum(1 << place for place in templates.premarked(record.prompt)) if marks is None else marks
    chosen = t("Send ({count} chosen)", count=mask.bit_count())
    rows = [
        Press(
            f"{'☑' if mask >> place & 1 else '☐'} {templates.short_label(text)}",
            encode_verb(record, Verb.TOGGLE, f"{place}.{mask:x}"),
        )
        for place, text in choices
    ]
    return [[_button(one)] for one in [*rows, Press(f"✅ {chosen}", encode_verb(record, Verb.SEND, f"{mask:x}"))]]


def parse_toggle(value: str, record: PromptRecord) -> tuple[int, int] | None:
    """Return the choice and the marks of the button; None for anything else."""
    match = _TOGGLE.fullmatch(value)
    if match is None or int(match[1]) not in dict(templates.pickable(record.prompt)):
        return None
    return int(match[1]), int(match[2], 16)


def parse_marks(value: str) -> int | None:
    return int(value, 16) if _MASK.fullmatch(value) else None


# The keyboard of a prompt: answers, refusing answers in separate rows, long lists as pages.

PAIRED_LABEL = 16  # buttons at most this long share a row
ON_ONE_PAGE = 24  # the limit of a keyboard is about 10,000 bytes
PAGE_SIZE = 20
MOST_REFUSING = 6


def render_keyboard(record: PromptRecord, page: int = 0) -> Keyboard:
    """Short answers share a row; refusing, default, cancel and show have separate rows, in that order."""
    answers, refusing, others = cards.grouped(record)
    rows: list[list[Press]] = []
    for press in [*_page_of(answers, page), *refusing[:MOST_REFUSING], *others]:
        if rows and _may_share(press, rows[-1]):
            rows[-1].append(press)
        else:
            rows.append([press])
    if len(answers) > ON_ONE_PAGE:
        rows.append(_turning(record, page))
    return [[_button(press) for press in row] for row in rows]


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


def _turning(record: PromptRecord, page: int) -> list[Press]:
    pages = pages_of(record)
    wanted = [(f"‹ {page}/{pages}", page - 1)] if page else []
    wanted += [(f"{page + 2}/{pages} ›", page + 1)] if page + 1 < pages else []
    return [Press(label, encode_verb(record, Verb.PAGE, str(to))) for label, to in wanted]


def _button(press: Press) -> dict[str, str]:
    return {"text": press.label, "callback_data": press.data}


def _may_share(press: Press, row: list[Press]) -> bool:
    """Two short plain answers share a row; a refusing or lasting answer never does."""
    return len(row) == 1 and all(
        shown.role is Role.ANSWER and len(shown.label) <= PAIRED_LABEL for shown in [*row, press]
    )
