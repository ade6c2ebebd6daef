"""Questions at the cursor of a line: yes or no, press Enter, one of a list, a secret, or any text.

The dialect's rules name the patterns.  Choices stand in the line itself, as keys and words in brackets or codes in a
sentence, or in a numbered or lettered list above it.  For such a list: the line's words, or a bare mark right below a
list whose head asks; against it: a shell's prompt, words between list and line, a list that has had its answer.
Answered by key, number or letter, with Enter where the terminal takes lines.
"""

from __future__ import annotations

import re

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import ENTER, Step, When, named_key
from atlasbridge.core.prompt.model import Choice, PromptType
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.dialect import Dialect, Rule, compiled, matches_any
from atlasbridge.core.recognition.finding import ASKS_ABROAD, PASSING, Facts, Finding, compact
from atlasbridge.core.recognition.kinds import asks_for_secret, choice_of, refuses
from atlasbridge.core.recognition.question import block, context_above, question_above
from atlasbridge.core.recognition.widgets import inline_choices as inline
from atlasbridge.core.recognition.widgets.line_finding import (
    BARE,
    Line,
    asking_line,
    default_in,
    is_shell,
    line_finding,
    secret_finding,
    typed_key,
)
from atlasbridge.core.recognition.widgets.list_rows import HINT_ROW
from atlasbridge.core.screen.frames import is_drawn, unframed
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import frozen, replace
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

_EDGES = ("│", "┃", "║")
_NUMBERED = lazy(
    r"(?:^|(?<=\s\s)(?!\s)|(?<=\t)(?!\s))[*>+-]?\s*+(?:[\[(]\s?)?(\d{1,3})(?:[\]).:>]|\)\.| [-/=](?=\s))\s++"
    r"(\S++(?:\s++\S++)*?)(?=\s{2,}+[\[(]?\d{1,3}[\]).:]\s|\s*+$)"
)
_TABLED = lazy(r"^\s*+[*>]?\s*+(\d{1,3})\s{3,}+(\S.*)$")
_NUMBER_FIRST = lazy(r"^\s*+[*>]?\s*+(\d{1,3})\s++(\S.*)$")  # believed only where the numbers are complete
_LETTERED = lazy(
    r"^\s*[\[(]([A-Za-z])[\])]\s+(\S.*)$|^\s*([A-Za-z])[).:]\s+(\S.*)$|^\s{2,8}([a-zA-Z])\s{2,}(?![:=-]\s)(\S.*)$"
    r"|^\s*([A-Za-z])(?: or [A-Za-z])?\s+[:=-]\s+(\S.*)$"
)
_KEYED = lazy(r"^\s{0,8}[\[(]([A-Za-z]{1,2}|\d)[\])]\s++(\S.*)$")  # `(q)  Quit and do nothing.`
_CHOOSING = lazy(
    r"\b(?:select|selection|choices?|choose|option|number|which|pick|decision|what now|your answer)\b"
    r"|\b(?:enter|type) (?:an?|the|one|your)? ?(?:of the )?"
    r"(?:value|letter|digit|key|item|entry|code|index|id|above)s?\b"
    r"|#\?|^\w(?:/\w)+>|^\[[\w?]{2,}\]\W*$|\((?:\w/)+\w\)|[\[(]\d+\s*[-–]\s*\d+[\]),]|\bdefault\b|\((?:\w|\d+)\):?$",
    re.IGNORECASE,
)
_CHOSEN = lazy(r"[:?>]\s+(?:\d{1,3}|[A-Za-z])$")
_HEADS = lazy(r"\b(?:what|how)\b[^?]*\?\W*$|\b(?:options|menu|actions|commands)\W*$", re.IGNORECASE)
_TAKES_SEVERAL = lazy(r"separated by (?:spaces|blanks)|(?:space|blank)[- ]separated", re.IGNORECASE)


def recognise_line(view: View, facts: Facts, dialect: Dialect, strict: bool = False) -> Finding | None:
    """`strict`: only what a rule knows; on a full screen a line with the cursor behind it says nothing."""
    view = view.at_caret() if facts.canonical is False else view
    line = asking_line(view, facts)
    line = line and _asked_above(view, line, facts, dialect)
    if line is None:
        return None
    if matches_any(dialect.passing, line.text):
        passing = line_finding(view, line, facts, PASSING, PromptType.TYPE_UNKNOWN, numbers.DOUBT)
        return replace(passing, line_mode=False, orders=True)
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
    drawn = facts.canonical is not True and not line.detached and found.type is PromptType.TYPE_FREE_TEXT
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
    names = yes_no or (question.endswith((":", "?")) and len(inline.inline_choices(question)) > 1)
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
    told = inline.keys_below(view) if facts.canonical is False else []
    yes, no = (told[0][0], told[1][0]) if told else ("", "")
    language = spoken_in("confirm", "asks", line.text)
    shaped = yes and no and line.text.rstrip().endswith(("?", "？", ")"))  # whatever its words are
    if not (language or shaped) or speaks("confirm", "unless", line.text):
        return None
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
        hint = inline.typing_hint(view) if raw and not rule.yes else ""
        in_words = hint or _IN_WORDS.search(line.text)
        one_key = ((rule.key or view.alternate) and raw and not in_words) or facts.one_key
        asked = f"{line.text} {hint}".strip()
        choices = inline.yes_no_choices(asked, rule, one_key, raw, clear, dialect)
        told = inline.keys_below(view)[2:] if raw else []
        others = [choice_of(key, label, (Step(named_key(key) or key.encode()),), dialect) for key, label in told]
        found = replace(found, choices=(*choices, *others))
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


def spelled_out(view: View, line: Line) -> list[str] | None:
    """Words with the letter to type, in the question or in the sentence above it, unless they are yes and no."""
    words = inline.marked_words(line.text)
    if line.row > 0 and line.text.endswith(("?", ":")):
        above = inline.marked_words(view.joined_text(view.line_start(line.row - 1), line.row))
        words = [*above, *words] if not words or not set(above) & set(words) else words
    return words if words and not any(keyed(word)[1].lower() in ("yes", "no") for word in words) else None


def offered_finding(
    view: View, line: Line, facts: Facts, dialect: Dialect, spelled: list[str] | None = None
) -> Finding | None:
    """The choices stand in the line itself: `(eu, us, ap) [eu]:`, `[y,n,q,?]?`, `(Y)es/(N)o/(A)ll`."""
    words = spelled or inline.inline_choices(line.text)
    if len(words) < 2:
        return None
    found = line_finding(view, line, facts, "offered", PromptType.TYPE_MULTIPLE_CHOICE, numbers.LIKELY)
    default = "" if words[-1].endswith(f"({default_in(line.text)})") else default_in(line.text)
    choices = []
    cased = len({word.lower() for word in words}) < len(words) or len({keyed(word)[0] for word in words}) < len(words)
    capital = [word for word in words if len(word) == 1 and word.isupper()]
    default = default or (capital[0] if len(capital) == 1 and "/".join(words) in line.text and not cased else "")
    for word in words:
        key, label = keyed(word, as_written=bool(spelled) or ", " in line.text, cased=cased)
        single = facts.one_key or (view.alternate and facts.canonical is False)
        steps = (Step(named_key(key) or key.encode()),) if single else (*found.text_steps, *typed_key(key, facts))
        is_default = default.lower() in (key.lower(), label.lower()) if default else False
        choices.append(choice_of(key, label, steps, dialect, is_default))
    every = dialect.idles and any(choice.label.lower() == "all" for choice in choices)  # of what, is told elsewhere
    return replace(found, choices=tuple(choices), whole=found.whole and not every)


def coded_finding(view: View, line: Line, facts: Facts, dialect: Dialect) -> Finding | None:
    items = () if line.detached else inline.coded_choices(view, line.row, line.text)
    if not items:
        return None
    found = line_finding(view, line, facts, "coded", PromptType.TYPE_MULTIPLE_CHOICE, numbers.SURE)
    choices = [choice_of(key, label, (*found.text_steps, *typed_key(key, facts)), dialect) for key, label in items]
    return replace(found, choices=tuple(choices))


def keyed(word: str, as_written: bool = False, cased: bool = False) -> tuple[str, str]:
    """`(D)on't ask` -> d, Don't ask; a plain word is its own key.  `cased`: small and capital letters differ here."""
    marked = re.search(r"[\[(](\w)[\])]", word)
    if marked and len(word) > 3:
        label = word if as_written else word.replace(marked[0], marked[1]).strip()
        return marked[1] if cased else marked[1].lower(), label
    short = re.fullmatch(r"(\w)\((\w+)\)", word)  # `d(iff)`
    plain = word.strip("[]() ")
    return (short[1], short[1] + short[2]) if short else (plain, plain)


@frozen
class Listed:
    """`items` are (what is typed, label), in the order of their keys; `current` is the key of the marked one."""

    kind: str  # "numbers" or "letters"
    items: tuple[tuple[str, str], ...]
    current: str = ""
    row: int = 0  # of its first item
    bottom: int = 0


def listed_choices(view: View, row: int, question: str) -> Listed | None:
    """The list that ends shortly above `row`, if the line or the list's head asks to choose of it."""
    numbered = ((_NUMBERED, "numbers"), (_TABLED, "numbers"))
    for pattern, kind in (*numbered, (_LETTERED, "letters"), (_KEYED, "letters"), (_NUMBER_FIRST, "numbers")):
        found = _collect(view, row, pattern, kind, spread=pattern is _KEYED)
        believed = found and (pattern is not _NUMBER_FIRST or _is_complete(found, row))
        if found and believed and _asks_to_choose(view, found, row, question):
            return found
    return None


def _is_complete(found: Listed, row: int) -> bool:
    """Row by row down to the question, none left out."""
    numbers = [int(key) for key, _ in found.items]
    return found.row + len(numbers) == row and numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _collect(view: View, row: int, pattern: re.Pattern[str], kind: str, spread: bool = False) -> Listed | None:
    """`spread`: every choice may be a paragraph of its own."""
    items: dict[str, str] = {}
    gap, top, bottom, current, seen = 0, row, row, "", False
    for at in range(row - 1, -1, -1):
        text = unframed(view.lines)[at]
        found = [tuple(part for part in match.groups() if part) for match in pattern.finditer(text)]
        if found and (kind == "letters" or text[: text.find(found[0][0])].strip(" \t*>+-[(") == ""):
            for key, label in found:
                items.setdefault(key, " ".join(label.split()))
                if re.match(rf"\s*[*>+]\s*\W?{key}\b", text):
                    current = key
            top, bottom, seen = at, bottom if seen else at, True
            continue
        if seen and not text.startswith("   ") and not (spread and not text.strip()):
            break
        if not seen and _CHOSEN.search(text) and _CHOOSING.search(text):
            break  # that list has had its answer
        gap += 0 if seen else 1
        if gap > numbers.GAP_ROWS:
            break
    ordered = _in_order(items) if kind == "numbers" else tuple(reversed(items.items()))
    return Listed(kind, ordered, current, top, bottom) if len(ordered) >= 2 else None


def _in_order(items: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """By number.  Numbers of several columns must be complete; gaps are for lists that count downwards row by row."""
    numbers = sorted(int(key) for key in items)
    found = [int(key) for key in items]  # from the bottom up
    complete = numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else False
    if not numbers or numbers[0] > 1 or not (complete or found == numbers[::-1]):
        return ()
    by_number = {int(key): (key, label) for key, label in items.items()}
    return tuple(by_number[number] for number in numbers)


def _asks_to_choose(view: View, found: Listed, row: int, question: str) -> bool:
    """The line asks for one of a list; or it is a mark without words, right below a list whose head asks."""
    if _CHOOSING.search(question) or speaks("choose", "asks", question):
        return True
    if found.bottom == row - 1 and _is_menu(found, question):
        return True
    last_row = bool(found.items) and question.endswith(found.items[-1][1])  # nothing stands below the list
    if not (BARE.match(question) or last_row) or any(
        not is_drawn(view.lines[at]) for at in range(found.bottom + 1, row)
    ):
        return False
    if view.lines[found.row].lstrip()[:1] in _EDGES:
        return True  # nobody frames what he only tells
    head = " ".join(view.lines[max(0, found.row - numbers.HINT_ROWS) : found.row])
    if found.kind == "letters" and _HEADS.search(head):
        return True
    return bool(re.search(r"\b(?:select|choose|pick|which|following)\b", head, re.IGNORECASE)) or speaks(
        "choose", "asks", head
    )


def _is_menu(found: Listed, question: str) -> bool:
    """Short labels that count from one, right above a line that asks, whatever its words are: a question, the number of
    one of them as what is taken by default, or numbers as `select` of a shell writes them."""
    keys, default = [key for key, _ in found.items], default_in(question)
    counts = found.kind == "numbers" and keys == [str(at) for at in range(1, len(keys) + 1)]
    short = all(len(label) <= numbers.LONGEST_LABEL for _, label in found.items)
    return counts and short and (question.endswith(("?", "？")) or default in keys)


def typed_list_finding(view: View, line: Line, facts: Facts, dialect: Dialect) -> Finding | None:
    """A list above, and a line that asks for one of it."""
    if is_shell(line.text):
        return None
    listed = listed_choices(view, view.row if line.detached else line.row, line.text)
    if not listed and line.filled.isdigit():  # a number stands there already: the default, if the list has it
        listed = listed_choices(view, line.row, f"{line.text} ({line.filled})")
        listed = listed if listed and line.filled in dict(listed.items) else None
    if not listed:
        return None
    found = line_finding(view, line, facts, "list-" + listed.kind, PromptType.TYPE_MULTIPLE_CHOICE, numbers.SURE)
    default = default_in(line.text)
    # Places; its own numbers where taking one for the other could turn a no into a yes.
    placed = listed.kind == "numbers" and not any(refuses(label, dialect) for _, label in listed.items)
    choices = []
    for at, (key, label) in enumerate(listed.items, 1):
        steps = (*found.text_steps, *typed_key(key, facts))
        choice = choice_of(key, label, steps, dialect, default=key in (default, listed.current))
        shown = label if key == str(at) else f"{key}: {label}"
        choices.append(replace(choice, value=str(at), label=shown) if placed else choice)
    head, said = question_above(view, listed.row), context_above(view, listed.row, "")
    head = said if said.whole and not head.whole else head  # all that was said since the last answer is near
    between = [row.rstrip() for row in view.lines[listed.bottom + 1 : line.row] if not is_drawn(row)]
    own = block([*between, line.text])
    question = "\n".join(part for part in (head.text, own) if part)
    core = f"{question}\0" + "\0".join(label for _, label in listed.items)
    limit = {**found.constraints, "min_choice": 1, "max_choice": len(choices)}
    found = replace(found, choices=tuple(choices), core=core, constraints=limit, structural=True, whole=head.whole)
    found = replace(found, question=question, excerpt=compact(question))
    shown = " ".join(view.lines[listed.row : line.row + 1])
    return _several(found, listed) if _TAKES_SEVERAL.search(shown) and not line.filled else found


def _several(found: Finding, listed: Listed) -> Finding:
    """The line takes several keys, with blanks between them, and one Enter at its end."""
    choices = tuple(
        replace(choice, steps=(Step(f"{key} ".encode(), When.DRAINED),), default=False)
        for choice, (key, _) in zip(found.choices, listed.items, strict=True)
    )
    limit = {**found.constraints, "multi_select": True, "allows_other": True}
    return replace(found, choices=choices, constraints=limit, end_steps=(Step(ENTER),))
