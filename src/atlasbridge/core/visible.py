"""Untrusted text made harmless: the one function every sink (log, channel, terminal, page) passes text through.

Control characters, bidirectional controls, zero-width and other invisible characters become visible notations.
"""

from __future__ import annotations

import re
import unicodedata

from atlasbridge.core.patterns import lazy

_KEEP = {"\n", "\t"}
_SUSPECT = lazy(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\ud800-\udfff]"
)
_MARKS_IN_A_ROW = lazy("[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]{4,}")


def visible(text: str, keep_lines: bool = True) -> str:
    """`text` with every character that could deceive a reader or steer a terminal replaced by what it is.

    Emoji presentation selectors are dropped silently: they change nothing but a glyph's colour.
    """
    if not keep_lines:
        text = " ".join(text.split())
    text = text.replace("\ufe0f", "").replace("\ufe0e", "")
    text = _MARKS_IN_A_ROW.sub(lambda match: match.group()[:3], text)
    return _SUSPECT.sub(_name, text)


def _name(match: re.Match[str]) -> str:
    char = match.group()
    code = ord(char)
    if code < 0x20 or code == 0x7F:
        return "^" + chr(code ^ 0x40)
    return f"<U+{code:04X}>"


def is_plain_line(text: str) -> bool:
    """Whether a person's text is one line without control, bidirectional or zero-width characters."""
    return not any(char in _KEEP or unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in text) and (
        _SUSPECT.search(text.replace("\ufe0f", "").replace("\u200d", "")) is None
    )
