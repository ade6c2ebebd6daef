"""What a dialect's rules and marks know by words in a region of the screen: a tool's input box, its own questions.

Answered as the rule says; an idle box also tells what the tool said last.
"""

from __future__ import annotations

from collections.abc import Iterator

from atlasbridge.core.prompt.keys import ENTER, Stands, Step, Until, When
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.dialect import Dialect, Rule, compiled, matches_any, steady
from atlasbridge.core.recognition.finding import Facts, Finding, cut
from atlasbridge.core.recognition.kinds import asks_for_secret
from atlasbridge.core.recognition.widgets.line_finding import Line
from atlasbridge.core.recognition.widgets.line_question import finding_of
from atlasbridge.core.screen.frames import unframed
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace


def recognise_region(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    for rule in dialect.rules:
        if rule.region == "line" or (rule.programs and not compiled(rule.programs).search(facts.command)):
            continue
        text, top = region_text(view, rule.region)
        match = compiled(rule.pattern).search(text)
        if match and not (rule.unless and compiled(rule.unless).search("\n".join(view.lines))):
            above = rule.idle or rule.type == "unknown"  # what was said last tells a person more than the box below it
            shown = text[: match.start()] if above else text[: match.end()].rstrip()
            return _region_finding(rule, view, facts, dialect, match.group().strip(), top + shown.count("\n"))
    return None


def _region_finding(rule: Rule, view: View, facts: Facts, dialect: Dialect, asked: str, row: int) -> Finding:
    found = finding_of(rule, view, Line(asked, row), facts, dialect)
    until: Until = Stands(rule.before_shows) if rule.before_shows else When.REDRAWN
    steps = (Step(rule.before_text.encode(), until),) if rule.before_text else ()
    ending: tuple[Step, ...] = (Step(rule.after_text.encode()),) if rule.after_text else ()
    ending = (Step(b"", When.RESTED), *(ending or (Step(ENTER),))) if rule.rests else ending
    found = replace(found, line_mode=False, structural=True, text_steps=steps, end_steps=ending, priority=rule.priority)
    found = replace(found, core=steady(dialect, asked), deaf_s=rule.deaf_s, foot=row)
    if rule.type == "free_text" and asks_for_secret(asked, dialect):
        found = replace(found, constraints={**found.constraints, "secret": True})
    if rule.idle or rule.type == "unknown":
        said = last_words(view, row, dialect)
        plain = " ".join(" ".join(unframed(tuple(asked.split("\n")))).split())
        core = rule.id if rule.idle else f"{rule.id}\0{steady(dialect, said)}"
        return replace(found, excerpt=said or cut(plain), question=said, core=core)
    if rule.type != "free_text":
        return replace(found, core=f"{found.core}\0{steady(dialect, found.question)}")  # what is shown is compared
    lines = [line.strip() for line in unframed(tuple(asked.split("\n")))]
    question = next((line for line in reversed(lines) if line), asked)
    said = last_words(view, row + 1, dialect)
    still = "\n".join(row.rstrip() for row in steady(dialect, said).split("\n"))  # what stands above may turn or count
    core = f"{rule.id}: {question}\0{still}"
    return replace(found, excerpt=said, question=said, core=core)


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


def region_text(view: View, region: str) -> tuple[str, int]:
    """The text of a region, and the row it begins on."""
    if region == "title":
        return view.title, 0
    if region == "screen":
        return "\n".join(view.lines), 0
    bottom = view.bottom() + 1
    rows = numbers.TAIL_ROWS if region == "tail" else numbers.FOOTER_ROWS
    top = max(0, bottom - rows)
    return "\n".join(view.lines[top:bottom]), top


def stated(view: View, dialect: Dialect) -> str:
    """What the tool says about itself in its title or on the screen: "busy", "idle", "blocked", or ""."""
    return titled(view, dialect) or next((state for state, _ in marked_rows(view, dialect)), "")


def titled(view: View, dialect: Dialect) -> str:
    marks = (mark for mark in dialect.marks if mark.region == "title" and view.title)
    return next((mark.state for mark in marks if compiled(mark.pattern).search(view.title)), "")


def marked_rows(view: View, dialect: Dialect) -> Iterator[tuple[str, range]]:
    """Where on the screen words stand that the tool writes while it works, and what they say."""
    for mark in dialect.marks:
        text, top = region_text(view, mark.region) if mark.region != "title" else ("", 0)
        for match in compiled(mark.pattern).finditer(text):
            first = top + text.count("\n", 0, match.start())
            yield mark.state, range(first, first + match.group().count("\n") + 1)
