"""What a Slack button carries, and what a person's text in Slack says.  Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from atlasbridge.channels.commands import COMMANDS, Command
from atlasbridge.channels.wording import pickable, picked_value
from atlasbridge.core.prompt.model import PromptRecord

ANSWER, SHOW, WRITE, PICK, THIS, AGAIN, GRANT, LATER = "ans", "shw", "wrt", "pck", "ths", "agn", "grt", "ltr"
VERBS = (ANSWER, SHOW, WRITE, PICK, THIS, AGAIN, GRANT, LATER)
VALUE_LIMIT = 1800  # Slack takes 2000 characters in all
SIGN = "!"  # before a command in a message: Slack keeps the slash for its own
_ENTITY = re.compile(r"<([^<>|]*)(?:\|([^<>]*))?>")


@dataclass(frozen=True, slots=True)
class Action:
    verb: str
    prompt_id: str
    session_id: str
    nonce: str
    value: str


def encode_action(record: PromptRecord, value: str, verb: str = ANSWER) -> str:
    """`verb:prompt:session:nonce:value` in full; a value that is too long travels as its place, `@3`."""
    if value.startswith("@") or len(value) > VALUE_LIMIT:
        value = f"@{[choice.value for choice in record.prompt.choices].index(value) + 1}"
    return f"{verb}:{record.prompt_id}:{record.session_id}:{record.nonce}:{value}"


def encode_place(record: PromptRecord, place: int) -> str:
    """A choice by its place: an option of a menu carries 150 characters at most."""
    return f"{ANSWER}:{record.prompt_id}:{record.session_id}:{record.nonce}:@{place + 1}"


def clicked_value(element: Mapping[str, Any]) -> object:
    """What a button or a menu's chosen option carries."""
    if element.get("type") == "static_select":
        return (element.get("selected_option") or {}).get("value")
    return element.get("value")


def parse_action(data: object) -> Action | None:
    """None for anything that is not exactly ours: parsing fails closed."""
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
    """The choices that were marked when the button was pressed; None where the payload does not say."""
    marked = (((payload.get("state") or {}).get("values") or {}).get(PICK) or {}).get(PICK)
    if not isinstance(marked, dict):
        return None
    known = {str(place): place for place, _ in pickable(record.prompt)}
    values = [str(option.get("value")) for option in marked.get("selected_options") or []]
    return picked_value(record.prompt, sorted(known[value] for value in values)) if set(values) <= set(known) else None


def parse_slash(payload: Mapping[str, Any]) -> Command:
    """`/atlasbridge status`, or `/status` where the app announces that; alone it asks for help."""
    own = str(payload.get("command") or "").lstrip("/").lower()
    word, _, rest = str(payload.get("text") or "").strip().partition(" ")
    if own in COMMANDS:
        return Command(own, f"{word} {rest}".strip())
    return Command(word.lstrip("/!").lower() or "help", rest.strip())


def plain_text(text: str) -> str:
    """A message as it was typed: Slack wraps links and mentions in <...> and escapes & < >."""
    typed = _ENTITY.sub(lambda match: match[2] if match[2] is not None else match[1], text)
    return typed.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
