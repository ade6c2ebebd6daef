"""The data of buttons in Telegram and Discord: the short form of the specification, at most 64 bytes. Pure.

`ans:{prompt 8}:{session 8}:{nonce 16}:{value}` answers, `shw:...:` shows more, `tgl:...:{place}.{marks}` marks one of
several choices and `snd:...:{marks}` sends them, `alw:...:{value}` asks for the
second tap of a lasting answer, `pag:...:{page}` turns to other choices, `ths:...:{message}` says that
an earlier text meant this prompt, `agn:...:` asks again, `grt:...:{what}` grants it for a while, `ltr:...:{what}`
postpones: "limit", or minutes. A value that does not fit, or is ambiguous, is sent as its position in the list of
choices: `@3`.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from atlasbridge.core.ids import short_id
from atlasbridge.core.prompt.model import PromptRecord

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
