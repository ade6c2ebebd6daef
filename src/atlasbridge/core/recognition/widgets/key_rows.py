"""`Press q to quit.` in two rows or more: a menu of single keys."""

from __future__ import annotations

import re

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import ENTER
from atlasbridge.core.prompt.model import Choice, PromptType
from atlasbridge.core.prompt.step import Step
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.asked import block, compact
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.recognition.finding import Facts, Finding
from atlasbridge.core.recognition.kinds import is_always, refuses
from atlasbridge.core.screen.view import View

_GUTTER_KEY = lazy(r"^│\s+(\w)\s{2,}([^\s│][^│]*)$")
_PRESS = lazy(r"^\W*(?:press|type|hit)\s+[`'\"‹<]?(\S{1,8}?)[`'\"›>]?\s+to\s+(.+?)\.?$", re.IGNORECASE)


def recognise_key_rows(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """`Press q to quit.` in two rows or more: a menu of single keys."""
    rows = [
        (at, match)
        for at, line in enumerate(view.lines)
        if (match := _PRESS.match(line.strip()) or _GUTTER_KEY.match(line))
    ]
    if len(rows) < 2 or view.bottom() - rows[-1][0] > 4:
        return None
    names = {"enter": ENTER, "return": ENTER, "space": b" ", "esc": b"\x1b", "tab": b"\t"}
    if view.row > rows[-1][0] and view.before_cursor().strip() and all(key[1].lower() in names for _, key in rows):
        return None  # these keys only end what is typed into the line below
    choices = tuple(
        Choice(
            match[1],
            match[2],
            (Step(names.get(match[1].lower(), match[1].encode())),),
            refuses=refuses(match[2], dialect),
            always=is_always(match[2], dialect),
        )
        for _, match in rows
    )
    top = rows[0][0]
    head = view.lines[top - 1] if top else ""
    question = block([head, *(view.lines[at] for at, _ in rows)])
    return Finding(
        "key-menu",
        PromptType.TYPE_MULTIPLE_CHOICE,
        numbers.LIKELY,
        compact(question),
        question,
        top,
        choices,
        line_mode=False,
        structural=True,
    )
