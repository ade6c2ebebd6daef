"""The callback data of Telegram buttons: the short form of the specification, at most 64 bytes. Pure.

`ans:{prompt 8}:{session 8}:{nonce 16}:{value}` answers, `shw:...:` shows more, `tgl:...:{place}.{marks}` marks one of
several choices and `snd:...:{marks}` sends them, `alw:...:{value}` asks for the
second tap of a lasting answer, `pag:...:{page}` turns to other choices, `ths:...:{message}` says that
an earlier text meant this prompt, `agn:...:` asks again, `grt:...:{what}` grants it for a while, `ltr:...:{what}`
postpones: "limit", or minutes. A value that does not fit, or is ambiguous, is sent as its position in the list of
choices: `@3`.
"""

from __future__ import annotations

import hmac
import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from atlasbridge.channels import templates
from atlasbridge.channels.language import t
from atlasbridge.channels.outbox import Place
from atlasbridge.channels.templates import Button, Role
from atlasbridge.core.ids import short_id
from atlasbridge.core.prompt.model import Choice, PromptRecord
from atlasbridge.core.session.model import SessionRecord

MAX_BYTES = 64
NONCE_CHARS = 16
ANSWER, SHOW, TOGGLE, SEND, PAGE, THIS, AGAIN = "ans", "shw", "tgl", "snd", "pag", "ths", "agn"
GRANT, LATER, ALWAYS = "grt", "ltr", "alw"
VERBS = (ANSWER, SHOW, TOGGLE, SEND, PAGE, THIS, AGAIN, GRANT, LATER, ALWAYS)


@dataclass(frozen=True, slots=True)
class Callback:
    verb: str
    prompt_id: str
    session_id: str
    nonce: str
    value: str


def encode_callback(record: PromptRecord, value: str, verb: str = ANSWER) -> str:
    head = encode_verb(record, verb, "")
    if _is_plain(value) and len((head + value).encode()) <= MAX_BYTES:
        return head + value
    values = [choice.value for choice in record.prompt.choices]
    return f"{head}@{values.index(value) + 1}"


def encode_verb(record: PromptRecord, verb: str, value: str) -> str:
    return f"{verb}:{short_id(record.prompt_id)}:{short_id(record.session_id)}:{record.nonce[:NONCE_CHARS]}:{value}"


def parse_callback(data: object) -> Callback | None:
    """Return None for any data that we did not write: parsing fails closed."""
    parts = data.split(":", 4) if isinstance(data, str) else []
    if len(parts) != 5 or parts[0] not in VERBS:
        return None
    verb, prompt_id, session_id, nonce, value = parts
    if not (_is_hex(prompt_id, 8) and _is_hex(session_id, 8) and _is_hex(nonce, NONCE_CHARS)):
        return None
    return Callback(verb, prompt_id, session_id, nonce, value)


def expand_callback(callback: Callback, record: PromptRecord) -> tuple[str, str, str]:
    """Return session id, nonce and value in full if the short ones match; otherwise unchanged, so that the gate refuses
    them."""
    session_id, nonce, value = callback.session_id, callback.nonce, callback.value
    if short_id(record.session_id) == session_id:
        session_id = record.session_id
    if hmac.compare_digest(record.nonce[:NONCE_CHARS].encode(), nonce.encode()):
        nonce = record.nonce
    if value.startswith("@") and value[1:].isdecimal():
        place = int(value[1:])
        value = record.prompt.choices[place - 1].value if 1 <= place <= len(record.prompt.choices) else ""
    return session_id, nonce, value


def _is_plain(value: str) -> bool:
    return not value.startswith("@") and value.isprintable()


def _is_hex(text: str, length: int) -> bool:
    return len(text) == length and all(char in "0123456789abcdef" for char in text)


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
