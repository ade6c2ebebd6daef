"""Which of several cells stands out: the highlight of a list that has no pointer."""

from __future__ import annotations

from collections import Counter

from atlasbridge.core.screen.view import View


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
