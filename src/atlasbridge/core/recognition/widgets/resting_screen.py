"""Pagers, editors and other full-screen programs: the line in which they ask, or else the whole screen for a person.

They ask in a bar, in the last row, in a separate line near the foot, or in a box without buttons. The cursor can be
elsewhere.
"""

from __future__ import annotations

import re

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import NAMED, Step, When
from atlasbridge.core.prompt.model import EXCERPT_LIMIT, PromptType
from atlasbridge.core.prompt.vocabulary import speaks
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.dialect import Dialect, Rule, steady
from atlasbridge.core.recognition.finding import FOOTER, Facts, Finding, compact, cut, without_drawing
from atlasbridge.core.recognition.widgets.line_question import (
    BACKSPACE,
    Line,
    line_finding,
    recognise_line,
    yes_no_choices,
)
from atlasbridge.core.recognition.widgets.list_rows import ground_of
from atlasbridge.core.screen.frames import find_frames, inside, is_drawn
from atlasbridge.core.screen.style import REVERSE
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace

_ASKED_BELOW = lazy(
    r"^(?P<ask>\W{0,3}[^\W\d_](?:[^:?]|\?(?=['\"])){1,60}(?:\[[^\]]*\])?(?:\??:|\?)|\[[^\[\]]{2,30}\])\s(?P<filled>(?![\[(].*[\])]$)\S.*)?$"
)
_Y_AND_N = lazy(r"\by\b[^()\[\]]{1,30}\bn\b[^()\[\]]{0,20}[)\]]", re.IGNORECASE)
_ENDS_ASKING = lazy(r"\?(?:\s[\[(][^\])]*[\])])?$")
_APART = "   "  # between the keys that a row explains and the line to type into
_LETTERED = lazy(r"\?: [yYnN]$")
_LETTER = Rule("footer", "", "yes_no", yes="y", no="n")


def has_bar(view: View) -> bool:
    """Whether the last row is a reversed bar with the cursor in it: a pager without an alternate screen."""
    return view.row == len(view.lines) - 1 and bool(view.style(view.row, 0) & REVERSE)


def whole_screen(view: View, facts: Facts, dialect: Dialect) -> Finding:
    """A finding for an unknown full-screen program that does not change: a person must look."""
    name = f" ({facts.command})" if facts.command else ""
    row = min(view.row, max(0, view.bottom()))
    text = view.text()
    found = Finding("whole-screen" + name, PromptType.TYPE_UNKNOWN, numbers.LOOK, _glimpse(view, row), "", row)
    views = facts.command in dialect.screen_programs or facts.command in dialect.quiet_programs
    asked = asked_at_foot(view)
    found = replace(found, core=steady(dialect, text), line_mode=False, question=text, orders=views and not asked)
    return replace(found, excerpt=asked) if asked else found


def asked_at_foot(view: View) -> str:
    """The last row, if a program begins to ask there: the cursor is right behind words that end as a question or with
    a blank, or it is hidden and the words end as a question. Or the cursor's row, if it asks between two empty ones.
    """
    here, at = view.lines[view.row].rstrip(), len(view.lines) - 1
    beside = "".join(view.lines[max(0, view.row - 1) : view.row + 2]).strip()
    words = sum(map(str.isalpha, here)) > 1 and "?" in here
    if view.cursor_visible and beside == here.strip() and words and len(here) <= view.col <= len(here) + 1:
        return beside
    row = view.lines[-1].rstrip()
    if _is_ground(view, at) or sum(map(str.isalpha, row)) < 2 or row.startswith(":"):
        return ""
    behind = view.row == at and len(row) <= view.col <= len(row) + 1
    label = view.cursor_visible and view.col > len(row) and row[0].isalpha() and len(row.split()) < 3  # such as `M-x `
    words = "?" in row or ":" in row or label or (view.cursor_visible and _is_lit_above(view, row.strip()))
    return row.strip() if (words if behind else not view.cursor_visible and _ENDS_ASKING.search(row)) else ""


def _is_lit_above(view: View, words: str) -> bool:
    """Whether a reversed row ends in these words, which name a file or folder: the field below takes another name."""
    rows = ((at, line) for at, line in enumerate(view.lines[:-1]) if f" {line.rstrip('/*@|=')}".endswith(f" {words}"))
    return any(view.style(at, line.rindex(words)) & REVERSE for at, line in rows)


def _glimpse(view: View, row: int) -> str:
    """The text around the cursor, as much as fits: from the cursor on if it is high up, otherwise up to it. An
    editor's message in the last row comes first, unless that row explains keys in columns.
    """
    last = view.lines[-1].strip() if row < len(view.lines) - 1 and view.lines[-1].count("  ") < 2 else ""
    below = without_drawing("\n".join(view.lines[row:]))
    if len(below) < EXCERPT_LIMIT:
        return cut(without_drawing(view.text())) or view.text()
    return f"{last}\n{below}"[:EXCERPT_LIMIT].strip()


def recognise_foot(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """The line that asks on a full screen: the last one of a box, the cursor's line, one of the last two, or the last
    one with text.
    """
    box = _box(view)
    found = recognise_line(box, facts, dialect, strict=True) if box else None
    if found is not None and found.score >= numbers.SURE:
        return _by_itself(found)
    found = recognise_line(_below_bar(view, view.row), facts, dialect, strict=True)
    found = found or recognise_footer(view, facts, dialect)
    if found is not None or dialect.idles:
        return found and _by_itself(found)
    lowest = len(view.lines) - 1
    for row in dict.fromkeys((lowest, lowest - 1, lowest if view.cursor_visible else view.bottom())):
        lettered = _LETTERED.search(view.lines[row])
        if not lettered and not view.lines[row].rstrip().endswith((":", "?", ")", "]", ">")):
            continue
        here = _below_bar(replace(view, row=row, col=len(view.lines[row]), before=None, cursor_visible=True), row)
        if lettered:
            return recognise_footer(here, facts, dialect)
        found = recognise_line(here, facts, dialect, strict=True)
        sure = found is not None and (
            found.score >= numbers.SURE or found.rule == "offered" or _Y_AND_N.search(found.core)
        )
        if found is not None and found.choices and sure:
            return _by_itself(found)
        last = not view.cursor_visible and not "".join(view.lines[row + 1 :]).strip()
        if last and speaks("hint", "fills", view.lines[row]):
            return _fill_in(here, view.lines[row].strip(), "", facts)
    return None


def _by_itself(found: Finding) -> Finding:
    """The finding with its line as the whole question. Its subject is possibly a highlighted row above."""
    if not found.choices:
        return found
    asked = found.question or found.core
    return replace(found, structural=True, alone=False, core=asked, excerpt=compact(asked))


def _below_bar(view: View, row: int) -> View:
    """The view without the content above the lowest bar or gap over this row."""
    for at in range(row - 1, 0, -1):
        if _is_ground(view, at) or not (view.lines[at].strip() or view.lines[at - 1].strip()):
            return replace(view, lines=("",) * (at + 1) + view.lines[at + 1 :], scrolled=0)
    return view  # the same view, so that cached results for its rows stay valid


def _is_ground(view: View, at: int) -> bool:
    """Whether the row has its own background from end to end."""
    row = view.lines[at]
    return bool(row) and all(ground_of(view.style(at, col)) for col in (0, len(row) // 2, len(row) - 1))


def _box(view: View) -> View | None:
    """The box in front of everything else, as a view with the cursor after its last words."""
    boxes = [one for one in find_frames(view.lines) if not view.cursor_visible or one.top < view.row < one.bottom]
    if not view.alternate or len(boxes) != 1:
        return None
    lines = tuple(row.rstrip() for row in inside(view.lines, boxes[0]))
    last = max((at for at, row in enumerate(lines) if row.strip()), default=-1)
    return View(lines, last, len(lines[last]), alternate=True, cols=view.cols) if last >= 0 else None


def recognise_footer(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """The question of a full-screen program in a bar or in the last row: `File Name to Write: out.txt`."""
    last = view.row == len(view.lines) - 1 or (view.row == view.bottom() and _says_little(view, facts, dialect))
    above = view.lines[view.row - 1].strip() if view.row else ""
    alone = sum(map(bool, view.lines)) <= 3 and view.bottom() <= view.row  # nothing else is on the screen
    if view.cursor_visible and alone and above.endswith(("?", ":")) and facts.command not in dialect.screen_programs:
        return _fill_in(view, above, view.before_cursor().strip(), facts)
    bar = bool(view.style(view.row, 0) & REVERSE) or last or _stands_apart(view)
    asked = _ASKED_BELOW.match(view.before_cursor().rpartition(_APART)[2]) if bar and view.cursor_visible else None
    if asked and asked["ask"].endswith("?:") and f"{asked['filled'] or ''}{view.behind_cursor()}".lower() in ("y", "n"):
        place = Line(asked["ask"].strip(), view.row)
        found = line_finding(view, place, facts, FOOTER, PromptType.TYPE_YES_NO, numbers.SURE)
        raw = replace(facts, canonical=False)
        return replace(found, choices=yes_no_choices(found.core, _LETTER, raw, facts.one_key, (), dialect))
    return _fill_in(view, asked["ask"].strip(), asked["filled"] or "", facts) if asked else None


def _fill_in(view: View, asked: str, filled: str, facts: Facts) -> Finding:
    """A free-text finding that replaces the text before and after the cursor."""
    line = Line(asked, view.row)
    found = line_finding(view, line, facts, FOOTER, PromptType.TYPE_FREE_TEXT, numbers.LIKELY)
    behind = view.behind_cursor()
    keys = BACKSPACE * len(filled) + NAMED["delete"] * len(behind)
    clear = (Step(keys, When.REDRAWN),) if keys else ()
    shown = {**found.constraints, "default": filled + behind} if filled + behind else found.constraints
    found = replace(found, question=asked, line_mode=False, filled=filled + behind, text_steps=clear, constraints=shown)
    return replace(found, excerpt=f"{asked} {found.filled}".rstrip(), whole=True, alone=False)


def _says_little(view: View, facts: Facts, dialect: Dialect) -> bool:
    """Whether a few words and a label or question are all that is on the screen. In an editor, it can be a file."""
    rows, line = sum(bool(line.strip()) for line in view.lines), view.lines[view.row].lstrip()
    words = line[:1].isupper() or "?" in line  # code begins with a small letter
    return rows <= numbers.LIT_OTHER_ROWS and words and facts.command not in dialect.screen_programs


def _stands_apart(view: View) -> bool:
    """Whether the line is near the foot, with only a frame right above it; rows below explain keys."""
    above = view.lines[view.row - 1] if view.row else ""
    return view.row >= len(view.lines) - numbers.EDGE_ROWS and is_drawn(above) and not view.behind_cursor()
