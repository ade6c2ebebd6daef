"""Renders cards as Block Kit messages, and reads what a person typed or pressed in Slack. Pure.

Text of a tool appears only in plain or preformatted elements, where Slack interprets no markup. Every message stays
within the limits: the tool's text gets the space that our own text leaves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from atlasbridge.channels import card as cards
from atlasbridge.channels import templates
from atlasbridge.channels.callback import Verb, encode_verb
from atlasbridge.channels.card import Card, Press, grouped
from atlasbridge.channels.commands import COMMANDS, Command
from atlasbridge.channels.excerpt import cut_to, fit_quotes, quotes_of
from atlasbridge.channels.language import t
from atlasbridge.channels.outbox import Params
from atlasbridge.channels.templates import Role, needs_words, takes_words
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.prompt.model import Choice, Prompt, PromptRecord
from atlasbridge.core.session.model import SessionRecord, session_name

SIGN = "!"  # before a command in a message, because Slack reserves the slash
PICK = "pck"  # the block and the element with the marks
_ENTITY = re.compile(r"<([^<>|]*)(?:\|([^<>]*))?>")


def clicked_value(element: Mapping[str, Any]) -> object:
    """Return the value of a button or of a menu's chosen option."""
    if element.get("type") == "static_select":
        return (element.get("selected_option") or {}).get("value")
    return element.get("value")


def parse_picked(payload: Mapping[str, Any]) -> list[str] | None:
    """Return what was marked when the button was pressed; None if the payload does not contain it."""
    marked = (((payload.get("state") or {}).get("values") or {}).get(PICK) or {}).get(PICK)
    if not isinstance(marked, dict):
        return None
    return [str(option.get("value")) for option in marked.get("selected_options") or []]


def parse_slash(payload: Mapping[str, Any]) -> Command:
    """Parse `/atlasbridge status`, or `/status` if the app defines that command. Without a name it is help."""
    own = str(payload.get("command") or "").lstrip("/").lower()
    word, _, rest = str(payload.get("text") or "").strip().partition(" ")
    if own in COMMANDS:
        return Command(own, f"{word} {rest}".strip())
    return Command(word.lstrip("/!").lower() or "help", rest.strip())


def plain_text(text: str) -> str:
    """Return a message as the person typed it: Slack wraps links and mentions in <...> and escapes & < >."""
    typed = _ENTITY.sub(lambda match: match[2] if match[2] is not None else match[1], text)
    return typed.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


# The parts of a Slack message: texts, quotes, buttons, menus and checkboxes. Pure.

CONTEXT_LIMIT, BUTTON_LIMIT, SECTION_LIMIT = 2000, 75, 2900
MOST_BUTTONS = 10  # more answers become a menu
ROW_LIMIT, CHECKBOX_LIMIT, SELECT_LIMIT, MOST_SELECTS = 25, 10, 100, 10
Block = dict[str, Any]


def takes_text(prompt: Prompt) -> bool:
    return takes_words(prompt) or (bool(prompt.constraints.get("multi_select")) and not prompt.secret)


def marking(record: PromptRecord) -> list[Block]:
    """Checkboxes and the button that sends them. Slack stores the marks until then."""
    choices = templates.pickable(record.prompt)
    if not 0 < len(choices) <= SELECT_LIMIT:
        return []
    options = [option(text, str(place)) for place, text in choices]
    boxes = len(options) <= CHECKBOX_LIMIT
    element: Block = {"type": "checkboxes" if boxes else "multi_static_select", "action_id": PICK, "options": options}
    if marked := set(map(str, templates.premarked(record.prompt))):
        element["initial_options"] = [option for option in options if option["value"] in marked]
    block: Block = {"type": "actions", "block_id": PICK, "elements": [element]}
    if not boxes:  # a menu must be next to a text
        block = {"type": "section", "block_id": PICK, "text": plain(t("Select what you want:")), "accessory": element}
    send = button(f"✅ {t('Send selection')}", encode_verb(record, Verb.SEND), "send")
    return [block, {"type": "actions", "elements": [send]}]


def button_rows(record: PromptRecord) -> list[Block]:
    """Answers in one row or a menu; refusing answers in a separate row; then default, cancel, write and show."""
    answers, refusing, others = grouped(record)
    blocks = _menus(record) if len(answers) > MOST_BUTTONS else [_actions(answers, 0)] if answers else []
    blocks += [_actions(row, number) for number, row in ((1, refusing[:ROW_LIMIT]), (2, others)) if row]
    if takes_text(record.prompt):
        blocks.append(_actions([Press(f"✍ {t('Write an answer')}", encode_verb(record, Verb.WRITE))], 3))
    return blocks


def _menus(record: PromptRecord) -> list[Block]:
    """Every choice that does not refuse, at most a hundred per menu."""
    wanted = [(place, choice) for place, choice in enumerate(record.prompt.choices) if not choice.refuses]
    menus = []
    for number in range(min(MOST_SELECTS, -(-len(wanted) // SELECT_LIMIT))):
        some = wanted[number * SELECT_LIMIT : (number + 1) * SELECT_LIMIT]
        options = [
            option(_marked(record, choice), encode_verb(record, Verb.ANSWER, f"@{place + 1}")) for place, choice in some
        ]
        menu = {
            "type": "static_select",
            "action_id": f"choose.{number}",
            "placeholder": plain(t("Choose one")),
            "options": options,
        }
        menus.append({"type": "actions", "elements": [menu]})
    return menus


def _marked(record: PromptRecord, choice: Choice) -> str:
    mark = f"♾ {t('always')}: " if choice.always else "✍ " if needs_words(record.prompt, choice.value) else ""
    return mark + escape_controls(templates.numbered(choice), keep_lines=False)


def _actions(row: Sequence[Press], number: int) -> Block:
    return {"type": "actions", "elements": [_shown(press, f"{number}.{place}") for place, press in enumerate(row)]}


def _shown(press: Press, action_id: str) -> Block:
    element = button(press.label, press.data, action_id)
    if press.role is Role.ALWAYS:
        element["confirm"] = {
            "title": plain(t("Always?")),
            "text": plain(t(templates.SURE)),
            "confirm": plain(t("Yes, always")),
            "deny": plain(t(templates.BACK)),
        }
    return element


def button(label: str, value: str, action_id: str) -> Block:
    return {"type": "button", **option(label, value), "action_id": action_id}


def option(label: str, value: str) -> Block:
    return {"text": plain(cut_to(label, BUTTON_LIMIT)), "value": value}


def plain(text: str) -> Block:
    return {"type": "plain_text", "text": text, "emoji": False}


def context(text: str) -> Block:
    return {"type": "context", "elements": [plain(text[:CONTEXT_LIMIT] or "…")]}


def section(text: str) -> Block:
    return {"type": "section", "text": plain(text[:SECTION_LIMIT] or "…")}


def quoted(text: str) -> Block:
    leaf = {"type": "text", "text": text or t("(blank)")}
    return {"type": "rich_text", "elements": [{"type": "rich_text_preformatted", "elements": [leaf]}]}


def count_text(node: object) -> int:
    """Count every visible character in the blocks, as Slack's message limit does."""
    if isinstance(node, list):
        return sum(map(count_text, node))
    if not isinstance(node, dict):
        return 0
    own = len(node["text"]) if isinstance(node.get("text"), str) else 0
    return own + sum(map(count_text, node.values()))


HEADER_LIMIT, FALLBACK_LIMIT, MODAL_TITLE = 150, 1000, 24
QUOTE_LIMIT = 2900  # characters of one quote
QUOTES_ROOM, LISTED_ROOM = 8000, 2500  # for all text of the tool, and for its choices
MESSAGE_ROOM = 12_000  # Slack accepts about 13,000 characters in all blocks of a message; titles and captions need some
IDLE_WORDS, WORDS = 3000, 1000  # Slack's limit for a text field, and our own
CALLBACK, FIELD = "atlasbridge_text", "answer"


def question(record: PromptRecord, session: SessionRecord, host: str) -> Card:
    hint = templates.render_hint(record.prompt, record.prompt_id, threads=True)
    if takes_words(record.prompt) and record.prompt.choices:
        hint = t("Choose, press ✍ Write an answer, or reply in this thread with your own words.")
    return cards.question(record, session, host, record.prompt.choices, LISTED_ROOM, hint)


def render(card: Card) -> Params:
    """`text` is shown by notifications and screen readers. Slack interprets & < > in it, so they are escaped."""
    below = [quoted(cut_to(card.listed, QUOTE_LIMIT))] if card.listed else []
    below += [context(card.hint)] if card.hint else []
    if card.asks is not None and not card.rows:
        below += marking(card.asks) + button_rows(card.asks)
    below += [context(card.last)] if card.last else []
    below += [_actions(row, 10 + number) for number, row in enumerate(card.rows)]
    blocks = [_title(card)] if card.title else []
    about = " · ".join(part for part in (card.kind, card.header) if part)
    origin = [context(about)] if about else []
    if card.quotes:
        blocks += [*_quotes(card, MESSAGE_ROOM - count_text(below)), *origin]
    else:
        blocks += [*origin, section(card.text)]
    escaped = (card.alert or card.title or card.text)[:FALLBACK_LIMIT].replace("&", "&amp;").replace("<", "&lt;")
    return {"text": escaped.replace(">", "&gt;") or "…", "blocks": blocks + below}


def _title(card: Card) -> Block:
    if not card.header:
        return context(card.title)
    return {"type": "header", "text": plain(cut_to(card.title, HEADER_LIMIT))}


def _quotes(card: Card, room: int) -> list[Block]:
    """`room` is the number of characters left for the tool's text."""
    blocks = []
    quotes, notes = card.fitted(min(room, QUOTES_ROOM), len)
    for quote in quotes:
        blocks += [context(f"{quote.caption}:")] if quote.caption else []
        blocks += [quoted(piece) for piece in _pieces(quote.text)]
    return blocks + ([section("\n".join(notes))] if notes else [])


def render_modal(record: PromptRecord, session: SessionRecord, label: str = "") -> dict[str, Any]:
    """A text field for an answer. The private metadata contains the prompt that it answers."""
    prompt = record.prompt
    limit = prompt.constraints.get("max_length")
    most = IDLE_WORDS if prompt.idle else WORDS
    field: dict[str, Any] = {"type": "plain_text_input", "action_id": FIELD, "min_length": 1}
    field["max_length"] = min(int(limit), most) if limit else most
    field["multiline"] = prompt.multiline
    return {
        "type": "modal",
        "callback_id": CALLBACK,
        "private_metadata": encode_verb(record, Verb.WRITE, "words" if label else ""),
        "title": plain(session_name(session)[:MODAL_TITLE]),
        "submit": plain(t("Send")),
        "close": plain(t("Cancel")),
        "blocks": [
            *(quoted(quote.text) for quote in fit_quotes(quotes_of(prompt), QUOTE_LIMIT, len)),
            {"type": "input", "block_id": FIELD, "label": plain(label or t("Your answer")), "element": field},
        ],
    }


def _pieces(text: str) -> list[str]:
    """Split a text that is too long for one quote, at the end of a line if one is near."""
    pieces = []
    while len(text) > QUOTE_LIMIT:
        at = text.rfind("\n", QUOTE_LIMIT // 2, QUOTE_LIMIT) + 1 or QUOTE_LIMIT
        pieces.append(text[:at])
        text = text[at:]
    return [*pieces, text] if text else pieces
