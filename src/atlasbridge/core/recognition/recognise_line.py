"""Questions at the cursor of a line: yes or no, press Enter, one of a list, a secret, or any text.

The dialect's rules name the patterns; this module finds the choices, defaults and limits, and what exactly
must be typed.  Menus and boxes are left to their own modules.
"""

from __future__ import annotations

import re

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import ENTER
from atlasbridge.core.prompt.model import Choice, PromptType
from atlasbridge.core.prompt.step import Step, When
from atlasbridge.core.recognition.asked import block, compact, context_above, question_above, stands_alone
from atlasbridge.core.recognition.asking_line import Line, asking_line
from atlasbridge.core.recognition.choice_list import (
    Listed,
    coded_choices,
    inline_choices,
    is_bare,
    is_shell,
    listed_choices,
    marked_words,
)
from atlasbridge.core.recognition.dialect import Dialect, Rule, compiled, matches_any
from atlasbridge.core.recognition.finding import ASKS_ABROAD, Facts, Finding, typed_line
from atlasbridge.core.recognition.kinds import confirms_in, is_always, refuses
from atlasbridge.core.recognition.secrecy import asks_for_secret
from atlasbridge.core.recognition.yes_no import keys_below, typing_hint, yes_no_choices
from atlasbridge.core.screen.frames import is_drawn
from atlasbridge.core.screen.style import REVERSE
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace
from atlasbridge.core.vocabulary import first_label, speaks

FOOT_ROWS = 6
SURE = 0.85
_ABROAD = Rule(ASKS_ABROAD, "", "yes_no", score=0.84, yes="y", no="n")
_CONTINUE = Rule("press-enter-abroad", "", "confirm_enter", score=0.9)
BACKSPACE = b"\x7f"  # the one key that every field knows
_NOTHING_YET = ("›", "»", "·", "…", "‣")  # the cursor stands right behind the sign that ends the question
_IN_WORDS = lazy(r"\(yes or no\)", re.IGNORECASE)  # on a full screen that otherwise takes single keys
_BY_NUMBER = lazy(r"\b(?:type|enter)\b.{0,12}\bnumber\b", re.IGNORECASE)
_MARKER = lazy(r"[>»›❯](?:\s|$)")
_GOES_ON = lazy(r"""\w[^\s*]*[\d)\]:][*'"]$""")  # `irb(main):002:1*`: the last line has not ended yet
_TAKES_SEVERAL = lazy(r"separated by (?:spaces|blanks)|(?:space|blank)[- ]separated", re.IGNORECASE)
_LIMIT = lazy(
    r"(?:max(?:imum|\.)?(?: of)?|up to|at most|limit:?)\s*(\d{1,4})\s*(?:char|letter|digit|symbol)"
    r"|(\d{1,2})[- ]letter code",
    re.IGNORECASE,
)
_RANGE = lazy(r"[\[(](\d{1,4})\s*(?:-|–|\.\.|to)\s*(\d{1,4})(?:,[^\])]*)?[\])]")
_DEFAULT = lazy(r"(?:\bdefault:?\s+|[\[(](?:default:?\s*)?)([^\]\[()]{1,60})[\])]\s*[:?>]?\s*$", re.IGNORECASE)
_ASKED_BELOW = lazy(r"^(?P<ask>\W{0,3}[^\W\d_][^:?]{1,60}(?:\[[^\]]*\])?[:?])\s(?P<filled>\S.*)?$")


def recognise_line(view: View, facts: Facts, dialect: Dialect, strict: bool = False) -> Finding | None:
    """`strict`: only what a rule knows; on a full screen a line with the cursor behind it says nothing."""
    view = view.at_caret() if facts.canonical is False else view
    line = asking_line(view, facts)
    line = line and _asked_above(view, line, facts, dialect)
    if line is None or matches_any(dialect.passing, line.text):
        return None
    if facts.canonical and facts.echo is False:
        return _secret(view, line, 0.97, "echo-off")
    if strict:
        return None if line.detached else _on_full_screen(view, line, facts, dialect)
    if facts.canonical is not True and asks_for_secret(line.text, dialect):
        return _secret(view, line, 0.85, "secret-words")
    ruled = _by_rule(view, line, facts, dialect)
    spelled = None if line.detached else _spelled_out(view, line)
    if ruled is not None and ruled.type is PromptType.TYPE_YES_NO and ruled.score >= 0.9 and not spelled:
        return ruled  # a list further up belongs to an earlier question
    found = _coded(view, line, facts, dialect)
    found = None if spelled else found or _listed(view, line, facts, dialect)
    asks = not line.detached or (line.text.endswith("?") and facts.canonical is False)
    if found is None and asks and (spelled or ruled is None or ruled.type is PromptType.TYPE_FREE_TEXT):
        found = _offered(view, line, facts, dialect, spelled)
    return found or ruled or _plain(view, line, facts)


def _asked_above(view: View, line: Line, facts: Facts, dialect: Dialect) -> Line:
    """A marker alone in its line (`>`) below a yes-or-no question: together they ask."""
    above = line.row - 1
    if line.detached or not _MARKER.match(line.text) or above < 0 or view.is_answered(above):
        return line
    start = view.line_start(above)
    question = view.joined_text(start, line.row).strip()
    asked = _by_rule(view, Line(f"{question} >", start), facts, dialect)
    yes_no = asked is not None and asked.type is PromptType.TYPE_YES_NO and asked.score > SURE
    return Line(f"{question} {line.text}", start) if yes_no else line


def _on_full_screen(view: View, line: Line, facts: Facts, dialect: Dialect) -> Finding | None:
    ruled = _by_rule(view, line, facts, dialect)
    if ruled and not view.cursor_visible and ruled.score < SURE:
        return None  # words that nobody points at may stand anywhere
    listed = _listed(view, line, facts, dialect) if _BY_NUMBER.search(line.text) else None
    return listed or ruled or _offered(view, line, facts, dialect)


def _spelled_out(view: View, line: Line) -> list[str] | None:
    """Words with the letter to type, in the question or in the sentence above it, unless they are yes and no."""
    words = marked_words(line.text)
    if line.row > 0 and line.text.endswith(("?", ":")):
        above = marked_words(view.joined_text(view.line_start(line.row - 1), line.row))
        words = [*above, *words] if not words or not set(above) & set(words) else words
    return words if words and not {"y", "n"} & {word[1].lower() for word in words} else None


def recognise_footer(view: View, facts: Facts, dialect: Dialect) -> Finding | None:
    """Full-screen programs ask in a bar, or in the very last row: `File Name to Write: out.txt`."""
    bar = bool(view.style(view.row, 0) & REVERSE) or view.row == len(view.lines) - 1 or _stands_apart(view)
    asked = _ASKED_BELOW.match(view.before_cursor()) if bar and view.cursor_visible else None
    if asked is None:
        return None
    filled = asked["filled"] or ""
    found = _base(view, Line(asked["ask"].strip(), view.row), facts, "footer", PromptType.TYPE_FREE_TEXT, 0.8)
    clear = (Step(BACKSPACE * len(filled), When.REDRAWN),) if filled else ()
    if asks_for_secret(found.core, dialect):
        found = replace(found, constraints={**found.constraints, "secret": True})
    return replace(found, excerpt=found.core, question=found.core, line_mode=False, filled=filled, text_steps=clear)


def _stands_apart(view: View) -> bool:
    """Near the foot of the screen, with nothing right above and below it but frames."""
    beside = [view.lines[at] for at in (view.row - 1, view.row + 1) if 0 <= at < len(view.lines)]
    return view.row >= len(view.lines) - FOOT_ROWS and all(is_drawn(line) for line in beside)


def _base(view: View, line: Line, facts: Facts, rule: str, kind: PromptType, score: float) -> Finding:
    row = view.line_start(view.row) if line.detached else line.row
    asked = context_above(view, line.row, line.text)
    found = Finding(rule, kind, score, compact(asked.near), line.text, row, question=asked.text, whole=asked.whole)
    found = replace(found, alone=stands_alone(view, line.row), bare=is_bare(line.text))
    found = replace(
        found, line_mode=facts.canonical is not False, constraints=limits(line.text), detached=line.detached
    )
    if line.filled:
        found = replace(found, filled=line.filled, text_steps=(Step(BACKSPACE * len(line.filled), When.DRAINED),))
    return found


def _secret(view: View, line: Line, score: float, rule: str) -> Finding:
    found = _base(view, line, Facts(), rule, PromptType.TYPE_FREE_TEXT, score)
    return replace(found, constraints={**found.constraints, "secret": True})


def _by_rule(view: View, line: Line, facts: Facts, dialect: Dialect) -> Finding | None:
    for rule in dialect.rules:
        if rule.region != "line" or (line.detached and rule.score < 0.85):
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
    language = confirms_in(line.text)
    if not language:
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
    found = _base(view, line, facts, rule.id, PromptType(rule.type), rule.score)
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


def _listed(view: View, line: Line, facts: Facts, dialect: Dialect) -> Finding | None:
    """A list above, and a line that asks for one of it."""
    if is_shell(line.text):
        return None
    listed = listed_choices(view, view.row if line.detached else line.row, line.text)
    if not listed and line.filled.isdigit():  # a number stands there already: the default, if the list has it
        listed = listed_choices(view, line.row, f"{line.text} ({line.filled})")
        listed = listed if listed and line.filled in dict(listed.items) else None
    if not listed:
        return None
    found = _base(view, line, facts, "list-" + listed.kind, PromptType.TYPE_MULTIPLE_CHOICE, 0.88)
    default = _default(line.text)
    # Places; its own numbers where taking one for the other could turn a no into a yes.
    placed = listed.kind == "numbers" and not any(refuses(label, dialect) for _, label in listed.items)
    choices = tuple(
        Choice(
            str(at) if placed else key,
            label if not placed or key == str(at) else f"{key}: {label}",
            (*found.text_steps, *_typed_key(key, facts)),
            refuses=refuses(label, dialect),
            always=is_always(label, dialect),
            default=key == default or key == listed.current,
        )
        for at, (key, label) in enumerate(listed.items, 1)
    )
    head = question_above(view, listed.row)
    own = block([*_between(view, listed, line), line.text])
    question = "\n".join(part for part in (head.text, own) if part)
    core = f"{question}\0" + "\0".join(label for _, label in listed.items)
    limit = {**found.constraints, "min_choice": 1, "max_choice": len(choices)}
    found = replace(found, choices=choices, core=core, constraints=limit, structural=True, whole=head.whole)
    found = replace(found, question=question, excerpt=compact(question))
    said = " ".join(view.lines[listed.row : line.row + 1])
    return _several(found, listed) if _TAKES_SEVERAL.search(said) and not line.filled else found


def _between(view: View, listed: Listed, line: Line) -> list[str]:
    """The words between a list and the line that asks for one of it."""
    rows = view.lines[listed.bottom + 1 : line.row]
    return [row.rstrip() for row in rows if not is_drawn(row)]


def _several(found: Finding, listed: Listed) -> Finding:
    """The line takes several keys, with blanks between them, and one Enter at its end."""
    choices = tuple(
        replace(choice, steps=(Step(f"{key} ".encode(), When.DRAINED),), default=False)
        for choice, (key, _) in zip(found.choices, listed.items, strict=True)
    )
    limit = {**found.constraints, "multi_select": True, "allows_other": True}
    return replace(found, choices=choices, constraints=limit, end_steps=(Step(ENTER),))


def _offered(
    view: View, line: Line, facts: Facts, dialect: Dialect, spelled: list[str] | None = None
) -> Finding | None:
    """The choices stand in the line itself: `(eu, us, ap) [eu]:`, `[y,n,q,?]?`, `(Y)es/(N)o/(A)ll`."""
    words = spelled or inline_choices(line.text)
    if len(words) < 2:
        return None
    found = _base(view, line, facts, "offered", PromptType.TYPE_MULTIPLE_CHOICE, 0.82)
    default = _default(line.text)
    choices = []
    cased = len({word.lower() for word in words}) < len(words) or len({keyed(word)[0] for word in words}) < len(words)
    for word in words:
        key, label = keyed(word, as_written=bool(spelled) or ", " in line.text, cased=cased)
        single = facts.one_key or (view.alternate and facts.canonical is False)
        steps = (Step(key.encode()),) if single else (*found.text_steps, *_typed_key(key, facts))
        is_default = default.lower() in (key.lower(), label.lower()) if default else False
        no, always = refuses(label, dialect), is_always(label, dialect)
        choices.append(Choice(key, label, steps, refuses=no, always=always, default=is_default))
    return replace(found, choices=tuple(choices))


def _coded(view: View, line: Line, facts: Facts, dialect: Dialect) -> Finding | None:
    items = () if line.detached else coded_choices(view, line.row, line.text)
    if not items:
        return None
    found = _base(view, line, facts, "coded", PromptType.TYPE_MULTIPLE_CHOICE, 0.86)
    choices = tuple(
        Choice(
            key,
            label,
            (*found.text_steps, *_typed_key(key, facts)),
            refuses=refuses(label, dialect),
            always=is_always(label, dialect),
        )
        for key, label in items
    )
    return replace(found, choices=choices)


def _typed_key(key: str, facts: Facts) -> tuple[Step, ...]:
    """A raw program may take a single key at once: then an Enter behind it would answer the next prompt."""
    if facts.one_key and len(key) == 1:
        return (Step(key.encode()),)
    if facts.canonical is False and len(key) == 1:
        return (Step(key.encode(), When.MAY_LEAVE), Step(ENTER))
    return typed_line(key)


def keyed(word: str, as_written: bool = False, cased: bool = False) -> tuple[str, str]:
    """`(D)on't ask` -> d, Don't ask; a plain word is its own key.  `cased`: small and capital letters differ here."""
    marked = re.search(r"[\[(](\w)[\])]", word)
    if marked and len(word) > 3:
        return marked[1] if cased else marked[1].lower(), word if as_written else re.sub(
            r"[\[(](\w)[\])]", r"\1", word
        ).strip()
    plain = word.strip("[]() ")
    return plain, plain


def _plain(view: View, line: Line, facts: Facts) -> Finding:
    """Somebody reads a line here, and nothing says what: any text."""
    asks = line.text[-1:] in (":", "?", ">", "]", ")", "$", "#", "%", "=", "»", "›", "❯", "：", "？", "】")
    asks = asks or _GOES_ON.match(line.text) is not None
    score = 0.72 if asks and not line.detached else 0.5
    found = _base(view, line, facts, "line" if asks else "bare-line", PromptType.TYPE_FREE_TEXT, score)
    default = line.filled or _default(line.text)
    return replace(found, constraints={**found.constraints, "default": default}) if default else found


def limits(text: str) -> dict[str, object]:
    """Limits that the question itself names."""
    out: dict[str, object] = {}
    size = _LIMIT.search(text)
    if size:
        out["max_length"] = int(size[1] or size[2])
    span = _RANGE.search(text)
    if span and int(span[1]) < int(span[2]):
        out["min_choice"], out["max_choice"] = int(span[1]), int(span[2])
    return out


def _default(text: str) -> str:
    match = _DEFAULT.search(text)
    value = match[1].strip() if match else ""
    return "" if _LIMIT.search(value) or re.search(r"[/|,]|^\d+\s*-\s*\d+$", value) else value
