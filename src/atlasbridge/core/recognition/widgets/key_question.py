"""A line whose choices stand in itself: keys and words in brackets, codes in a sentence.

Answered by the key, with Enter where the terminal takes lines.
"""

from __future__ import annotations

import re

from atlasbridge.core.prompt.keys import Step
from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.recognition.finding import Facts, Finding
from atlasbridge.core.recognition.kinds import choice_of
from atlasbridge.core.recognition.widgets.inline_choices import coded_choices, inline_choices, marked_words
from atlasbridge.core.recognition.widgets.line_finding import Line, default_in, line_finding, typed_key
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace


def spelled_out(view: View, line: Line) -> list[str] | None:
    """Words with the letter to type, in the question or in the sentence above it, unless they are yes and no."""
    words = marked_words(line.text)
    if line.row > 0 and line.text.endswith(("?", ":")):
        above = marked_words(view.joined_text(view.line_start(line.row - 1), line.row))
        words = [*above, *words] if not words or not set(above) & set(words) else words
    return words if words and not {"y", "n"} & {word[1].lower() for word in words} else None


def offered_finding(
    view: View, line: Line, facts: Facts, dialect: Dialect, spelled: list[str] | None = None
) -> Finding | None:
    """The choices stand in the line itself: `(eu, us, ap) [eu]:`, `[y,n,q,?]?`, `(Y)es/(N)o/(A)ll`."""
    words = spelled or inline_choices(line.text)
    if len(words) < 2:
        return None
    found = line_finding(view, line, facts, "offered", PromptType.TYPE_MULTIPLE_CHOICE, numbers.LIKELY)
    default = default_in(line.text)
    choices = []
    cased = len({word.lower() for word in words}) < len(words) or len({keyed(word)[0] for word in words}) < len(words)
    for word in words:
        key, label = keyed(word, as_written=bool(spelled) or ", " in line.text, cased=cased)
        single = facts.one_key or (view.alternate and facts.canonical is False)
        steps = (Step(key.encode()),) if single else (*found.text_steps, *typed_key(key, facts))
        is_default = default.lower() in (key.lower(), label.lower()) if default else False
        choices.append(choice_of(key, label, steps, dialect, is_default))
    every = dialect.idles and any(choice.label.lower() == "all" for choice in choices)  # of what, is told elsewhere
    return replace(found, choices=tuple(choices), whole=found.whole and not every)


def coded_finding(view: View, line: Line, facts: Facts, dialect: Dialect) -> Finding | None:
    items = () if line.detached else coded_choices(view, line.row, line.text)
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
    plain = word.strip("[]() ")
    return plain, plain
