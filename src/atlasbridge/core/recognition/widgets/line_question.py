"""Questions at the cursor of a line: yes or no, press Enter, one of a list, a secret, or any text.

The dialect's rules name the patterns; lists, keys and secrets have modules of their own.
"""

from __future__ import annotations

import re

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import ENTER, Step, When
from atlasbridge.core.prompt.model import Choice, PromptType
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.dialect import Dialect, Rule, compiled, matches_any
from atlasbridge.core.recognition.finding import ASKS_ABROAD, Facts, Finding
from atlasbridge.core.recognition.kinds import asks_for_secret
from atlasbridge.core.recognition.widgets.inline_choices import inline_choices, keys_below, typing_hint, yes_no_choices
from atlasbridge.core.recognition.widgets.key_question import coded_finding, offered_finding, spelled_out
from atlasbridge.core.recognition.widgets.line_finding import (
    Line,
    asking_line,
    default_in,
    is_shell,
    line_finding,
    secret_finding,
    typed_key,
)
from atlasbridge.core.recognition.widgets.list_rows import HINT_ROW
from atlasbridge.core.recognition.widgets.typed_list import typed_list_finding
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace
from atlasbridge.core.vocabulary import first_label, speaks, spoken_in

_ABROAD = Rule(ASKS_ABROAD, "", "yes_no", score=numbers.LIKELY, yes="y", no="n")
_CONTINUE = Rule("press-enter-abroad", "", "confirm_enter", score=numbers.SURE)
_NOTHING_YET = ("›", "»", "·", "…", "‣")  # the cursor stands right behind the sign that ends the question
_IN_WORDS = lazy(r"\(yes or no\)", re.IGNORECASE)  # on a full screen that otherwise takes single keys
_BY_NUMBER = lazy(r"\b(?:type|enter)\b.{0,12}\bnumber\b", re.IGNORECASE)
_DATE = lazy(r"\d{4}-\d\d-\d\d[ \d:]{0,12}$")
_REMARK = lazy(r"^\s*+[⚠✖✘×▲!>›(\[]")  # what was wrong with the last answer, a hint in brackets
_FIELD_SIGN = lazy(r"^\s*+[⊙⦿◯◉]\s+\S")
_LABELLED = lazy(r"^(?:\s|[>❯›»]\s)\s*+[^\W\d_][^:]{0,30}:(?:\s|$)")
_MARKER = lazy(r"[>»›❯](?:\s|$)")
_PICKS = lazy(r"\b(?:choice|option|select(?:ion)?|choose|pick)\b[^,]*$", re.IGNORECASE)
MOST_NUMBERS = 9  # choices that the documents extract
_GOES_ON = lazy(r"""\w[^\s*]*[\d)\]:][*'"]$""")  # `irb(main):002:1*`: the last line has not ended yet


def recognise_line(view: View, facts: Facts, dialect: Dialect, strict: bool = False) -> Finding | None:
    """`strict`: only what a rule knows; on a full screen a line with the cursor behind it says nothing."""
    view = view.at_caret() if facts.canonical is False else view
    line = asking_line(view, facts)
    line = line and _asked_above(view, line, facts, dialect)
    if line is None or matches_any(dialect.passing, line.text):
        return None
    if facts.canonical and facts.echo is False:
        return secret_finding(view, line, numbers.CERTAIN, "echo-off")
    if strict:
        return None if line.detached else _on_full_screen(view, line, facts, dialect)
    if facts.canonical is not True and asks_for_secret(line.text, dialect):
        return secret_finding(view, line, numbers.KNOWN_WORDS, "secret-words")
    ruled = by_rule(view, line, facts, dialect)
    spelled = None if line.detached else spelled_out(view, line)
    if ruled is not None and ruled.type is PromptType.TYPE_YES_NO and ruled.score >= numbers.SURE and not spelled:
        return ruled  # a list further up belongs to an earlier question
    found = coded_finding(view, line, facts, dialect)
    found = None if spelled else found or typed_list_finding(view, line, facts, dialect)
    asks = not line.detached or (line.text.endswith("?") and facts.canonical is False)
    if found is None and asks and (spelled or ruled is None or ruled.type is PromptType.TYPE_FREE_TEXT):
        found = offered_finding(view, line, facts, dialect, spelled)
    found = found or ruled or _asked_over_command(view, line, facts, dialect) or plain_line(view, line, facts)
    drawn = facts.canonical is False and not line.detached and found.type is PromptType.TYPE_FREE_TEXT
    if drawn and (_is_one_field(view) if view.cursor_visible else _is_more_than_a_line(view, line)):
        return replace(found, type=PromptType.TYPE_UNKNOWN, text_steps=(), end_steps=(), structural=True)
    return found


def _is_one_field(view: View) -> bool:
    """`> Name:` above `  Age:`: which keys lead from one to the next and out of them is not known."""
    return all(_LABELLED.match(row) for row in (view.lines[view.row], *view.lines[view.row + 1 : view.row + 2]))


def _is_more_than_a_line(view: View, line: Line) -> bool:
    """A date that keys count up and down; or rows below that belong to it and are no remark, or one of several fields
    with the same sign: a form, a scale, a sheet to fill in.  What is typed there does not simply stand behind the
    question."""
    below = next((row for row in view.lines[view.row + 1 : view.row + 3] if row.strip()), "")
    fields = [row for row in view.lines[max(0, view.row - 1) : view.row + 1] if _FIELD_SIGN.match(row)]
    more = len(fields) == 2 or (below != "" and not _REMARK.match(below))
    return more or HINT_ROW.match(line.text) is not None or _DATE.search(view.lines[view.row]) is not None


def _asked_above(view: View, line: Line, facts: Facts, dialect: Dialect) -> Line:
    """A marker alone in its line (`>`) below a question that names its answers: together they ask."""
    above = next((at for at in (line.row - 1, line.row - 2) if at >= 0 and view.lines[at].strip()), -1)
    if line.detached or not _MARKER.match(line.text) or above < 0 or view.is_answered(above):
        return line
    start = view.line_start(above)
    question = view.joined_text(start, above + 1).strip()
    asked = by_rule(view, Line(f"{question} >", start), facts, dialect)
    yes_no = asked is not None and asked.type is PromptType.TYPE_YES_NO and asked.score > numbers.KNOWN_WORDS
    names = yes_no or (question.endswith((":", "?")) and len(inline_choices(question)) > 1)
    return Line(f"{question} {line.text}", start) if names else line


def _asked_over_command(view: View, line: Line, facts: Facts, dialect: Dialect) -> Finding | None:
    """`Run bash command? (y/n)` above the line of the command, `  $ git push`, which ends what is written."""
    above = line.row - 1
    if not line.text.startswith("$ ") or above < 0 or not view.lines[above].strip() or view.is_answered(above):
        return None
    start = view.line_start(above)
    asked = by_rule(view, Line(view.joined_text(start, above + 1).strip(), start), facts, dialect)
    if asked is None or asked.type is not PromptType.TYPE_YES_NO or asked.score < numbers.KNOWN_WORDS:
        return None
    around = line_finding(view, line, facts, asked.rule, asked.type, asked.score)
    return replace(asked, excerpt=around.excerpt, question=around.question, whole=around.whole, detached=line.detached)


def _on_full_screen(view: View, line: Line, facts: Facts, dialect: Dialect) -> Finding | None:
    ruled = by_rule(view, line, facts, dialect)
    if ruled and not view.cursor_visible and ruled.score < numbers.KNOWN_WORDS:
        return None  # words that nobody points at may stand anywhere
    listed = typed_list_finding(view, line, facts, dialect) if _BY_NUMBER.search(line.text) else None
    return listed or ruled or offered_finding(view, line, facts, dialect)


def by_rule(view: View, line: Line, facts: Facts, dialect: Dialect) -> Finding | None:
    for rule in dialect.rules:
        if rule.region != "line" or (line.detached and rule.score < numbers.KNOWN_WORDS):
            continue
        if rule.programs and not compiled(rule.programs).search(facts.command):
            continue
        match = compiled(rule.pattern).search(line.text)
        if match and not (rule.unless and compiled(rule.unless).search(line.text)):
            return finding_of(_in_its_words(rule, match), view, line, facts, dialect)
    if speaks("continue", "asks", line.text):
        return finding_of(_CONTINUE, view, line, facts, dialect)
    return None if line.detached else _asked_abroad(view, line, facts, dialect)


def _asked_abroad(view: View, line: Line, facts: Facts, dialect: Dialect) -> Finding | None:
    """Yes or no in another language, with no hint what to type: y and n are what all of them take."""
    language = spoken_in("confirm", "asks", line.text)
    if not language or speaks("confirm", "unless", line.text):
        return None
    yes, no = keys_below(view) if facts.canonical is False else ("", "")
    found = finding_of(replace(_ABROAD, yes=yes, no=no) if yes and no else _ABROAD, view, line, facts, dialect)
    names = {"y": first_label("agree", language), "n": first_label("refuse", language)}
    choices = tuple(replace(choice, label=names.get(choice.value) or choice.label) for choice in found.choices)
    return replace(found, choices=choices)


def _in_its_words(rule: Rule, match: re.Match[str]) -> Rule:
    """A rule whose groups `yes` and `no` say what must be typed: single letters in small, words as they are."""
    said = match.groupdict()
    if not said.get("yes"):
        return rule
    yes, no = (word.lower() if len(word) == 1 else word for word in (said["yes"], said["no"]))
    return replace(rule, yes=yes, no=no)


def finding_of(rule: Rule, view: View, line: Line, facts: Facts, dialect: Dialect) -> Finding:
    """What a matching rule means at this line."""
    found = line_finding(view, line, facts, rule.id, PromptType(rule.type), rule.score)
    clear = found.text_steps
    if rule.type == "yes_no":
        raw = facts.canonical is False
        hint = typing_hint(view) if raw and not rule.yes else ""
        in_words = hint or _IN_WORDS.search(line.text)
        one_key = ((rule.key or view.alternate) and raw and not in_words) or facts.one_key
        asked = f"{line.text} {hint}".strip()
        found = replace(found, choices=yes_no_choices(asked, rule, one_key, facts.canonical is False, clear, dialect))
    if rule.secret:
        found = replace(found, constraints={**found.constraints, "secret": True})
    if rule.idle:
        found = replace(found, constraints={**found.constraints, "idle": True}, structural=True)
    if rule.before_text and facts.canonical is False and not line.text.endswith(_NOTHING_YET):
        found = replace(found, text_steps=(Step(rule.before_text.encode(), When.DRAINED),))
    if rule.popup and facts.canonical is False:
        found = replace(found, end_steps=(Step(ENTER, When.MAY_LEAVE), Step(ENTER)))
    return replace(found, multiline=rule.multiline and view.bracketed_paste)


def _by_numbers(found: Finding, facts: Facts) -> Finding:
    """`Enter choice [1-4]:` without a list: its numbers are the choices."""
    low, high = found.constraints.get("min_choice"), found.constraints.get("max_choice")
    if not isinstance(low, int) or not isinstance(high, int) or high - low >= MOST_NUMBERS:
        return found
    choices = tuple(Choice(str(at), str(at), typed_key(str(at), facts)) for at in range(low, high + 1))
    return replace(found, type=PromptType.TYPE_MULTIPLE_CHOICE, choices=choices)


def plain_line(view: View, line: Line, facts: Facts) -> Finding:
    """Somebody reads a line here, and nothing says what: any text."""
    asks = line.text[-1:] in (":", "?", ">", "»", "›", "❯", "：", "？")
    asks = asks or (line.text[-1:] in ("]", ")", "$", "#", "%", "=", "】") and view.cursor_visible)
    asks = asks or _GOES_ON.match(line.text) is not None
    score = numbers.GUESS if asks and not line.detached else numbers.DOUBT
    found = line_finding(view, line, facts, "line" if asks else "bare-line", PromptType.TYPE_FREE_TEXT, score)
    found = replace(found, orders=not line.detached and is_shell(line.text))
    if asks and not line.detached and _PICKS.search(line.text):
        found = _by_numbers(found, facts)
    default = line.filled or default_in(line.text)
    return replace(found, constraints={**found.constraints, "default": default}) if default else found
