"""Questions at the cursor of a line: yes or no, press Enter, one of a list, a secret, or any text.

The dialect's rules contain the patterns. Choices are in the line itself, as keys and words in brackets or codes in a
sentence, or in a numbered or lettered list above it. Evidence for such a list: the words of the line, or a bare mark
right below a list whose heading asks. Evidence against it: a shell prompt, words between list and line, a list that
is already answered. The answer is a key, number or letter, with Enter if the terminal takes lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt import vocabulary
from atlasbridge.core.prompt.keys import ENTER, Step, When, named_key
from atlasbridge.core.prompt.model import Choice, PromptType
from atlasbridge.core.prompt.vocabulary import first_label, speaks, spoken_in
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.dialect import POINTERS, Dialect, Rule, compiled, matches_any
from atlasbridge.core.recognition.finding import ASKS_ABROAD, PASSING, Facts, Finding, compact, typed_line
from atlasbridge.core.recognition.meaning import asks_for_secret, choice_of
from atlasbridge.core.recognition.question import block, context_above, question_above
from atlasbridge.core.recognition.widgets.offers import (
    QUOTED_YES,
    SPAN,
    TOLD_YES,
    Offer,
    default_in,
    keyed_words,
    limits,
    offers_in,
    says_yes_or_no,
    spoken_words,
    yes_no_default,
)
from atlasbridge.core.screen.frames import is_drawn, unframed
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import frozen, replace

# Yes or no: what to type for each.

_KEYS_BELOW = lazy(r"(?<!\S)(\^?[^\W\d_])\s{1,3}+([^\W\d_]{2,20})(?!\S)")


def typing_hint(view: View) -> str:
    """A row like `Type "yes" or "no"` at the foot of a full screen, which says what to type into its line."""
    for at in range(view.row + 1, len(view.lines)):
        if QUOTED_YES.search(view.lines[at]) and re.search(r"\b(?:type|enter)\b", view.lines[at], re.IGNORECASE):
            return view.lines[at]
    return ""


def keys_below(view: View) -> list[Offer]:
    """The keys at the foot of an editor's screen and their meaning, such as ` O Oui`, ` N Non` and `^C Annuler`:
    first the key for yes, then the key for no. Empty unless there is exactly one of each.
    """
    rows = view.lines[max(view.row, view.bottom() - numbers.EDGE_ROWS) + 1 :]
    listed = [Offer(match[1], match[2]) for row in rows for match in _KEYS_BELOW.finditer(row)]
    yes = [one for one in listed if vocabulary.begins("agree", one.label)]
    no = [one for one in listed if vocabulary.answers_as(one.label, "refuse")]
    return [*yes, *no, *(one for one in listed if one not in (*yes, *no))] if len(yes) == len(no) == 1 else []


def yes_no_choices(
    text: str, rule: Rule, facts: Facts, single: bool, clear: tuple[Step, ...], dialect: Dialect
) -> tuple[Choice, ...]:
    yes, no = (rule.yes, rule.no) if rule.yes else spoken_words(text)
    default = yes_no_default(text, yes, no)
    choices = [
        Choice("y", "Yes" if len(yes) < 3 else yes, (*clear, *typed_key(yes, facts, single)), default=default == "y"),
        Choice("n", "No" if len(no) < 2 else no, (*clear, *typed_key(no, facts, single)), True, default=default == "n"),
    ]
    for offer in offers_in(text):
        if not {offer.key.lower(), offer.label.lower()} & {"y", "n", "yes", "no", yes.lower(), no.lower()}:
            typed = () if offer.own else (*clear, *typed_key(offer.key, facts, single))
            choices.append(choice_of(offer.key, f"[{offer.label}]" if offer.own else offer.label, typed, dialect))
    return tuple(choices)


# The line that asks, without text that is already filled in, and the prompt that it makes with the words above it.

BACKSPACE = b"\x7f"  # the one key that every field knows
BARE = lazy(r"^\W*$")
_REPL = lazy(
    r"(?:irb|pry|iex|ghci|node|sqlite|mysql|psql|gdb|lldb|i?pdb)\b\S{0,40}>$|\((?:gdb|lldb|i?pdb)\)$|In \[\d{1,6}\]:$"
    r"|irb\(\S{1,40}>$|\w{1,40}[=-][>#]$",
    re.IGNORECASE,
)
_SHELL_MARKS = ("$", "%", "#", "❯", "➜", "λ", ">>>", "...", "=>")
_ASK_ENDS = lazy(r"(?:(?<=^#)|(?<=..))[:?>]\s++(?=[^\s'\"])")  # `Name: `, followed by a value
_CHOICE_BEHIND = lazy(r"^(?P<asked>.{2,}[\])]\s+)(?P<word>\w+)$")
_BRACKETS = "[](){}<>"
_BEGUN = lazy(r"\w{1,20}")
_ANGLED = lazy(r"<[^<>]+>\s*$")
_ANSWER_SO_FAR = lazy(r"(?<!\s)\s++[‣›»·…]\s*+(?:true|false|yes|no)?\s*+$", re.IGNORECASE)


def line_finding(view: View, line: Line, facts: Facts, rule: str, kind: PromptType, score: float) -> Finding:
    asked = context_above(view, line.row, line.text)
    found = Finding(
        rule, kind, score, compact(asked.near), line.text, view.line_start(view.row) if line.detached else line.row,
        constraints=limits(line.text), line_mode=facts.canonical is not False, detached=line.detached,
        question=asked.text, whole=asked.whole, alone=asked.row == line.row,
        bare=BARE.match(line.text) is not None or is_shell(line.text),
    )  # fmt: skip
    if line.filled:
        found = replace(found, excerpt=f"{found.excerpt} {line.filled}") if found.bare else found
        found = replace(found, filled=line.filled, text_steps=(Step(BACKSPACE * len(line.filled), When.DRAINED),))
    return found


def typed_key(key: str, facts: Facts, single: bool = False) -> tuple[Step, ...]:
    """The keys for a choice. A raw program can take a single key at once: Enter would answer the next prompt."""
    raw, named = facts.canonical is False, named_key(key)
    if single or (raw and named) or (facts.one_key and len(key) == 1):
        return (Step(named or key[:1].encode()),)
    return (Step(key.encode(), When.MAY_LEAVE), Step(ENTER)) if raw and len(key) == 1 else typed_line(key, raw)


def is_shell(question: str) -> bool:
    """Whether the line is the prompt of a program that takes commands and runs what is typed."""
    marked = question.endswith(_SHELL_MARKS) and question != "?#"  # zsh's `select`
    return len(question.split()) <= 3 and (marked or _REPL.match(question) is not None)


@frozen
class Line:
    """The line that asks: its text without what is already filled in, and its position."""

    text: str
    row: int
    filled: str = ""
    detached: bool = False  # the cursor is on an empty line below it


def asking_line(view: View, facts: Facts, dialect: Dialect) -> Line | None:
    """The logical line of the cursor. If that is empty, the last line above it with text."""
    before = view.before_cursor()
    start = view.line_start(view.row)
    if not view.cursor_visible and facts.canonical is False:
        before = _ANSWER_SO_FAR.sub("", view.lines[view.row])  # a hidden cursor means nothing
    if not is_drawn(before):
        asked, value = (
            _prefilled(before, dialect) if facts.canonical is False and not before.endswith(" ") else ("", "")
        )
        if value and value[-1] not in ":?>])…%#$" and not before.endswith("..."):
            return Line(asked.strip(), start, value)
        above = view.lines[start - 1].strip() if start and facts.canonical is False and before.startswith("  ") else ""
        if above.endswith(("?", ":")) and before.strip()[-1] not in ":?>])…%#$":
            return Line(above, start - 1, before.strip())  # a separate field below the question
        return _below_its_question(view, before, start, facts) or Line(before.strip(), start)
    told = view.after_cursor()  # only a field: its placeholder is the question
    return _last_words(view, view.row) or (Line(told, view.row) if told else None)


def _prefilled(text: str, dialect: Dialect) -> tuple[str, str]:
    """The question and the value after it, which has no brackets. After choices in brackets, only one of them is a
    value. Other words continue the sentence, as they do after a key in angle brackets (`Type <RET> for more`).
    """
    if not dialect.idles and (marked := _MARKED_VALUE.fullmatch(text)):
        return marked[1], marked[2]
    after = max(map(text.rfind, _BRACKETS))
    ends = [found.end() for found in _ASK_ENDS.finditer(text, max(0, after))]
    if ends and ends[-1] > after:
        asked, value = text[: ends[-1]], text[ends[-1] :]
        return ("", "") if _ANGLED.search(asked) else (asked, value)
    found = _CHOICE_BEHIND.match(text)
    offered = (
        [word.lower() for offer in offers_in(found["asked"]) for word in (offer.key, offer.label)] if found else []
    )
    takes = found and (not offered or found["word"].lower() in offered)
    return (found["asked"], found["word"]) if found and takes else ("", "")


def _below_its_question(view: View, before: str, start: int, facts: Facts) -> Line | None:
    """A single letter or word below a question that ended its own line: a partly typed answer."""
    word = before.strip()
    begun = facts.canonical is False and view.cursor_visible and _BEGUN.fullmatch(word)
    asked = _last_words(view, start) if begun else None
    asks = asked and (len(word) == 1 or asked.text.endswith(("?", ")", "]")))
    return replace(asked, filled=word) if asked and asks else None


def _last_words(view: View, row: int) -> Line | None:
    for at in range(row - 1, -1, -1):
        aside = at > 0 and _ASIDE.fullmatch(view.lines[at]) and view.lines[at - 1].endswith(("?", "]", ":"))
        if not aside and not is_drawn(view.lines[at]):
            start = view.line_start(at)
            return Line(view.joined_text(start, at + 1).strip(), start, detached=True)
    return None


_ABROAD = Rule(ASKS_ABROAD, "", "yes_no", score=numbers.LIKELY)
_HIDES = Rule("echo-off", "", "free_text", score=numbers.CERTAIN, secret=True)
_SECRET = Rule("secret-words", "", "free_text", score=numbers.KNOWN_WORDS, secret=True)
_CONTINUE = Rule("press-enter-abroad", "", "confirm_enter", score=numbers.SURE)
_IN_WORDS = lazy(r"\(yes or no\)", re.IGNORECASE)  # on a full screen that otherwise takes single keys
_DATE = lazy(r"\d{4}-\d\d-\d\d[ \d:]{0,12}$")
_REMARK = lazy(r"^\s*+[⚠✖✘×▲!>›(\[]")  # an error about the last answer, or a hint in brackets
_WARNED = lazy(r"(?<=[)\]:?])\s+[⚠✖✘×▲]\s.*$")  # a warning that was printed behind the question
_ASIDE = lazy(r"\s*+\([^()]*\)")  # below a question, not the question
_FIELD_SIGN = lazy(r"^\s*+[⊙⦿◯◉]\s+\S")
_LABELLED = lazy(r"^(?:\s|[>❯›»]\s)\s*+[^\W\d_][^:]{0,30}:(?:\s|$)")
_MARKER = lazy(r"(?:\[[^\]]{1,40}\]\s*)?[>»›❯]{1,3}(?:\s|$)|\[[^\]]{1,40}\]:?$")  # with its default: `[no] >>>`
_MARKED_VALUE = lazy(r"\s*([>❯›»])\s(?!\s)(.*[^\s:?>\])…])")
_FINISHES = lazy(
    r"\b(?:finish|submit|send|end|save)\w*\W{1,3}(?:with|by|using)?\W{0,3}(?:press\w*\W+)?"
    r"(alt|meta|esc|ctrl)\W+(?:then\W+)?(enter|\w)\b",
    re.IGNORECASE,
)
_SIGN_ENDS = lazy(r"(?:^|\s)[^\w\s.…!,'\"]{1,3}$")  # `* `, `| ?- `
_GOES_ON = lazy(r"""\w[^\s*]*[\d)\]:][*'"]$""")  # `irb(main):002:1*`: the last line is not complete yet

_EDGES = ("│", "┃", "║")
_ENDS_QUESTION = lazy(r"[?:›»·…‣]")
_COUNTED = lazy(
    r"(?:^\s?|(?<=\s\s)(?!\s)|(?<=\t)(?!\s))[*>+#-]?\s*+(?:[\[(<{（]\s?)?(\d{1,3}|[ivx]{2,4}|[A-Za-z])(?: or [A-Za-z])?"
    r"(?:(?:[\]).:>}]|\)\.|\s+(?:[-–—/=:]|[-=]?>|→)(?=\s))\s++|[、．）]\s*+)(\S++(?:\s++\S++)*?)(?=\s{2,}+[\[(]?(?:\d{1,3}|[A-Za-z])[\]).:]\s|\s*+$)"
)
_UNSIGNED = lazy(r"^\s*+[*>#]?\s*+(\d{1,3})\s++(\S.*)$")  # trusted only if the numbers are complete
_LETTERED = lazy(
    r"^\s{0,8}[\[(]([A-Za-z]{1,2}|\d)[\])]\s++(\S.*)$|^\s{2,8}([a-zA-Z])\s{2,}(?![:=-]\s)(\S.*)$"
    r"|^\s{0,8}[\[(](?=([A-Za-z])[\])])([A-Za-z])[\])]([a-z].*)$"  # `(q)  Quit and do nothing.`, `q  Quit`, `[Q]uit`
)
_ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x")
_SPEAKER = lazy(r"\S{2,}:\s+(?=\S)")  # `wandb: `, before the line and before each choice
_COLUMN = lazy(r"(?:^\s*+|\s)[|│┃║](?=\s|$)")  # beside and between the columns of a table
_WORDED = lazy(r"^\s{1,8}\[([\w.-]{2,24})\s*\]\s(\S.*)$")  # `  [mit  ] The MIT licence`
_LEAVES = lazy(r"\s*+\W?[0qQxX]\W")
_OFFERS = lazy(  # the form of a line that asks for one of a list: `#?`, `y/n>`, `(1-4)`, `(a):`
    r"#\?|^\?#|^\w(?:/\w)+>|^\[[\w?]{2,}\]\W*$|\((?:\w/)+\w\)|[\[(]\d+\s*[-–]\s*\d+[\]),]|\((?:\w|\d+)\):?$"
)
_CHOSEN = lazy(r"[:?>]\s+(?:\d{1,3}|[A-Za-z])$")
_OR_ENTER = lazy(r"\bor (?:press|hit|just) \W?(?:enter|return)\b", re.IGNORECASE)


def recognise_line(view: View, facts: Facts, dialect: Dialect, strict: bool = False) -> Finding | None:
    """The question at the cursor. With `strict`, as on a full screen, only what a rule knows."""
    view = view.at_caret() if facts.canonical is False else view
    line = asking_line(view, facts, dialect)
    line = line and replace(line, text=_WARNED.sub("", line.text))
    line = line and _asked_above(view, line, facts, dialect)
    if line is None:
        return None
    if matches_any(dialect.passing, line.text):
        passing = line_finding(view, line, facts, PASSING, PromptType.TYPE_UNKNOWN, numbers.DOUBT)
        return replace(passing, line_mode=False, orders=True)
    if facts.canonical and facts.echo is False:
        return finding_of(_HIDES, view, line, facts, dialect)
    if strict:
        return None if line.detached else _on_full_screen(view, line, facts, dialect)
    ruled = by_rule(view, line, facts, dialect)
    yes_no = ruled is not None and ruled.type is PromptType.TYPE_YES_NO and ruled.score >= numbers.SURE
    if facts.canonical is not True and not yes_no and asks_for_secret(line.text, dialect):
        return finding_of(_SECRET, view, line, facts, dialect)
    ended = _reads_below(line, facts)
    keyed = [] if line.detached and not ended else keyed_choices(view, line)
    other = bool(keyed) and not says_yes_or_no(keyed)
    if ruled is not None and yes_no and not other:
        return ruled  # a list further up belongs to an earlier question
    own = bool(keyed) and keyed == keyed_words(line.text) and not SPAN.search(line.text)
    found = None if own else typed_list_finding(view, line, facts, dialect)  # keys above it can be a list's own
    asks = not line.detached or (ended and keyed) or (line.text.endswith("?") and facts.canonical is False)
    if found is None and asks and (other or ruled is None or ruled.type is PromptType.TYPE_FREE_TEXT):
        found = offered_finding(view, line, facts, dialect, keyed)
    found = found or ruled or _asked_over_command(view, line, facts, dialect) or plain_line(view, line, facts)
    told = _FINISHES.search(found.excerpt) if facts.canonical is False and not found.choices else None
    if told and found.type is PromptType.TYPE_FREE_TEXT:  # its Enter only begins another line
        keys = named_key(f"{told[1]}+{told[2]}") or b"\x1b" + (named_key(told[2]) or told[2].encode())
        found = replace(found, end_steps=(Step(keys),))
    drawn = facts.canonical is not True and not line.detached and found.type is PromptType.TYPE_FREE_TEXT
    fields = all(map(_LABELLED.match, view.lines[view.row : view.row + 2]))  # `> Name:` above `  Age:`
    if drawn and (fields if view.cursor_visible else _is_more_than_a_line(view, line)):
        return replace(found, type=PromptType.TYPE_UNKNOWN, text_steps=(), end_steps=(), structural=True)
    return found


def _is_more_than_a_line(view: View, line: Line) -> bool:
    """Whether typed text would not simply follow the question: a date that keys change, one of several fields with
    the same sign, or rows below that belong to it and are not a remark (a form, a scale, a sheet).
    """
    below = next((row for row in view.lines[view.row + 1 : view.row + 3] if row.strip()), "")
    fields = [row for row in view.lines[max(0, view.row - 1) : view.row + 1] if _FIELD_SIGN.match(row)]
    more = len(fields) == 2 or (below != "" and not _REMARK.match(below))
    return more or speaks("hint", "row", line.text) or _DATE.search(view.lines[view.row]) is not None


def _asked_above(view: View, line: Line, facts: Facts, dialect: Dialect) -> Line:
    """Join a mark alone in its line (`>`) with the question above it that names its answers."""
    above = next((at for at in (line.row - 1, line.row - 2) if at >= 0 and view.lines[at].strip()), -1)
    asked = None if line.detached else _line_at(view, above)
    if asked and line.text.endswith(":"):
        near = range(above, max(-1, above - numbers.EXPLAINED_ROWS), -1)
        first = next((at + 1 for at in near if not view.lines[at].strip()), near[-1])
        told = block(view.lines[first : above + 1])
        if TOLD_YES.search(told):  # `Only 'yes' will be accepted`
            return replace(line, text=f"{told}\n{line.text}", row=first)
    mark = _MARKER.match(line.text)
    if asked is None or mark is None:
        return line
    ruled = by_rule(view, replace(asked, text=f"{asked.text} {mark[0]}"), facts, dialect)
    kind, sure = (ruled.type, ruled.score > numbers.KNOWN_WORDS) if ruled else (None, False)
    names = sure and kind in (PromptType.TYPE_YES_NO, PromptType.TYPE_CONFIRM_ENTER)
    names = names or (asked.text.endswith((":", "?", "]")) and len(offers_in(asked.text)) > 1)
    return replace(asked, text=f"{asked.text} {line.text}", filled=line.filled) if names else line


def _asked_over_command(view: View, line: Line, facts: Facts, dialect: Dialect) -> Finding | None:
    """`Run bash command? (y/n)` above the line of the command, `  $ git push`, which is the last output."""
    above = _line_at(view, line.row - 1) if line.text.startswith("$ ") else None
    asked = by_rule(view, above, facts, dialect) if above else None
    if asked is None or asked.type is not PromptType.TYPE_YES_NO or asked.score < numbers.KNOWN_WORDS:
        return None
    around = line_finding(view, line, facts, asked.rule, asked.type, asked.score)
    return replace(asked, excerpt=around.excerpt, question=around.question, whole=around.whole, detached=line.detached)


def _line_at(view: View, row: int) -> Line | None:
    """The line that ends in this row, if it has words and is not answered yet."""
    if row < 0 or not view.lines[row].strip() or view.is_answered(row):
        return None
    start = view.line_start(row)
    return Line(view.joined_text(start, row + 1).strip(), start)


def _on_full_screen(view: View, line: Line, facts: Facts, dialect: Dialect) -> Finding | None:
    ruled = by_rule(view, line, facts, dialect)
    if ruled and not view.cursor_visible and ruled.score < numbers.KNOWN_WORDS:
        return None  # words without a cursor can be anywhere
    asks = line.text == "?" or speaks("choose", "number", line.text)
    listed = typed_list_finding(view, line, facts, dialect) if asks else None
    return listed or ruled or offered_finding(view, line, facts, dialect)


def by_rule(view: View, line: Line, facts: Facts, dialect: Dialect) -> Finding | None:
    for rule in dialect.rules:
        below = line.detached and not _reads_below(line, facts)
        if rule.region != "line" or (below and rule.score < numbers.KNOWN_WORDS):
            continue
        if rule.programs and not compiled(rule.programs).search(facts.command):
            continue
        match = compiled(rule.pattern).search(line.text)
        if match and not (rule.unless and compiled(rule.unless).search(line.text)):
            said = match.groupdict()  # the groups `yes` and `no`: single letters are typed in lower case
            if said.get("yes"):
                yes, no = (word.lower() if len(word) == 1 else word for word in (said["yes"], said["no"]))
                rule = replace(rule, yes=yes, no=no)
            return finding_of(rule, view, line, facts, dialect)
    if speaks("continue", "asks", line.text):
        return finding_of(_CONTINUE, view, line, facts, dialect)
    return None if line.detached else _asked_abroad(view, line, facts, dialect)


def _asked_abroad(view: View, line: Line, facts: Facts, dialect: Dialect) -> Finding | None:
    """A yes-or-no question in another language without named keys. All such programs accept y and n."""
    told = keys_below(view) if facts.canonical is False else []
    yes, no = (told[0].key, told[1].key) if told else ("", "")
    language = spoken_in("confirm", "asks", line.text)
    shaped = yes and no and line.text.rstrip().endswith(("?", "？", ")"))  # whatever its words are
    if not (language or shaped) or speaks("confirm", "unless", line.text):
        return None
    found = finding_of(replace(_ABROAD, yes=yes, no=no), view, line, facts, dialect)
    names = {"y": first_label("agree", language), "n": first_label("refuse", language)}
    choices = tuple(replace(choice, label=names.get(choice.value) or choice.label) for choice in found.choices)
    return replace(found, choices=choices)


def _reads_below(line: Line, facts: Facts) -> bool:
    """Whether the program has ended the line of its question and reads the answer in the next one."""
    return line.detached and facts.reading and line.text.endswith((":", "?"))


def finding_of(rule: Rule, view: View, line: Line, facts: Facts, dialect: Dialect) -> Finding:
    found = line_finding(view, line, facts, rule.id, PromptType(rule.type), rule.score)
    if rule.type == "yes_no":
        raw = facts.canonical is False
        hint = typing_hint(view) if raw and not rule.yes else ""
        in_words = hint or _IN_WORDS.search(line.text)
        single = ((rule.key or view.alternate) and raw and not in_words) or facts.one_key
        clear = () if single else found.text_steps
        choices = yes_no_choices(f"{line.text} {hint}".strip(), rule, facts, single, clear, dialect)
        told = keys_below(view)[2:] if raw else []
        found = replace(found, choices=(*choices, *choices_of(told, (), facts, dialect, "", single=True)))
    if rule.secret:
        found = replace(found, constraints={**found.constraints, "secret": True})
    if rule.idle:
        found = replace(found, constraints={**found.constraints, "idle": True}, structural=True)
    if rule.clears and facts.canonical is not True and not line.filled:
        found = replace(found, text_steps=_erasing(line.text))
    if rule.type == "confirm_enter" and facts.canonical is False and "any key" in line.text.lower():
        found = replace(found, end_steps=(Step(b" "),), words_end=(Step(ENTER),))  # some ignore Enter
    if rule.popup and facts.canonical is False:
        found = replace(found, end_steps=(Step(ENTER, When.MAY_LEAVE), Step(ENTER)))
    return replace(found, multiline=rule.multiline and view.bracketed_paste)


def _erasing(text: str) -> tuple[Step, ...]:
    """Erases what can be a value, at most too often: other keys than Backspace are inserted by some fields."""
    value = (text.partition("\n│")[2] or _ENDS_QUESTION.split(text[1:], maxsplit=1)[-1]).partition("\n")[0]
    count = len(value.strip(" │›»·…‣"))
    return (Step(BACKSPACE * count, When.DRAINED),) if count else ()


def plain_line(view: View, line: Line, facts: Facts) -> Finding:
    """A line that a program reads without any hint what it wants: any text."""
    asks = line.text[-1:] in (":", "?", "：", "？", *POINTERS)
    asks = asks or (line.text[-1:] in ("]", ")", "$", "#", "%", "=", "】") and view.cursor_visible)
    asks = asks or (facts.reading and view.cursor_visible and _SIGN_ENDS.search(line.text) is not None)
    asks = asks or _GOES_ON.match(line.text) is not None
    score = numbers.GUESS if asks and not line.detached else numbers.DOUBT
    found = line_finding(view, line, facts, "line" if asks else "bare-line", PromptType.TYPE_FREE_TEXT, score)
    found = replace(found, orders=not line.detached and is_shell(line.text))
    if not asks and not line.detached and facts.canonical is False:  # perhaps the value of a field, below its question
        found = replace(found, text_steps=(Step(BACKSPACE * len(line.text), When.DRAINED),))
    default = line.filled or default_in(line.text)
    return replace(found, constraints={**found.constraints, "default": default}) if default else found


def keyed_choices(view: View, line: Line) -> list[Offer]:
    """The words with keys in the line, in the rows of its sentence above it, and in the sentence before."""
    first = line.row
    while first > 0 and view.lines[first - 1].rstrip().endswith(","):
        first -= 1
    own = keyed_words(" ".join([*map(str.strip, view.lines[first : line.row]), line.text]))
    asks = first > 0 and line.text.endswith(("?", ":", ")"))
    above = keyed_words(view.joined_text(view.line_start(first - 1), first)) if asks else []
    same = {offer.key for offer in own} & {offer.key for offer in above}
    return own if same or says_yes_or_no(above) else [*above, *own]


def offered_finding(
    view: View, line: Line, facts: Facts, dialect: Dialect, keyed: list[Offer] | None = None
) -> Finding | None:
    """A question whose choices are in the line itself: `(eu, us, ap) [eu]:`, `[y,n,q,?]?`, `(Y)es/(N)o/(A)ll`."""
    offers = keyed or offers_in(line.text)
    if len(offers) < 2:
        return None
    above = offers_in(view.lines[line.row - 1]) if line.row else []
    if [one.label[:1] for one in above] == [offer.label for offer in offers]:  # `[s/i/l/p]?` below their words
        offers = [replace(offer, label=one.label) for offer, one in zip(offers, above, strict=True)]
    score = numbers.SURE if keyed else numbers.LIKELY
    found = line_finding(view, line, facts, "offered", PromptType.TYPE_MULTIPLE_CHOICE, score)
    keys = [offer.key for offer in offers]
    capital = [key for key in keys if len(key) == 1 and key.isupper() and key.lower() not in keys]
    default = "" if offers[-1].label.endswith(f"({default_in(line.text)})") else default_in(line.text)
    default = default or (capital[0] if len(capital) == 1 and "/".join(keys) in line.text else "")
    single = facts.one_key or (view.alternate and facts.canonical is False)
    choices = choices_of(offers, () if single else found.text_steps, facts, dialect, default, single)
    every = dialect.idles and any(choice.label.lower() == "all" for choice in choices)  # "all" is explained elsewhere
    return replace(found, choices=choices, whole=found.whole and not every)


def choices_of(
    offers: Sequence[Offer], clear: tuple[Step, ...], facts: Facts, dialect: Dialect, default: str, single: bool = False
) -> tuple[Choice, ...]:
    """The offers as choices. The default is told by its key or its label."""
    out = []
    for one in offers:
        steps = (*clear, *typed_key(one.key, facts, single))
        marked = default != "" and default.lower() in (one.key.lower(), one.label.lower())
        out.append(choice_of(one.key, one.label, steps, dialect, marked))
    return tuple(out)


@frozen
class Listed:
    """A list. Its items are in the order of their keys; `current` is the key of the marked one."""

    items: tuple[Offer, ...]
    current: str = ""
    row: int = 0  # of its first item
    bottom: int = 0


def listed_choices(view: View, row: int, question: str) -> Listed | None:
    """The list that ends shortly above `row`, if the line or the heading of the list asks to choose from it."""
    found = (_collect(view, row, pattern, question) for pattern in (_COUNTED, _LETTERED, _WORDED, _UNSIGNED))
    return next((one for one in found if one and _asks_to_choose(view, one, row, question)), None)


def _collect(view: View, row: int, pattern: re.Pattern[str], question: str) -> Listed | None:
    """Collect the items above `row`: each in its row, in columns, or as a paragraph."""
    items: dict[str, str] = {}
    gap, top, bottom, current, head = 0, row, row, "", ""
    said, end = _SPEAKER.match(question), row
    for at in range(row - 1, -1, -1):
        if at - 1 in view.joined:
            continue  # the terminal wrapped it
        text = view.joined_text(at, end) if end > at + 1 else unframed(view.lines)[at]
        text = _COLUMN.sub("   ", text.removeprefix(said[0]) if said else text)
        last, end = end - 1, at
        found = [[part for part in match.groups() if part] for match in pattern.finditer(text)]
        if found and text[: text.find(found[0][0])].strip(" \t*>+#-[(<{（") == "":
            for key, *label in found:
                items.setdefault(key.lower() if len(label) > 1 else key, " ".join("".join(label).split()))
                if re.match(rf"\s*[*>+]\s*\W?{key}\b", text):
                    current = key
            top, bottom, head = at, bottom if bottom < row else last, text
        elif (items and text.strip() and not text.startswith("   ")) or (
            items and not text.strip() and pattern is not _LETTERED and not pattern.search(view.lines[at - 1])
        ):
            break
        elif not items and _CHOSEN.search(text) and _chooses(text):
            break  # that list is already answered
        else:
            gap += not items
            if gap > numbers.GAP_ROWS:
                break
    ordered = _in_order(items, signed=pattern is not _UNSIGNED)
    trusted = pattern is not _UNSIGNED or top + len(ordered) == row or re.match(r"\W*\d+\s{3}", head)
    return Listed(ordered, current, top, bottom) if len(ordered) >= 2 and trusted else None


def _in_order(items: dict[str, str], signed: bool) -> tuple[Offer, ...]:
    """The items by number, as far as all have one. Numbers in several columns must be complete, and others must ascend
    row by row or have a sign behind them. A list that does not begin with 1 or a can have lost its beginning.
    """
    rows = tuple(Offer(*one) for one in reversed(items.items()))
    digits, roman = all(key.isdigit() for key in items), "ii" in items and items.keys() <= set(_ROMAN)
    keys = [int(key) if digits else _ROMAN.index(key) + 1 if roman else ord(key[0].lower()) - 96 for key in items]
    complete = max(keys, default=0) - min(keys, default=0) < len(keys)
    if (complete and min(keys, default=2) > 1) or (digits and not complete and not signed):
        return ()
    return tuple(sorted(rows, key=lambda one: int(one.key))) if complete and digits else rows


def _chooses(line: str) -> bool:
    return _OFFERS.search(line) is not None or any(speaks("choose", field, line) for field in ("asks", "line"))


def _asks_to_choose(view: View, found: Listed, row: int, question: str) -> bool:
    """Whether the line asks for an item of the list, follows a list of short labels at once, or is below a list whose
    heading asks.
    """
    span, keys = SPAN.search(question), [one.key for one in found.items]
    named = span is not None and [*span.groups()] == [keys[0], keys[-1]]
    if named or _chooses(question):
        return True
    short = all(len(one.label) <= numbers.LONGEST_LABEL for one in found.items)
    between = view.lines[found.bottom + 1 : row]
    spaced = found.bottom - found.row >= 2 * (len(found.items) - 1)
    leaves = {"q", "x", "Q", "X"} & set(keys)
    ends = leaves or _LEAVES.match(view.lines[found.bottom])  # nothing else than a menu ends with 0 or q
    beside = all(text.startswith("   ") or ((spaced or ends) and not text.strip()) for text in between)
    asks = ends or question.endswith(("?", "？", ":", "：")) or default_in(question) in keys
    if beside and asks and (short or ends):
        return True
    if not all(is_drawn(text) or text.startswith("   ") for text in between):
        return False
    if view.lines[found.row].lstrip()[:1] in _EDGES:
        return True  # programs do not frame ordinary output
    head = " ".join(view.lines[max(0, found.row - numbers.HINT_ROWS) : found.row]).rstrip()
    bare = BARE.match(question) or question.endswith(found.items[-1].label)  # nothing is below the list
    return bool(
        speaks("choose", "asks", head)
        or (bare and short and (head.endswith(("?", "？", "]:")) or speaks("choose", "heads", head)))
    )


def typed_list_finding(view: View, line: Line, facts: Facts, dialect: Dialect) -> Finding | None:
    """A list above, and a line that asks for one of its items."""
    if is_shell(line.text):
        return None
    filled = f" ({line.filled})" if line.filled.isdigit() else ""  # a number is already filled in: the default
    listed = listed_choices(view, view.row if line.detached else line.row, f"{line.text}{filled}")
    if not listed or (filled and all(line.filled != one.key for one in listed.items)):
        return None
    found = line_finding(view, line, facts, "typed-list", PromptType.TYPE_MULTIPLE_CHOICE, numbers.SURE)
    default = listed.current or default_in(line.text)
    choices = [*choices_of([*listed.items, *keyed_words(line.text)], found.text_steps, facts, dialect, default)]
    if _OR_ENTER.search(line.text):
        choices.append(Choice("enter", "Enter", (Step(ENTER),)))
    head, said = question_above(view, listed.row), context_above(view, listed.row, "")
    head = said if said.whole and not head.whole else head  # everything since the last answer is near
    between = [row.rstrip() for row in view.lines[listed.bottom + 1 : line.row] if not is_drawn(row)]
    own = block([*between, line.text])
    question = "\n".join(part for part in (head.text, own) if part)
    core = f"{question}\0" + "\0".join(one.label for one in listed.items)
    limit = {**found.constraints, "min_choice": 1, "max_choice": len(listed.items)}
    found = replace(found, choices=tuple(choices), core=core, constraints=limit, structural=True, whole=head.whole)
    found = replace(found, question=question, excerpt=compact(question))
    shown = " ".join(view.lines[listed.row : line.row + 1])
    if line.filled or not speaks("choose", "spaced", shown):
        return found
    several = {**limit, "multi_select": True, "allows_other": True}
    typed = [replace(one, steps=(Step(f"{one.value} ".encode(), When.DRAINED),), default=False) for one in choices]
    return replace(found, choices=tuple(typed), constraints=several, end_steps=(Step(ENTER),))
