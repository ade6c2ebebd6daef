"""Which prompt stands on a picture?  The recognisers in their order, and the marks that say "busy" or "idle".

Pure: the same picture, facts and dialect always give the same finding.
"""

from __future__ import annotations

from atlasbridge.core.prompt.keys import ENTER
from atlasbridge.core.prompt.model import EXCERPT_LIMIT, PromptType
from atlasbridge.core.prompt.step import Stands, Step, Until, When
from atlasbridge.core.recognition.asking_line import Line
from atlasbridge.core.recognition.dialect import Dialect, Rule, compiled, matches_any, steady
from atlasbridge.core.recognition.finding import Facts, Finding, cut
from atlasbridge.core.recognition.input_box import recognise_input_box
from atlasbridge.core.recognition.lit_list import recognise_lit_list
from atlasbridge.core.recognition.recognise_box import recognise_box, recognise_keys
from atlasbridge.core.recognition.recognise_line import finding_of, recognise_footer, recognise_line
from atlasbridge.core.recognition.recognise_menu import recognise_dialog, recognise_lit_numbers, recognise_menu
from atlasbridge.core.recognition.secrecy import asks_for_secret, with_secrecy
from atlasbridge.core.screen.frames import is_drawn, unframed
from atlasbridge.core.screen.style import REVERSE
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace

SILENT = "(the program waits, and has written nothing)"
MAYBE_SILENT = "(the program has written nothing, and may wait for input)"
TAIL_ROWS = 10
FOOTER_ROWS = 5
DRAWING = (recognise_dialog, recognise_lit_numbers, recognise_box, recognise_menu, recognise_keys, recognise_lit_list)
GUESSES = ("line", "bare-line")  # an AI CLI's dialog that nobody knows is not answered by words and Enter
TALKING = (
    recognise_dialog,
    recognise_lit_numbers,
    recognise_menu,
)  # AI CLIs frame what they say: a box alone is no dialog of theirs


def region_text(view: View, region: str) -> tuple[str, int]:
    """The text of a region, and the row it begins on."""
    if region == "title":
        return view.title, 0
    if region == "screen":
        return "\n".join(view.lines), 0
    bottom = view.bottom() + 1
    rows = TAIL_ROWS if region == "tail" else FOOTER_ROWS
    top = max(0, bottom - rows)
    return "\n".join(view.lines[top:bottom]), top


def stated(view: View, dialect: Dialect) -> str:
    """What the tool says about itself on the screen or in its title: "busy", "idle", "blocked", or ""."""
    for mark in dialect.marks:
        text, _ = region_text(view, mark.region)
        if compiled(mark.pattern).search(text):
            return mark.state
    return ""


def recognise(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """The prompt on this picture, or None when there is nothing that could be one."""
    found = _recognise(view, facts, dialect)
    return found and with_secrecy(found, dialect)


def _recognise(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    if view.bottom() < 0:
        return _silent(facts) if facts.reading or facts.blind else None
    found = _by_region(view, facts, dialect)
    if found:
        return found
    if facts.canonical is not True:
        for recogniser in TALKING if dialect.idles else (recognise_input_box, *DRAWING):
            found = recogniser(view, facts, dialect)
            if found:
                return found
    full = view.alternate or facts.command in dialect.screen_programs or _has_bar(view)
    if full and facts.canonical is not True:
        asked = recognise_line(view, facts, dialect, strict=True) or recognise_footer(view, facts, dialect)
        return replace(asked or whole_screen(view, facts, dialect), barred=_has_bar(view))
    found = recognise_line(view, facts, dialect)
    if found and found.rule in GUESSES and dialect.idles and facts.canonical is False:
        return replace(found, type=PromptType.TYPE_UNKNOWN)
    return found


def _has_bar(view: View) -> bool:
    """A reversed bar in the last row, with the cursor in it: a pager that does without a screen of its own."""
    return view.row == len(view.lines) - 1 and bool(view.style(view.row, 0) & REVERSE)


def _silent(facts: Facts) -> Finding:
    """Somebody reads (or may read), and nothing was ever written: the person must know what was started."""
    kind = PromptType.TYPE_UNKNOWN if facts.blind else PromptType.TYPE_FREE_TEXT
    said = MAYBE_SILENT if facts.blind else SILENT
    return Finding("silent", kind, 0.45, said, said)


def _by_region(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    for rule in dialect.rules:
        if rule.region == "line" or (rule.programs and not compiled(rule.programs).search(facts.command)):
            continue
        text, top = region_text(view, rule.region)
        match = compiled(rule.pattern).search(text)
        if match and not (rule.unless and compiled(rule.unless).search("\n".join(view.lines))):
            shown = text[: match.start()] if rule.idle else text[: match.end()].rstrip()
            return _region_finding(rule, view, facts, dialect, match.group().strip(), top + shown.count("\n"))
    return None


def _region_finding(rule: Rule, view: View, facts: Facts, dialect: Dialect, asked: str, row: int) -> Finding:
    found = finding_of(rule, view, Line(asked, row), facts, dialect)
    until: Until = Stands(rule.before_shows) if rule.before_shows else When.REDRAWN
    steps = (Step(rule.before_text.encode(), until),) if rule.before_text else ()
    ending: tuple[Step, ...] = (Step(rule.after_text.encode()),) if rule.after_text else ()
    ending = (Step(b"", When.RESTED), *(ending or (Step(ENTER),))) if rule.rests else ending
    found = replace(found, line_mode=False, structural=True, text_steps=steps, end_steps=ending, priority=rule.priority)
    found = replace(found, core=steady(dialect, asked))
    if rule.type == "free_text" and asks_for_secret(asked, dialect):
        found = replace(found, constraints={**found.constraints, "secret": True})
    if rule.idle:
        said = last_words(view, row, dialect)
        plain = " ".join(" ".join(unframed(tuple(asked.split("\n")))).split())
        return replace(found, excerpt=said or cut(plain), question=said, core=rule.id)
    if rule.type != "free_text":
        return found
    lines = [line.strip() for line in unframed(tuple(asked.split("\n")))]
    question = next((line for line in reversed(lines) if line), asked)  # what stands above it may turn or count
    said = last_words(view, row + 1, dialect)
    return replace(found, excerpt=said, question=said, core=f"{rule.id}: {question}")


def last_words(view: View, row: int, dialect: Dialect) -> str:
    """What the tool said last above its input box: what a person wants to know before the next instruction."""
    taken: list[str] = []
    for at in range(row - 1, max(-1, row - 40), -1):
        text = unframed(view.lines)[at].strip()
        if sum(char.isalpha() for char in text) > 3 and not matches_any(dialect.noise, text):
            taken.insert(0, text)
        elif taken and sum(map(len, taken)) > 80:
            break
    return "\n".join(taken)


def whole_screen(view: View, facts: Facts, dialect: Dialect) -> Finding:
    """A full-screen program at rest of which nothing is known: a person must look."""
    name = f" ({facts.command})" if facts.command else ""
    row = min(view.row, max(0, view.bottom()))
    return Finding(
        "whole-screen" + name, PromptType.TYPE_UNKNOWN, 0.62, _glimpse(view, row), view.text(), row, line_mode=False,
        question=view.text(),
    )  # fmt: skip


def _glimpse(view: View, row: int) -> str:
    """What stands around the cursor, as much as fits; from the cursor on where it is high up, else up to it."""
    below = [line.rstrip() for line in view.lines[row:] if not is_drawn(line)]
    above = [line.rstrip() for line in view.lines[:row] if not is_drawn(line)]
    if sum(map(len, below)) + len(below) >= EXCERPT_LIMIT:
        return "\n".join(below)[:EXCERPT_LIMIT].strip()
    return cut("\n".join([*above, *below]))
