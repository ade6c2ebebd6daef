"""What Telegram's server refuses: texts, entities, keyboards, commands. Pure checks that give the error's words.

The words are those of the real Bot API server, because clients read them.
"""

from __future__ import annotations

import json
import re
from typing import Any

MAX_TEXT = 4096
MAX_CAPTION = 1024
MAX_CALLBACK_BYTES = 64
MAX_BUTTONS = 100
MAX_ANSWER_TEXT = 200
MAX_MARKUP_BYTES = 10_000
MAX_ENTITIES = 100
MAX_PLACEHOLDER = 64
ENTITY_TYPES = {
    "mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number", "bold", "italic", "underline",
    "strikethrough", "spoiler", "blockquote", "expandable_blockquote", "code", "pre", "text_link", "text_mention",
    "custom_emoji",
}  # fmt: skip
BUTTON_ACTIONS = {
    "url", "callback_data", "web_app", "login_url", "switch_inline_query", "switch_inline_query_current_chat",
    "switch_inline_query_chosen_chat", "copy_text", "callback_game", "pay",
}  # fmt: skip


class Refused(Exception):
    """The answer is an error: status, words, and what stands in `parameters`."""

    def __init__(self, code: int, description: str, **parameters: int) -> None:
        super().__init__(description)
        self.code, self.description, self.parameters = code, description, parameters


def bad_request(why: str) -> Refused:
    return Refused(400, f"Bad Request: {why}")


def utf16_units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def check_text(text: object, limit: int = MAX_TEXT, empty: str = "message text is empty") -> str:
    if not isinstance(text, str) or not text.strip():
        raise bad_request(empty)
    if utf16_units(text) > limit:
        raise bad_request("message is too long" if limit == MAX_TEXT else "message caption is too long")
    return text


def check_parse_mode(params: dict[str, Any]) -> None:
    """Formatting by markup is not modelled: a client that needs it is not to be judged by this fake."""
    if params.get("parse_mode"):
        raise bad_request("unsupported parse_mode (this fake knows entities only)")


def check_entities(entities: object, text: str) -> list[dict[str, Any]]:
    """Offsets and lengths are UTF-16 units; an entity may not leave the text nor cut a surrogate pair."""
    if entities in (None, []):
        return []
    if not isinstance(entities, list):
        raise bad_request("can't parse entities: expected an Array")
    if len(entities) > MAX_ENTITIES:
        raise bad_request("too many entities")
    encoded = text.encode("utf-16-le")
    for entity in entities:
        if not isinstance(entity, dict) or entity.get("type") not in ENTITY_TYPES:
            raise bad_request("can't parse MessageEntity: type is unknown")
        offset, length = entity.get("offset"), entity.get("length")
        if type(offset) is not int or type(length) is not int:
            raise bad_request("can't parse MessageEntity: offset and length must be of type Number")
        if offset < 0 or length <= 0:
            raise bad_request(f"receive an entity with incorrect offset {offset} and length {length}")
        if offset + length > len(encoded) // 2:
            raise bad_request(f"entity beginning at UTF-16 offset {offset} ends after the end of the text")
        for edge in (offset, offset + length):
            if _inside_pair(encoded, edge):
                raise bad_request(f"entity beginning at UTF-16 offset {offset} ends in a middle of a UTF-16 symbol")
    return entities


def _inside_pair(encoded: bytes, unit: int) -> bool:
    return 2 * unit < len(encoded) and 0xDC <= encoded[2 * unit + 1] <= 0xDF


def check_markup(markup: object) -> dict[str, Any] | None:
    """An inline keyboard with one action a button, or a force_reply; anything else is refused."""
    if markup in (None, ""):
        return None
    if not isinstance(markup, dict):
        raise bad_request("object expected as reply markup")
    if markup.get("force_reply") or markup.get("remove_keyboard"):
        if not 1 <= len(str(markup.get("input_field_placeholder", "x"))) <= MAX_PLACEHOLDER:
            raise bad_request("input field placeholder must be 1 to 64 characters")
        return markup
    if len(json.dumps(markup, ensure_ascii=False).encode()) > MAX_MARKUP_BYTES:
        raise bad_request("reply markup is too long")
    rows = markup.get("inline_keyboard")
    if not isinstance(rows, list) or any(not isinstance(row, list) for row in rows):
        raise bad_request("can't parse inline keyboard button: field inline_keyboard must be an Array of Arrays")
    buttons = [button for row in rows for button in row]
    if len(buttons) > MAX_BUTTONS:
        raise bad_request("reply markup is too long")
    if any(len(row) > 8 for row in rows):
        raise bad_request("too many buttons in a row")
    for button in buttons:
        _check_button(button)
    rows = [row for row in rows if row]
    return {"inline_keyboard": rows} if rows else None


def _check_button(button: object) -> None:
    if not isinstance(button, dict) or not str(button.get("text") or "").strip():
        raise bad_request("can't parse inline keyboard button: text must be non-empty")
    if len(BUTTON_ACTIONS & button.keys()) != 1:
        raise bad_request("can't parse inline keyboard button: text buttons are unallowed in the inline keyboard")
    data = button.get("callback_data")
    if data is not None and not 1 <= len(str(data).encode()) <= MAX_CALLBACK_BYTES:
        raise bad_request("BUTTON_DATA_INVALID")


def check_commands(commands: object) -> list[dict[str, str]]:
    if not isinstance(commands, list) or len(commands) > 100:
        raise bad_request("expected an Array of BotCommand")
    for command in commands:
        if not re.fullmatch(r"[a-z0-9_]{1,32}", str(command.get("command", ""))):
            raise bad_request("BOT_COMMAND_INVALID")
        if not 1 <= len(str(command.get("description", ""))) <= 256:
            raise bad_request("BOT_COMMAND_DESCRIPTION_INVALID")
    return commands
