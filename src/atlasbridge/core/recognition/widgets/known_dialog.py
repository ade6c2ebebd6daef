"""What a tool's dialect knows: dialogs (`[[menu]]`) with their subjects (`[[subject]]`), words in a region of the
screen (`[[rule]]`), and the tool's state (`[[busy]]`, `[[title]]`).

A subject from the screen is never complete, because the tool's line breaks look the same as the original ones.
"""

from __future__ import annotations

from collections.abc import Iterator

from atlasbridge.core.prompt.keys import ENTER, Stands, Step, Until, When
from atlasbridge.core.prompt.model import Subject, SubjectKind, SubjectSource
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.dialect import Dialect, MenuRule, Rule, SubjectRule, compiled, matches_any, steady
from atlasbridge.core.recognition.finding import Facts, Finding, cut
from atlasbridge.core.recognition.meaning import asks_for_secret
from atlasbridge.core.recognition.question import Asked, dialog_above, ends_in_dots, logical_rows, own_box
from atlasbridge.core.recognition.widgets.line_question import Line, finding_of
from atlasbridge.core.recognition.widgets.list_rows import Menu, find_numbered, menu_finding
from atlasbridge.core.recognition.widgets.pointed_list import find_menu
from atlasbridge.core.recognition.widgets.side_by_side import find_across
from atlasbridge.core.screen.frames import find_frames, inside, peeled, unframed
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace


def recognise_dialog(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """A menu that one of the dialect's entries recognises by the text around it."""
    if not dialect.menus:
        return None
    text = "\n".join(unframed(view.lines))
    rules = [rule for rule in dialect.menus if not rule.needs or compiled(rule.needs).search(text)]
    pointed = find_menu(view, dialect.pointers, bullets=True) if rules else None
    counted = find_numbered(view, dialect.pointers) if rules else None
    for rule in rules:
        lists: tuple[Menu | None, ...] = (pointed, counted)[: 1 + rule.unpointed]
        if rule.labels:
            lists = (find_across(view, rule.labels),)
        elif rule.wraps_back:
            lists = (find_menu(view, dialect.pointers, back=True, bullets=True),)
        menu = next((one for one in lists if one and _fits(view, one, rule)), None)
        if menu is None:
            continue
        asked = dialog_above(view, menu.top, rule)
        if not asked.text:
            continue  # a dialog has words: this is text in the input box
        found = menu_finding(view, menu, rule, asked, dialect)
        subjects = (one for one in dialect.subjects if compiled(one.menus).fullmatch(rule.id))
        named = next((one for one in subjects if compiled(one.when).search(asked.text)), None)
        about = subject_on_screen(view, menu.top, asked, named) if named else None
        clipped = found.whole and _is_clipped(view, menu, asked, rule)
        unseen = named and (named.elsewhere or (named.boxed and about is None))  # elsewhere, or in an unfinished box
        whole = found.whole and not clipped and not unseen
        found = replace(found, own=dialect.idles, permission=rule.permission, deaf_s=rule.deaf_s)
        abridged = ends_in_dots(about.text if about else asked.text)
        return replace(found, subject=about, whole=whole, clipped=clipped, abridged=abridged)
    return None


WINDOW_TOP, WINDOW_FOOT = 2, 5  # a dialog from the first rows to the last ones fills the window: it has no more room


def _fits(view: View, menu: Menu, rule: MenuRule) -> bool:
    """Whether the menu is at the end of the screen, unlike earlier output, and has digits if these choose."""
    below = [row for row in view.lines[menu.bottom + 1 : view.bottom() + 1] if row.strip() or not rule.apart]
    return len(below) <= numbers.FOOT_ROWS and (menu.numbered or rule.choose != "digit")


def _is_clipped(view: View, menu: Menu, asked: Asked, rule: MenuRule) -> bool:
    """Whether the dialog has the tool's greatest height: then it leaves out the rest without notice."""
    around = [frame for frame in find_frames(view.lines) if frame.top <= asked.row and menu.bottom < frame.bottom]
    height = max((frame.bottom - frame.top + 1 for frame in around), default=len(view.lines))
    fills = asked.row <= WINDOW_TOP and menu.bottom >= len(view.lines) - WINDOW_FOOT
    tall = rule.most_rows > 0 and (fills or menu.top - asked.row >= rule.most_rows)
    return tall or 0 < int(rule.most_share * len(view.lines)) <= height


def subject_on_screen(view: View, end: int, asked: Asked, rule: SubjectRule) -> Subject | None:
    rows = peeled(view.lines, end)
    box = own_box(rows, asked.row, end) if rule.boxed else None
    found = [row.removeprefix(" ").rstrip() for row in inside(rows, box)] if box else []
    found = found if rule.boxed else _between(view, asked, end, rule) or []
    if not any(row.strip() for row in found):
        return None
    said = "\n".join(_names(found, rule) if rule.elsewhere else found)
    match = compiled(rule.target).search(asked.text) if rule.target else None
    target = said if rule.elsewhere else match[1].strip() if match else ""
    return Subject(SubjectKind(rule.kind), said, source=SubjectSource.SCREEN, target=target)


def _names(found: list[str], rule: SubjectRule) -> list[str]:
    """The names that the dialog shows: one for each mark. A name that is too long continues in the next row."""
    names = [found[0].strip()]
    for row in found[1:]:
        mark = compiled(rule.first).search(row)
        if mark:
            names.append(row[mark.end() :].strip())
        else:
            names[-1] += row.strip()
    return names


def _between(view: View, asked: Asked, end: int, rule: SubjectRule) -> list[str] | None:
    """The rows from the one below `after`, or from the one with `first`, to the last one before `until`."""
    rows = logical_rows(view, peeled(view.lines, end), asked.row, end)
    begins = [at for at, row in enumerate(rows) if compiled(rule.after or rule.first).search(row)]
    ends = [at for at, row in enumerate(rows) if rule.until and compiled(rule.until).search(row)]
    if not begins:
        return None
    first = begins[0] + (1 if rule.after else 0)
    stop = ends[-1] if ends and ends[-1] > first else len(rows)
    taken = rows[first:stop]
    if rule.first:
        match = compiled(rule.first).search(taken[0]) if taken else None
        hang = match.end() if match and rule.hang < 0 else rule.hang
        taken = [taken[0][match.end() :], *(_set_back(row, hang) for row in taken[1:])] if match else []
    else:
        margin = min((len(row) - len(row.lstrip(" ")) for row in taken if row.strip()), default=0)
        taken = _past_gutter([_set_back(row, min(margin, rule.indent)) for row in taken], rule.gutter)
    text = "\n".join(row.rstrip() for row in taken).rstrip("\n")
    text = text.lstrip("\n") if rule.after else text  # without the gap between the head and the text below it
    return text.split("\n") if text else None


def _past_gutter(rows: list[str], gutter: str) -> list[str]:
    """The rows without the bar before each one. A text with bars in only some of its rows keeps them."""
    bar = gutter.rstrip()
    if not gutter or not all(row.startswith(gutter) or row.rstrip() == bar for row in rows if row.strip()):
        return rows
    return [row.removeprefix(bar).removeprefix(" ") for row in rows]


def _set_back(row: str, columns: int) -> str:
    """The row without the indentation of the tool. A row with less indentation loses only what it has."""
    return row[columns:] if not row[:columns].strip() else row.lstrip(" ")


def recognise_region(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    for rule in dialect.rules:
        if rule.region == "line" or (rule.programs and not compiled(rule.programs).search(facts.command)):
            continue
        text, top = region_text(view, rule.region)
        match = compiled(rule.pattern).search(text)
        if match and not (rule.unless and compiled(rule.unless).search("\n".join(view.lines))):
            above = rule.idle or rule.type == "unknown"  # the last output tells a person more than the box below it
            shown = text[: match.start()] if above else text[: match.end()].rstrip()
            return _region_finding(rule, view, facts, dialect, match.group().strip(), top + shown.count("\n"))
    return None


def _region_finding(rule: Rule, view: View, facts: Facts, dialect: Dialect, asked: str, row: int) -> Finding:
    found = finding_of(rule, view, Line(asked, row), facts, dialect)
    until: Until = Stands(rule.before_shows) if rule.before_shows else When.REDRAWN
    steps = (Step(rule.before_text.encode(), until),) if rule.before_text else ()
    ending: tuple[Step, ...] = (Step(rule.after_text.encode()),) if rule.after_text else ()
    ending = (Step(b"", When.RESTED), *(ending or (Step(ENTER),))) if rule.rests else ending
    found = replace(found, line_mode=False, structural=True, end_steps=ending, priority=rule.priority, foot=row)
    found = replace(found, text_steps=steps or found.text_steps, deaf_s=rule.deaf_s)
    if rule.type == "free_text" and asks_for_secret(asked, dialect):
        found = replace(found, constraints={**found.constraints, "secret": True})
    if rule.type in ("yes_no", "confirm_enter", "multiple_choice"):  # the shown text is compared
        return replace(found, core=f"{steady(dialect, asked)}\0{steady(dialect, found.question)}")
    lines = [line.strip() for line in unframed(tuple(asked.split("\n"))) if line.strip()]
    if rule.idle or rule.type == "unknown":
        said = last_words(view, row, dialect)
        core = rule.id if rule.idle else f"{rule.id}\0{steady(dialect, said)}"
        return replace(found, excerpt=said or cut(" ".join(" ".join(lines).split())), question=said, core=core)
    question = lines[-1] if lines else asked
    said = last_words(view, row + 1, dialect)
    still = "\n".join(row.rstrip() for row in steady(dialect, said).split("\n"))  # the text above can spin or count
    core = f"{rule.id}: {question}\0{still}"
    return replace(found, excerpt=said, question=said, core=core)


def last_words(view: View, row: int, dialect: Dialect) -> str:
    """The tool's last output above its input box, which a person wants to know before the next instruction."""
    taken: list[str] = []
    for at in range(row - 1, max(-1, row - 40), -1):
        text = unframed(view.lines)[at].strip()
        if sum(char.isalpha() for char in text) > 3 and not matches_any(dialect.noise, text):
            taken.insert(0, text)
        elif taken and sum(map(len, taken)) > 80:
            break
    return "\n".join(taken)


def region_text(view: View, region: str) -> tuple[str, int]:
    if region == "title":
        return view.title, 0
    if region == "screen":
        return "\n".join(view.lines), 0
    bottom = view.bottom() + 1
    rows = numbers.TAIL_ROWS if region == "tail" else numbers.FOOTER_ROWS
    top = max(0, bottom - rows)
    return "\n".join(view.lines[top:bottom]), top


def stated(view: View, dialect: Dialect) -> str:
    """The tool's state according to its title or screen: "busy", "idle", "blocked", or "" if unknown."""
    return titled(view, dialect) or next((state for state, _ in marked_rows(view, dialect)), "")


def titled(view: View, dialect: Dialect) -> str:
    marks = (mark for mark in dialect.marks if mark.region == "title" and view.title)
    return next((mark.state for mark in marks if compiled(mark.pattern).search(view.title)), "")


def marked_rows(view: View, dialect: Dialect) -> Iterator[tuple[str, range]]:
    """The rows on the screen that match a mark of the dialect, with the state that each means."""
    for mark in dialect.marks:
        text, top = region_text(view, mark.region) if mark.region != "title" else ("", 0)
        for match in compiled(mark.pattern).finditer(text):
            first = top + text.count("\n", 0, match.start())
            yield mark.state, range(first, first + match.group().count("\n") + 1)
