"""Identifiers: UUIDs for sessions and prompts, nonces for replies."""

from __future__ import annotations

from os import urandom


def new_id() -> str:
    """A random UUID (version 4) as text, without importing the uuid module (it costs 3 ms at start)."""
    raw = bytearray(urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def new_nonce() -> str:
    return urandom(16).hex()


def short_id(full: str) -> str:
    """The first eight hexadecimal characters: people see this form and can type it."""
    return full[:8]
