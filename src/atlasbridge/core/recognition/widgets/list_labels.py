"""The labels of a list as they stand on the screen, with what stands beside and below each of them."""

from __future__ import annotations

from itertools import pairwise

from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.widgets.list_rows import APART, HINT_ROW, Item, Menu
from atlasbridge.core.screen.frames import peeled
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace


def verbatim(view: View, menu: Menu | None) -> Menu | None:
    """With labels as they stand on the screen, and what stands beside and below each of them."""
    if menu is None:
        return None
    rows = peeled(view.lines, menu.items[max(menu.current, 0)].row)
    apart = all(abs(lower.row - upper.row) > 1 for upper, lower in pairwise(menu.items))  # each has words below it
    return replace(menu, items=tuple(_as_written(view, rows, menu, at, apart) for at in range(len(menu.items))))


def _as_written(view: View, rows: tuple[str, ...], menu: Menu, at: int, apart: bool) -> Item:
    item = menu.items[at]
    if item.start < 0:
        return item
    text = rows[item.row] if item.row not in view.joined else _joined(view, rows, item.row)
    below = _below(rows, menu, at, view.joined, apart)
    label, *beside = APART.split(text[item.start :].rstrip(), maxsplit=1)
    while below and not beside and _had_no_room(view, rows, item, len(label), below[0]):
        label = f"{label} {below.pop(0)}"
    detail = "\n".join([*beside, *below])
    return item if label == item.label and not detail else replace(item, label=label, detail=detail)


def _joined(view: View, rows: tuple[str, ...], row: int) -> str:
    """A row with those that the terminal wrapped it into."""
    last, spaced = row, dict(view.spaced)
    while last in view.joined and last + 1 < len(rows):
        last += 1
    return "".join([*(spaced.get(at, rows[at]) for at in range(row, last)), rows[last]])


def _had_no_room(view: View, rows: tuple[str, ...], item: Item, size: int, below: str) -> bool:
    """The first word below would not have fitted behind the label: the tool itself has wrapped it."""
    room = view.cols - 2 * item.start if rows[item.row] != view.lines[item.row] else view.cols - item.start
    last = size % max(room, 1) if size > room else size
    return last + 1 + len(below.split()[0]) > room


def _below(rows: tuple[str, ...], menu: Menu, at: int, joined: frozenset[int], apart: bool) -> list[str]:
    """The rows between a choice and the next, or right below the last, that stand where its label stands."""
    item = menu.items[at]
    following = menu.items[at - 1 : at] if menu.upwards else menu.items[at + 1 : at + 2]
    below = [other.row for other in following]
    out: list[str] = []
    for row in range(item.row + 1, min(below, default=min(len(rows), item.row + 1 + numbers.EXPLAINED_ROWS))):
        if row - 1 in joined:
            continue
        text = rows[row]
        set_in = len(text) - len(text.lstrip())
        deep = set_in >= (item.col if below else item.start) if item.number else bool(below) or apart
        if not text.strip() or not deep or HINT_ROW.match(text):
            break
        out.append(text.strip())
    return out
