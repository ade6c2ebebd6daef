"""The width of characters in columns, and cells of several characters, each represented by one character.

A row is a string with exactly one character per column. The right half of a wide character is `TAIL`. A base with
combining marks, or an emoji sequence, is interned as a character of plane 16.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cache

TAIL = "\0"
ZWJ = "\u200d"
_FIRST = 0x100000
MAX_CLUSTERS = 16384
MAX_CLUSTER_LENGTH = 16  # characters; more marks on one cell are an attack, not a language

# Blocks without wide or zero-width characters, and blocks that are completely wide: whole runs are processed at once.
_NARROW = (
    r"\x20-\x7e\xa0-\u02ff\u0370-\u0482\u048a-\u0590\u1e00-\u1fff\u2010-\u2027\u202f-\u205f\u2070-\u20cf\u2100-\u2319"
    r"\u231c-\u2328\u232b-\u23e8\u23ed-\u23ef\u23f1\u23f2\u23f4-\u25fc\u25ff-\u2604\u2607-\u2613\u2616-\u262f"
    r"\u2690-\u2692\u2701-\u2704\u2706-\u2709\u270c-\u2727\u2729-\u274b\u274f-\u2752\u2756\u2758-\u2794\u2798-\u27af"
    r"\u27b1-\u27be\u27c0-\u2b1a\u2b1d-\u2b4f\ue000-\uf8ff"
)
_WIDE = r"\u3041-\u3096\u30a0-\u30ff\u3131-\u318e\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff60"
is_narrow = re.compile(f"[{_NARROW}]*").fullmatch
has_cluster = re.compile("[\U00100000-\U0010ffff]").search

_widths: dict[str, int] = {}

TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
_TONED = (  # people and hands: each pair is the first of a run and the one after its last
    "\u261d\u261e\u26f9\u26fa\u270a\u270e\U0001f385\U0001f386\U0001f3c2\U0001f3c5\U0001f3c7\U0001f3c8\U0001f3ca\U0001f3cd"
    "\U0001f442\U0001f444\U0001f446\U0001f451\U0001f466\U0001f479\U0001f47c\U0001f47d\U0001f481\U0001f484\U0001f485\U0001f488"
    "\U0001f48f\U0001f490\U0001f491\U0001f492\U0001f4aa\U0001f4ab\U0001f574\U0001f576\U0001f57a\U0001f57b\U0001f590\U0001f591"
    "\U0001f595\U0001f597\U0001f645\U0001f648\U0001f64b\U0001f650\U0001f6a3\U0001f6a4\U0001f6b4\U0001f6b7\U0001f6c0\U0001f6c1"
    "\U0001f6cc\U0001f6cd\U0001f90c\U0001f90d\U0001f90f\U0001f910\U0001f918\U0001f920\U0001f926\U0001f927\U0001f930\U0001f93a"
    "\U0001f93c\U0001f93f\U0001f977\U0001f978\U0001f9b5\U0001f9b7\U0001f9b8\U0001f9ba\U0001f9bb\U0001f9bc\U0001f9cd\U0001f9d0"
    "\U0001f9d1\U0001f9de\U0001fac3\U0001fac6\U0001faf0\U0001faf9"
)

_LINES = "◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·"
CHARSETS: dict[str, dict[int, str]] = {
    "0": {ord("_"): " ", **dict(enumerate(_LINES, ord("`")))},  # DEC special graphics
    "A": {ord("#"): "£"},
}


@cache
def _segments() -> re.Pattern[str]:
    return re.compile(f"([{_NARROW}]+)|([{_WIDE}]+)|(.)", re.S)  # compiled late: slow, and many sessions never need it


def segments(text: str) -> list[tuple[str, str, str]]:
    """Runs of narrow characters, runs of wide ones, and all others one by one."""
    return _segments().findall(text)


def width(char: str) -> int:
    """0, 1 or 2 columns, as terminals count them: character by character."""
    columns = _widths.get(char)
    if columns is None:
        if len(_widths) >= 8192:
            _widths.clear()
        columns = _widths[char] = _measure(char)
    return columns


def _measure(char: str) -> int:
    from atlasbridge.core.screen.width_table import BEGINS, COLUMNS  # imported late: many sessions never need it

    return int(COLUMNS[bisect_right(BEGINS, char) - 1])


def joins(last: str, char: str) -> bool:
    """Whether a wide character is part of the cell before it: after a joiner, or as a skin tone."""
    if char in TONES:
        return bisect_right(_TONED, last.rstrip("\ufe0f")[-1:]) % 2 == 1
    return last.endswith(ZWJ)


class Clusters:
    """Cells of more than one character, each represented by one character."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._chars: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._texts)

    def expand(self, cell: str) -> str:
        code = ord(cell) - _FIRST
        return self._texts[code] if code >= 0 else cell

    def intern(self, text: str) -> str:
        char = self._chars.get(text)
        if char is None:
            char = self._chars[text] = chr(_FIRST + len(self._texts))
            self._texts.append(text)
        return char

    def plain(self, row: str) -> str:
        """A row's text in readable form."""
        if TAIL in row:
            row = row.replace(TAIL, "")
        if not row.isascii() and has_cluster(row):
            row = "".join(map(self.expand, row))
        return row

    @property
    def full(self) -> bool:
        return len(self._texts) >= MAX_CLUSTERS

    def renew(self, live: set[str]) -> dict[int, str]:
        """Drops all clusters except the live ones. Returns old code -> new character. If too many are live, they lose
        their marks."""
        texts = {ord(char): self._texts[ord(char) - _FIRST] for char in live}
        self._texts, self._chars = [], {}
        if len(live) > MAX_CLUSTERS // 2:
            return {code: text[0] if ord(text[0]) < _FIRST else "\ufffd" for code, text in texts.items()}
        return {code: self.intern(text) for code, text in texts.items()}
