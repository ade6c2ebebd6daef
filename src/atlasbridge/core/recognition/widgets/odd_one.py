"""Which of several cells stands out: the highlight of a list that has no pointer."""

from __future__ import annotations

from collections import Counter

from atlasbridge.core.screen.style import DIM, foreground
from atlasbridge.core.screen.view import View

GREYS = {8, 59, 102, 145, *range(0xEC, 0xFB)}  # "bright black", and the palette's greys but black and the lightest
TINT = 24  # by which the parts of a colour may differ that is still a grey
PALEST = 200  # of a grey that is read last


def odd_one(view: View, cells: list[tuple[int, int]]) -> int:
    """The index of the one cell that looks different from all others; -1 when none or several do."""
    looks = [view.style(row, col) for row, col in cells]
    count = Counter(looks)
    if len(count) < 2:
        return -1
    if len(looks) == 2:
        return max(range(2), key=lambda at: _weight(looks[at]))
    rare = [at for at, look in enumerate(looks) if count[look] == 1]
    if len(rare) == 1:
        return rare[0]
    lit = [at for at, look in enumerate(looks) if look & 0x20 or look >> 34]
    return lit[0] if len(lit) == 1 else -1  # a bar; the others may have a colour of their own, such as red for a no


def _weight(style: int) -> int:
    """How much a style stands out: reverse and a background colour most, dim least."""
    reverse, background = bool(style & 0x20), bool(style >> 34)
    return 8 * reverse + 4 * background + 2 * bool(style & 0x01) - bool(style & 0x02) + bool(style >> 8 & 0x3FFFFFF)


def is_faded(style: int) -> bool:
    """Written so that it is read last: what explains a choice, or what may be typed into a field."""
    colour = foreground(style)
    if not isinstance(colour, str):
        return bool(style & DIM) or colour in GREYS
    parts = bytes.fromhex(colour[1:])
    return bool(style & DIM) or (max(parts) - min(parts) <= TINT and 0 < max(parts) <= PALEST)
