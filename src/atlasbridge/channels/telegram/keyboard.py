"""The buttons below a Telegram message: answers, the refusing ones apart, long lists in pages.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from atlasbridge.channels import wording
from atlasbridge.channels.telegram.callbacks import (
    AGAIN,
    ANSWER,
    GRANT,
    LATER,
    PAGE,
    SHOW,
    THIS,
    encode_callback,
    encode_verb,
)
from atlasbridge.channels.wording import Button, Role
from atlasbridge.core.prompt.model import Choice, PromptRecord
from atlasbridge.core.session.model import SessionRecord

PAIRED_LABEL = 16  # buttons at most this long share a row
ON_ONE_PAGE = 24  # a keyboard may have about 10,000 bytes
PAGE_SIZE = 20
MOST_REFUSING = 6
Keyboard = list[list[dict[str, str]]]
T = TypeVar("T")


def render_keyboard(record: PromptRecord, page: int = 0) -> Keyboard:
    """Short answers share a row; refusing, default, cancel and show stand in rows of their own, in that order."""
    buttons = wording.render_buttons(record.prompt)
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
    """One button for every prompt that a text may have meant."""
    return [
        [{"text": wording.render_brief(record.prompt, session), "callback_data": _this(record, message_id)}]
        for record, session in records
    ]


def render_granting(record: PromptRecord, buttons: Sequence[tuple[str, str]]) -> Keyboard:
    """Two in a row: how long it is to be allowed, and the way out."""
    shown = [{"text": label, "callback_data": encode_verb(record, GRANT, value)} for label, value in buttons]
    return [shown[place : place + 2] for place in range(0, len(shown), 2)]


def render_ask_again(record: PromptRecord) -> Keyboard:
    return [[{"text": "🔁 Ask again", "callback_data": encode_verb(record, AGAIN, "")}]]


def render_snooze(record: PromptRecord) -> Keyboard:
    """Below a reminder: to be asked again in a while."""
    spans = (("💤 In 15 minutes", "15"), ("💤 In an hour", "60"))
    return [[{"text": label, "callback_data": encode_verb(record, LATER, minutes)} for label, minutes in spans]]


def listed_on(record: PromptRecord, page: int) -> Sequence[Choice]:
    """The choices that this page's text writes out."""
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
    verb = {Role.SHOW: SHOW, Role.GRANT: GRANT}.get(button.role, ANSWER)
    return encode_callback(record, button.value, verb)


def _may_share(button: Button, row: list[Button]) -> bool:
    """Two short plain answers side by side; a refusing or lasting one never stands beside another."""
    return len(row) == 1 and all(
        shown.role is Role.ANSWER and len(shown.label) <= PAIRED_LABEL for shown in [*row, button]
    )
