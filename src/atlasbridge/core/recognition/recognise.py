"""Recognises the prompt on the screen: runs the finders, one for each kind of widget, in order of trust.

A finder is a pure function of the view, the facts about the terminal and the dialect, and returns a finding or None.
If no finder matches, the line that asks is used.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.recognition.finding import DRAWN_SCREEN, Facts, Finding
from atlasbridge.core.recognition.meaning import with_secrecy
from atlasbridge.core.recognition.question import Asked
from atlasbridge.core.recognition.widgets import framed_dialog, pointed_list, side_by_side
from atlasbridge.core.recognition.widgets.input_box import recognise_input_box
from atlasbridge.core.recognition.widgets.known_dialog import recognise_dialog, recognise_region
from atlasbridge.core.recognition.widgets.line_question import recognise_line
from atlasbridge.core.recognition.widgets.list_rows import menu_finding
from atlasbridge.core.recognition.widgets.resting_screen import has_bar, recognise_foot, whole_screen
from atlasbridge.core.screen.frames import columns_of, find_frames, is_drawn
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import frozen, replace

_SIDE = lazy("[│┃║|]")
SILENT = "(the program waits, and has written nothing)"
MAYBE_SILENT = "(the program has written nothing, and may wait for input)"
_SILENT = {  # a program reads, or can read, and has written nothing: the person must know what was started
    False: Finding("silent", PromptType.TYPE_FREE_TEXT, numbers.SILENCE, SILENT, SILENT),
    True: Finding("silent", PromptType.TYPE_UNKNOWN, numbers.SILENCE, MAYBE_SILENT, MAYBE_SILENT),
}
GUESSES = ("line", "bare-line")  # an unknown dialog of an AI CLI is not answered by words and Enter


Find = Callable[[View, Facts, Dialect], Finding | None]


@frozen
class Finder:
    """A finder and where it applies. With `drawn`, only where the program draws its screen itself. With `chats`, also
    to a tool whose dialect knows its input box, although such a tool frames and highlights ordinary output.
    """

    widget: str
    find: Find
    drawn: bool = True
    chats: bool = False

    def looks(self, facts: Facts, dialect: Dialect) -> bool:
        return not (self.drawn and facts.canonical is True) and (self.chats or not dialect.idles)


FINDERS: tuple[Finder, ...] = (
    Finder("words of a dialect", recognise_region, drawn=False, chats=True),
    Finder("field with a mark", framed_dialog.recognise_marked_field, chats=True),
    Finder("input box of an AI CLI", recognise_input_box),
    Finder("dialog of a dialect", recognise_dialog, chats=True),
    Finder("counted list with a bar", pointed_list.recognise_lit_numbers, chats=True),
    Finder("form", framed_dialog.recognise_form),
    Finder("framed dialog", framed_dialog.recognise_box),
    Finder("choices side by side", side_by_side.recognise_side_by_side, chats=True),
    Finder("pointed list", pointed_list.recognise_pointed, chats=True),
    Finder("filtered list", pointed_list.recognise_filtered, chats=True),
    Finder("keys beside words", side_by_side.recognise_keys),
    Finder("field with a drawn caret", framed_dialog.recognise_caret_field),
    Finder("lit list", pointed_list.recognise_lit_list),
    Finder("keys that are told", side_by_side.recognise_told_keys),
    Finder("drawn field", framed_dialog.recognise_drawn_field),
)


def recognise(view: View, facts: Facts, dialect: Dialect) -> Finding:
    """The prompt on this screen. If nothing asks, the screen itself, where a program possibly waits."""
    found = _recognise(view, facts, dialect)
    if found.type is PromptType.TYPE_UNKNOWN and not found.structural and not dialect.idles:
        halves = (_recognise(half, facts, dialect) for half in panes(view))
        found = next((one for one in halves if one.structural and one.choices), found)
    return with_secrecy(found, dialect)


def panes(view: View) -> tuple[View, ...]:
    """The parts of a full screen on both sides of a line from its top to its foot, each as if it was alone."""
    lines = [line for line in view.lines if line.strip()] if view.alternate else []
    sides = Counter(columns_of(line)[mark.start()] for line in lines for mark in _SIDE.finditer(line))
    col, count = max(sides.items(), key=lambda one: one[1], default=(0, 0))
    frames = (place for one in find_frames(view.lines) for place in (one.left, one.right))
    if count < max(4, len(lines) - 2) or not col or col in frames:
        return ()
    cut = [bisect_left(columns_of(line), col) for line in view.lines]
    left = tuple(line[:at].rstrip() for line, at in zip(view.lines, cut, strict=True))
    right = tuple(f"{'':<{col + 1}}{line[at + 1 :]}".rstrip() for line, at in zip(view.lines, cut, strict=True))
    both = ((left, view.col < col), (right, view.col > col))
    return tuple(
        replace(view, lines=lines, before=None, cursor_visible=view.cursor_visible and here) for lines, here in both
    )


def _recognise(view: View, facts: Facts, dialect: Dialect) -> Finding:
    if view.bottom() < 0:
        return _SILENT[not facts.reading]
    for finder in FINDERS:
        found = finder.find(view, facts, dialect) if finder.looks(facts, dialect) else None
        if found:
            return found
    full = view.alternate or facts.command in dialect.screen_programs or has_bar(view)
    if full and facts.canonical is not True:
        asked = recognise_foot(view, facts, dialect) or pointed_list.recognise_shaped(view, facts, dialect)
        return replace(asked or whole_screen(view, facts, dialect), barred=has_bar(view))
    found = recognise_line(view, facts, dialect)
    if found and found.rule in GUESSES and facts.canonical is False:
        found = _over_rows(view, facts, dialect) or found
        asks = found.rule == "line" and found.core.endswith(("?", ":", "？", "："))
        menu = pointed_list.find_above(view) if asks and not dialect.idles else None
        line = Asked(found.core, found.row)
        found = menu_finding(view, menu, pointed_list.SHAPED, line, dialect) if menu else found
    drawn = found and facts.canonical is not True and not view.cursor_visible
    below = found and facts.canonical is False and (found.detached or drawn)  # of a list that is not known
    if found is None or (below and (found.rule in GUESSES or found.type is PromptType.TYPE_CONFIRM_ENTER)):
        shaped = pointed_list.recognise_shaped(view, facts, dialect) if facts.canonical is not True else None
        if shaped is not None:
            return shaped
    guessed = found and found.rule in GUESSES and (found.detached or found.rule == "bare-line") and not found.structural
    if found is None or (drawn and guessed):
        return replace(whole_screen(view, facts, dialect), rule=DRAWN_SCREEN)
    offers = found.type is PromptType.TYPE_CONFIRM_ENTER and "esc" in found.core.lower()  # Enter's effect is hidden
    if (found.rule in GUESSES or offers) and dialect.idles and facts.canonical is False:
        return replace(found, type=PromptType.TYPE_UNKNOWN)
    return found


def _over_rows(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """A question that names its answers, over several rows that a line editor has filled and wrapped itself."""
    first = view.row
    while first > 0 and len(view.lines[first - 1]) >= view.cols and not is_drawn(view.lines[first - 1]):
        first -= 1
    joined = view.joined | frozenset(range(first, view.row))
    found = recognise_line(replace(view, joined=joined), facts, dialect) if joined != view.joined else None
    return found if found and found.choices and found.score >= numbers.LIKELY else None
