"""The data of a chat's buttons: the short form of the specification, at most 64 bytes. Pure.

It is `verb:{prompt 8}:{session 8}:{nonce 16}:{value}`. A value that does not fit, or is ambiguous, is sent as its
position in the list of choices: `@3`.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from enum import StrEnum

from atlasbridge.core.ids import short_id
from atlasbridge.core.prompt.model import PromptRecord

MAX_BYTES = 64
NONCE_CHARS = 16


class Verb(StrEnum):
    ANSWER = "ans"
    SHOW = "shw"  # show more
    TOGGLE = "tgl"  # mark one of several choices: "{place}.{marks}"
    SEND = "snd"  # send the marks
    PAGE = "pag"  # turn to other choices
    THIS = "ths"  # an earlier text, named by its message, meant this prompt
    AGAIN = "agn"  # ask again
    GRANT = "grt"  # allow for a while
    LATER = "ltr"  # "limit", or the minutes
    ALWAYS = "alw"  # ask for the second tap of a lasting answer
    WRITE = "wrt"  # open a text field


@dataclass(frozen=True, slots=True)
class Callback:
    verb: Verb
    prompt_id: str
    session_id: str
    nonce: str
    value: str


def encode_callback(record: PromptRecord, value: str, verb: Verb = Verb.ANSWER) -> str:
    head = encode_verb(record, verb, "")
    if _is_plain(value) and len((head + value).encode()) <= MAX_BYTES:
        return head + value
    values = [choice.value for choice in record.prompt.choices]
    return f"{head}@{values.index(value) + 1}"


def encode_verb(record: PromptRecord, verb: Verb, value: str = "") -> str:
    return f"{verb}:{short_id(record.prompt_id)}:{short_id(record.session_id)}:{record.nonce[:NONCE_CHARS]}:{value}"


def parse_callback(data: object) -> Callback | None:
    """Return None for any data that we did not write: parsing fails closed."""
    parts = data.split(":", 4) if isinstance(data, str) else []
    if len(parts) != 5 or parts[0] not in list(Verb):
        return None
    verb, prompt_id, session_id, nonce, value = parts
    if not (_is_hex(prompt_id, 8) and _is_hex(session_id, 8) and _is_hex(nonce, NONCE_CHARS)):
        return None
    return Callback(Verb(verb), prompt_id, session_id, nonce, value)


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
