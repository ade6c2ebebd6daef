"""Which prompt stands on a picture?  The finders in their order; where none finds a widget, the line that asks.

Pure: the same picture, facts and dialect always give the same finding.
"""

from __future__ import annotations

from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.recognition import finders, numbers
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.recognition.finding import Facts, Finding
from atlasbridge.core.recognition.kinds import with_secrecy
from atlasbridge.core.recognition.widgets.input_box import is_at_work, recognise_inner_question
from atlasbridge.core.recognition.widgets.line_question import recognise_line
from atlasbridge.core.recognition.widgets.resting_screen import has_bar, recognise_footer, whole_screen
from atlasbridge.core.screen.frames import is_drawn
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace

SILENT = "(the program waits, and has written nothing)"
MAYBE_SILENT = "(the program has written nothing, and may wait for input)"
GUESSES = ("line", "bare-line")  # an AI CLI's dialog that nobody knows is not answered by words and Enter


def recognise(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """The prompt on this picture, or None when there is nothing that could be one."""
    found = _recognise(view, facts, dialect)
    return found and with_secrecy(found, dialect)


def _recognise(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    if view.bottom() < 0:
        return _silent(facts) if facts.reading or facts.blind else None
    if is_at_work(view, facts, dialect):
        return recognise_inner_question(view, facts, dialect)
    for finder in finders.FINDERS:
        found = finder.find(view, facts, dialect) if finder.looks(facts, dialect) else None
        if found:
            return found
    full = view.alternate or facts.command in dialect.screen_programs or has_bar(view)
    if full and facts.canonical is not True:
        asked = recognise_line(view, facts, dialect, strict=True) or recognise_footer(view, facts, dialect)
        return replace(asked or whole_screen(view, facts, dialect), barred=has_bar(view))
    found = recognise_line(view, facts, dialect)
    if found and found.rule in GUESSES and facts.canonical is False:
        found = _over_rows(view, facts, dialect) or found
    if found and found.rule in GUESSES and dialect.idles and facts.canonical is False:
        return replace(found, type=PromptType.TYPE_UNKNOWN)
    return found


def _over_rows(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """A question that names its answers, in rows that an editor of lines has filled one after the other: it goes on in
    the next one by itself, and the terminal cannot tell that from two lines."""
    first = view.row
    while first > 0 and len(view.lines[first - 1]) >= view.cols and not is_drawn(view.lines[first - 1]):
        first -= 1
    joined = view.joined | frozenset(range(first, view.row))
    found = recognise_line(replace(view, joined=joined), facts, dialect) if joined != view.joined else None
    return found if found and found.choices and found.score >= numbers.LIKELY else None


def _silent(facts: Facts) -> Finding:
    """Somebody reads (or may read), and nothing was ever written: the person must know what was started."""
    kind = PromptType.TYPE_UNKNOWN if facts.blind else PromptType.TYPE_FREE_TEXT
    said = MAYBE_SILENT if facts.blind else SILENT
    return Finding("silent", kind, numbers.SILENCE, said, said)
