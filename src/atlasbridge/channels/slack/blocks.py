"""Renders prompts and notices as Block Kit messages. Pure.

Text of a tool appears only in plain or preformatted elements, where Slack interprets no markup. Every message stays
within the limits: the tool's text gets the space that our own text leaves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from atlasbridge.channels import templates
from atlasbridge.channels.commands import COMMANDS, Command
from atlasbridge.channels.excerpt import (
    LAST_OUTPUT,
    count_missing,
    cut_to,
    fit_quotes,
    quotes_of,
    render_effects,
    warn_incomplete,
)
from atlasbridge.channels.language import t
from atlasbridge.channels.receipts import Outcome
from atlasbridge.channels.templates import Button, Role, needs_words, pickable, picked_value, takes_words
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import short_id
from atlasbridge.core.prompt.model import Prompt, PromptRecord
from atlasbridge.core.session.model import SessionRecord

# The values of Slack buttons, and the parsing of a person's text in Slack. Pure.

ANSWER, SHOW, WRITE, PICK, THIS, AGAIN, GRANT, LATER = "ans", "shw", "wrt", "pck", "ths", "agn", "grt", "ltr"
VERBS = (ANSWER, SHOW, WRITE, PICK, THIS, AGAIN, GRANT, LATER)
VALUE_LIMIT = 1800  # Slack's limit is 2000 characters
SIGN = "!"  # before a command in a message, because Slack reserves the slash
_ENTITY = re.compile(r"<([^<>|]*)(?:\|([^<>]*))?>")


@dataclass(frozen=True, slots=True)
class Action:
    verb: str
    prompt_id: str
    session_id: str
    nonce: str
    value: str


def encode_action(record: PromptRecord, value: str, verb: str = ANSWER) -> str:
    """Return `verb:prompt:session:nonce:value` in full. A value that is too long is sent as its position, `@3`."""
    if value.startswith("@") or len(value) > VALUE_LIMIT:
        value = f"@{[choice.value for choice in record.prompt.choices].index(value) + 1}"
    return f"{verb}:{record.prompt_id}:{record.session_id}:{record.nonce}:{value}"


def encode_place(record: PromptRecord, place: int) -> str:
    """Encode a choice by its position, because an option of a menu has at most 150 characters."""
    return f"{ANSWER}:{record.prompt_id}:{record.session_id}:{record.nonce}:@{place + 1}"


def clicked_value(element: Mapping[str, Any]) -> object:
    """Return the value of a button or of a menu's chosen option."""
    if element.get("type") == "static_select":
        return (element.get("selected_option") or {}).get("value")
    return element.get("value")


def parse_action(data: object) -> Action | None:
    """Return None for any value that we did not write: parsing fails closed."""
    parts = data.split(":", 4) if isinstance(data, str) else []
    if len(parts) != 5 or parts[0] not in VERBS or not all(parts[1:4]):
        return None
    return Action(*parts)


def full_value(action: Action, record: PromptRecord) -> str:
    if not (action.value.startswith("@") and action.value[1:].isdecimal()):
        return action.value
    place = int(action.value[1:])
    return record.prompt.choices[place - 1].value if 1 <= place <= len(record.prompt.choices) else ""


def parse_picked(payload: Mapping[str, Any], record: PromptRecord) -> str | None:
    """Return the choices that were marked when the button was pressed; None if the payload does not contain them."""
    marked = (((payload.get("state") or {}).get("values") or {}).get(PICK) or {}).get(PICK)
    if not isinstance(marked, dict):
        return None
    known = {str(place): place for place, _ in pickable(record.prompt)}
    values = [str(option.get("value")) for option in marked.get("selected_options") or []]
    return picked_value(record.prompt, sorted(known[value] for value in values)) if set(values) <= set(known) else None


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
    options = [{"text": plain(_cut(text)), "value": str(place)} for place, text in choices]
    boxes = len(options) <= CHECKBOX_LIMIT
    element: Block = {"type": "checkboxes" if boxes else "multi_static_select", "action_id": PICK, "options": options}
    if marked := set(map(str, templates.premarked(record.prompt))):
        element["initial_options"] = [option for option in options if option["value"] in marked]
    block: Block = {"type": "actions", "block_id": PICK, "elements": [element]}
    if not boxes:  # a menu must be next to a text
        block = {"type": "section", "block_id": PICK, "text": plain(t("Mark what you want:")), "accessory": element}
    send = button(f"✅ {t('Send what is marked')}", encode_action(record, "", PICK), "send")
    return [block, {"type": "actions", "elements": [send]}]


def button_rows(record: PromptRecord) -> list[Block]:
    """Answers in one row or a menu; refusing answers in a separate row; then default, cancel, write and show."""
    buttons = templates.render_buttons(record.prompt)
    answers = [shown for shown in buttons if shown.role in (Role.ANSWER, Role.ALWAYS)]
    refusing = [shown for shown in buttons if shown.role is Role.REFUSE][:ROW_LIMIT]
    roles = (Role.DEFAULT, Role.CANCEL, Role.LATER, Role.GRANT, Role.SHOW)
    others = [shown for shown in buttons if shown.role in roles]
    blocks = _menus(record) if len(answers) > MOST_BUTTONS else [_actions(record, answers, 0)] if answers else []
    blocks += [_actions(record, row, number) for number, row in ((1, refusing), (2, others)) if row]
    if takes_text(record.prompt):
        write = button(f"✍ {t('Write an answer')}", encode_action(record, "", WRITE), "write")
        blocks.append({"type": "actions", "elements": [write]})
    return blocks


def _menus(record: PromptRecord) -> list[Block]:
    """Every choice that does not refuse, at most a hundred per menu."""
    wanted = [(place, choice) for place, choice in enumerate(record.prompt.choices) if not choice.refuses]
    menus = []
    for number in range(min(MOST_SELECTS, -(-len(wanted) // SELECT_LIMIT))):
        some = wanted[number * SELECT_LIMIT : (number + 1) * SELECT_LIMIT]
        options = [
            {"text": plain(_cut(_marked(record, place))), "value": encode_place(record, place)} for place, _ in some
        ]
        menu = {
            "type": "static_select",
            "action_id": f"choose.{number}",
            "placeholder": plain(t("Choose one")),
            "options": options,
        }
        menus.append({"type": "actions", "elements": [menu]})
    return menus


def _marked(record: PromptRecord, place: int) -> str:
    choice = record.prompt.choices[place]
    mark = f"♾ {t('always')}: " if choice.always else "✍ " if needs_words(record.prompt, choice.value) else ""
    return mark + escape_controls(templates.numbered(choice), keep_lines=False)


def _actions(record: PromptRecord, row: list[Button], number: int) -> Block:
    return {"type": "actions", "elements": [_shown(record, b, f"{number}.{place}") for place, b in enumerate(row)]}


def _shown(record: PromptRecord, shown: Button, action_id: str) -> Block:
    verb = {Role.SHOW: SHOW, Role.GRANT: GRANT, Role.LATER: LATER}.get(shown.role, ANSWER)
    element = button(shown.label, encode_action(record, shown.value, verb), action_id)
    if shown.role is Role.ALWAYS:
        element["confirm"] = {
            "title": plain(t("Always?")),
            "text": plain(t(templates.SURE)),
            "confirm": plain(t("Yes, always")),
            "deny": plain(t(templates.BACK)),
        }
    return element


def button(label: str, value: str, action_id: str) -> Block:
    return {"type": "button", "text": plain(_cut(label)), "value": value, "action_id": action_id}


def plain(text: str) -> Block:
    return {"type": "plain_text", "text": text, "emoji": False}


def context(text: str) -> Block:
    return {"type": "context", "elements": [plain(text[:CONTEXT_LIMIT] or "…")]}


def section(text: str) -> Block:
    return {"type": "section", "text": plain(text[:SECTION_LIMIT] or "…")}


def quoted(text: str) -> Block:
    leaf = {"type": "text", "text": text or t("(blank)")}
    return {"type": "rich_text", "elements": [{"type": "rich_text_preformatted", "elements": [leaf]}]}


def _cut(label: str) -> str:
    return label if len(label) <= BUTTON_LIMIT else label[: BUTTON_LIMIT - 1] + "…"


def count_text(node: object) -> int:
    """Count every visible character in the blocks, as Slack's message limit does."""
    if isinstance(node, list):
        return sum(map(count_text, node))
    if not isinstance(node, dict):
        return 0
    own = len(node["text"]) if isinstance(node.get("text"), str) else 0
    return own + sum(map(count_text, node.values()))


__all__ = ["takes_text"]

HEADER_LIMIT, FALLBACK_LIMIT, MODAL_TITLE = 150, 1000, 24
QUOTE_LIMIT = 2900  # characters of one quote
QUOTES_ROOM, LISTED_ROOM = 8000, 2500  # for all text of the tool, and for its choices
MESSAGE_ROOM = 12_000  # Slack accepts about 13,000 characters in all blocks of a message; titles and captions need some
IDLE_WORDS, WORDS = 3000, 1000  # Slack's limit for a text field, and our own
CALLBACK, FIELD = "atlasbridge_text", "answer"


def render_prompt(record: PromptRecord, session: SessionRecord, host: str) -> dict[str, Any]:
    """Render the prompt: our header, the quoted question, buttons and the remaining time."""
    prompt = record.prompt
    title = templates.render_title(prompt, session)
    below = []
    if listed := templates.listed_choices(prompt, prompt.choices, LISTED_ROOM):
        below.append(quoted(cut_to("\n".join(listed), QUOTE_LIMIT, len)))
    if hint := _hint(record):
        below.append(context(hint))
    below += marking(record) + button_rows(record)
    below.append(context(templates.render_deadline(record)))
    blocks = _question(record, session, host, title, room=MESSAGE_ROOM - count_text(below)) + below
    return _message(templates.render_headline(prompt, session), blocks)


def render_short(record: PromptRecord, session: SessionRecord) -> dict[str, Any]:
    """A short form if Slack refuses the whole message: it says that a prompt waits and where to read it."""
    asks, told = t("{name} asks something", name=templates.session_name(session)), t(templates.NOT_SHOWN)
    return _message(told, [section(f"❗ {asks}. {told}")])


def render_outcome(
    record: PromptRecord, session: SessionRecord, outcome: Outcome, host: str, again: bool = False
) -> dict[str, Any]:
    """The same message after the prompt ended or was answered: the title tells the outcome; the buttons are gone."""
    blocks = _question(record, session, host, outcome.title, ended=True)
    if outcome.detail:
        blocks.append(context(outcome.detail))
    if again:
        ask = button(f"🔁 {t('Ask again')}", encode_action(record, "", AGAIN), "again")
        blocks.append({"type": "actions", "elements": [ask]})
    return _message(outcome.title, blocks)


def render_notice(message: str, session: SessionRecord | None, host: str) -> dict[str, Any]:
    blocks = [section(escape_controls(message))]
    if session is not None:
        name = templates.session_name(session)
        parts = (name, templates.tool_name(session), short_id(session.session_id), templates.host_name(session, host))
        blocks.insert(0, context(" · ".join(part for part in parts if part)))
    return _message(escape_controls(message), blocks)


def render_snooze(record: PromptRecord) -> Block:
    """Buttons below a reminder, to be asked again later."""
    spans = (("In 15 minutes", "15"), ("In an hour", "60"))
    row = [
        button(f"💤 {t(label)}", encode_action(record, minutes, LATER), f"later.{minutes}") for label, minutes in spans
    ]
    return {"type": "actions", "elements": row}


def render_granting(record: PromptRecord, text: str, shown: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """A grant that is offered or was given, with its buttons."""
    buttons = [
        button(label, encode_action(record, value, GRANT), f"grant.{place}")
        for place, (label, value) in enumerate(shown)
    ]
    rows = [{"type": "actions", "elements": buttons}] if buttons else []
    return _message(text, [section(text), *rows])


def render_which(
    sentence: str, offered: Iterable[tuple[PromptRecord, SessionRecord]], message_ts: str
) -> dict[str, Any]:
    """Ask which prompt a text means, with one button for each candidate."""
    buttons = [
        button(
            templates.render_brief(record.prompt, session),
            encode_action(record, message_ts, THIS),
            f"which.{place}",
        )
        for place, (record, session) in enumerate(offered)
    ]
    return _message(sentence, [section(sentence), {"type": "actions", "elements": buttons}])


def render_again(record: PromptRecord) -> dict[str, Any]:
    """The last output of an ambiguous prompt, with the same buttons again."""
    text = escape_controls(record.prompt.screen or record.prompt.excerpt).rstrip()[-LAST_OUTPUT:]
    shown = [context(t("Last output:")), quoted(text or t("(empty)")), *button_rows(record)]
    return _message(t("Last output:"), shown)


def render_screen(title: str, screen: str) -> dict[str, Any] | None:
    """Return None if the screen is too long for a message; then it is sent as a file."""
    text = escape_controls(screen).rstrip()
    return None if len(text) > QUOTE_LIMIT else _message(title, [context(title), quoted(text or t("(empty)"))])


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
        "private_metadata": encode_action(record, "words" if label else ""),
        "title": plain(templates.session_name(session)[:MODAL_TITLE]),
        "submit": plain(t("Send")),
        "close": plain(t("Cancel")),
        "blocks": [
            *(quoted(quote.text) for quote in fit_quotes(quotes_of(prompt), QUOTE_LIMIT, len)),
            {"type": "input", "block_id": FIELD, "label": plain(label or t("Your answer")), "element": field},
        ],
    }


def _hint(record: PromptRecord) -> str:
    if takes_words(record.prompt) and record.prompt.choices:
        return t("Choose, press ✍ Write an answer, or reply in this thread with your own words.")
    return templates.render_hint(record.prompt, record.prompt_id, threads=True)


def _question(
    record: PromptRecord, session: SessionRecord, host: str, title: str, ended: bool = False, room: int = QUOTES_ROOM
) -> list[Block]:
    """`room` is the number of characters left for the tool's text."""
    prompt = record.prompt
    kind = "" if ended else templates.render_kind(prompt, session)
    header = templates.render_header(prompt, session, host, titled=not ended)
    blocks: list[Block] = [{"type": "header", "text": plain(cut_to(title, HEADER_LIMIT, len))}]
    quotes = fit_quotes(quotes_of(prompt, titled=True), min(room, QUOTES_ROOM), len)
    for quote in quotes:
        if quote.caption:
            blocks.append(context(f"{quote.caption}:"))
        blocks += [quoted(piece) for piece in _pieces(quote.text)]
    notes = [
        note
        for note in (count_missing(quotes, t(templates.REST)), warn_incomplete(prompt), render_effects(prompt))
        if note
    ]
    blocks += [section("\n".join(notes))] if notes else []
    return [*blocks, context(f"{kind} · {header}" if kind else header)]


def _pieces(text: str) -> list[str]:
    """Split a text that is too long for one quote, at the end of a line if one is near."""
    pieces = []
    while len(text) > QUOTE_LIMIT:
        at = text.rfind("\n", QUOTE_LIMIT // 2, QUOTE_LIMIT) + 1 or QUOTE_LIMIT
        pieces.append(text[:at])
        text = text[at:]
    return [*pieces, text] if text else pieces


def _message(fallback: str, blocks: list[Block]) -> dict[str, Any]:
    """`text` is shown by notifications and screen readers. Slack interprets & < > in it, so they are escaped."""
    escaped = fallback[:FALLBACK_LIMIT].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return {"text": escaped or "…", "blocks": blocks}
