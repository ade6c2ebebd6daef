"""Makes untrusted text harmless. Every sink (log, channel, terminal, page) passes text through this module.

Control characters, bidirectional controls, zero-width and other invisible characters are replaced by visible notations.
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

_JOINERS = "\u200c\u200d"
_JOINING = lazy("[\u0620-\u06ff\u0710-\u077f\u0840-\u085f\u08a0-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17b3]")
_EMOJI = lazy("[\u2190-\u2bff\u3030\u303d\U0001f000-\U0001faff]")


def escape_controls(text: str, keep_lines: bool = True) -> str:
    """Replaces every character that could deceive a reader or control a terminal by a visible notation.

    Emoji presentation selectors are dropped silently: they only change the colour of a glyph.
    """
    if not keep_lines:
        text = " ".join(text.split())
    text = text.replace("\ufe0f", "").replace("\ufe0e", "")
    text = _MARKS_IN_A_ROW.sub(lambda match: match.group()[:3], text)
    return _SUSPECT.sub(_name, text)


def _name(match: re.Match[str]) -> str:
    char = match.group()
    code = ord(char)
    if _joins(match):
        return char
    if code < 0x20 or code == 0x7F:
        return "^" + chr(code ^ 0x40)
    return f"<U+{code:04X}>"


def _joins(match: re.Match[str]) -> bool:
    """Whether the match is a joiner that hides nothing: between letters of a script that uses joiners, or between
    emoji."""
    around = match.string[max(0, match.start() - 1) : match.start()] + match.string[match.end() : match.end() + 1]
    if len(around) != 2 or match.group() not in _JOINERS:
        return False
    emoji = match.group() == "\u200d" and all(_EMOJI.match(char) for char in around)
    return emoji or all(_JOINING.match(char) for char in around)


def is_plain_line(text: str) -> bool:
    """Whether a person's text is one line without control, bidirectional or zero-width characters."""
    if any(char in _KEEP or unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in text):
        return False
    return all(_joins(found) for found in _SUSPECT.finditer(text.replace("\ufe0f", "")))
