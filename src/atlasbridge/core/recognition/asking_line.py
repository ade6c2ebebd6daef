"""Which line asks: the cursor's own or one above it, without the answer that is already filled in.

What the line asks, and how it is answered, is left to `recognise_line`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from atlasbridge.core.patterns import lazy
from atlasbridge.core.recognition.finding import Facts
from atlasbridge.core.recognition.widgets.inline_choices import inline_choices
from atlasbridge.core.screen.frames import is_drawn
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import frozen, replace

_ASK_ENDS = lazy(r"(?:(?<=^#)|(?<=..))[:?>]\s++(?=[^\s'\"])")  # `Name: `, with a value behind it
_CHOICE_BEHIND = lazy(r"^(?P<asked>.{2,}[\])]\s+)(?P<word>\w+)$")
_BRACKETS = "[](){}<>"
_BEGUN = lazy(r"\w{1,20}")
_ANGLED = lazy(r"<[^<>]+>\s*$")
_ANSWER_SO_FAR = lazy(r"(?<!\s)\s++[‣›»·…]\s*+(?:true|false|yes|no)?\s*+$", re.IGNORECASE)


@frozen
class Line:
    """The line that asks: its text without what is already filled in, and where it stands."""

    text: str
    row: int
    filled: str = ""
    detached: bool = False  # the cursor stands on an empty line below it


def asking_line(view: View, facts: Facts) -> Line | None:
    """The logical line of the cursor; on an empty line the last line above it that says something."""
    before = view.before_cursor()
    start = view.line_start(view.row)
    if not view.cursor_visible and facts.canonical is False:
        before = _ANSWER_SO_FAR.sub("", view.lines[view.row])  # a hidden cursor says nothing
    if not is_drawn(before):
        filled = _prefilled(before) if facts.canonical is False and not before.endswith(" ") else None
        value = (filled["value"] or filled["word"]) if filled else ""
        if filled and value[-1] not in ":?>])…%#$" and not before.endswith("...") and _may_be_filled(filled):
            return Line((filled["ask"] or filled["asked"]).strip(), start, value)
        above = view.lines[start - 1].strip() if start and facts.canonical is False and before.startswith("  ") else ""
        if above.endswith(("?", ":")) and before.strip()[-1] not in ":?>])…%#$":
            return Line(above, start - 1, before.strip())  # a field of its own below the question
        return _below_its_question(view, before, start, facts) or Line(before.strip(), start)
    return _last_words(view, view.row)


def _prefilled(text: str) -> Mapping[str, str] | None:
    """A question with a value behind it, which has no brackets: what is asked and the value."""
    after = max(map(text.rfind, _BRACKETS))
    ends = [found.end() for found in _ASK_ENDS.finditer(text, max(0, after))]
    if ends and ends[-1] > after:
        return {"ask": text[: ends[-1]], "value": text[ends[-1] :], "asked": "", "word": ""}
    found = _CHOICE_BEHIND.match(text)
    return {"ask": "", "value": "", **found.groupdict()} if found else None


def _below_its_question(view: View, before: str, start: int, facts: Facts) -> Line | None:
    """A letter or a word alone, below a question that ended its own line: the answer to it, half typed."""
    word = before.strip()
    if facts.canonical is not False or not view.cursor_visible or not _BEGUN.fullmatch(word):
        return None
    asked = _last_words(view, start)
    asks = asked is not None and (len(word) == 1 or asked.text.endswith(("?", ")", "]")))
    return replace(asked, filled=word) if asked and asks else None


def _last_words(view: View, row: int) -> Line | None:
    for at in range(row - 1, -1, -1):
        if not is_drawn(view.lines[at]):
            start = view.line_start(at)
            return Line(view.joined_text(start, at + 1).strip(), start, detached=True)
    return None


def _may_be_filled(found: Mapping[str, str]) -> bool:
    """Behind choices in brackets only one of them stands by itself; other words go on with the sentence, as they do
    behind a key in angles (`Type <RET> for more`)."""
    if found["ask"] and _ANGLED.search(found["ask"]):
        return False
    offered = inline_choices(found["asked"]) if found["asked"] else []
    return not offered or found["word"].lower() in (word.strip("[]()").lower() for word in offered)
