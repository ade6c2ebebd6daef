"""Marking several choices with inline buttons: each tap changes one mark, and one button sends them all.

A button carries what was marked when it was shown, so marks outlive a restart; `Picks` knows what was tapped since.
"""

from __future__ import annotations

import re
from collections import OrderedDict

from atlasbridge.channels import wording
from atlasbridge.channels.outbox import Place
from atlasbridge.channels.telegram.callbacks import SEND, TOGGLE, encode_verb
from atlasbridge.core.prompt.model import PromptRecord

KEPT = 1000
MOST = 30  # so many buttons fit into one keyboard; a longer list is answered in words
_TOGGLE = re.compile(r"(\d{1,2})\.([0-9a-f]{1,16})")
_MASK = re.compile(r"[0-9a-f]{1,16}")


class Picks:
    """What is marked in which message, as far as this process knows."""

    def __init__(self) -> None:
        self._masks: OrderedDict[Place, int] = OrderedDict()

    def current(self, place: Place, shown: int) -> int:
        return self._masks.get(place, shown)

    def toggle(self, place: Place, number: int, shown: int) -> int:
        """The marks after this tap."""
        mask = self._masks[place] = self.current(place, shown) ^ (1 << number)
        while len(self._masks) > KEPT:
            self._masks.popitem(last=False)
        return mask


def render_rows(record: PromptRecord, marks: int | None) -> list[list[dict[str, str]]]:
    """A row for each choice, and the one that sends; none when they are too many.  No marks: as the tool shows them."""
    choices = wording.pickable(record.prompt)
    if not choices or choices[-1][0] >= MOST:
        return []
    mask = sum(1 << place for place in wording.premarked(record.prompt)) if marks is None else marks
    rows = [
        [
            {
                "text": f"{'☑' if mask >> place & 1 else '☐'} {wording.short_label(text)}",
                "callback_data": encode_verb(record, TOGGLE, f"{place}.{mask:x}"),
            }
        ]
        for place, text in choices
    ]
    send = {"text": f"✅ Send ({mask.bit_count()} chosen)", "callback_data": encode_verb(record, SEND, f"{mask:x}")}
    return [*rows, [send]]


def parse_toggle(value: str, record: PromptRecord) -> tuple[int, int] | None:
    """The choice and the marks that the button showed; None for anything else."""
    match = _TOGGLE.fullmatch(value)
    if match is None or int(match[1]) not in dict(wording.pickable(record.prompt)):
        return None
    return int(match[1]), int(match[2], 16)


def parse_marks(value: str) -> int | None:
    return int(value, 16) if _MASK.fullmatch(value) else None


def marked_value(record: PromptRecord, mask: int) -> str:
    places = [place for place, _ in wording.pickable(record.prompt) if mask >> place & 1]
    return wording.picked_value(record.prompt, places)
