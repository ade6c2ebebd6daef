"""What a label says of its choice: does it refuse, is it for ever?  By a dialect's words, then by every language's.

Which words these are stands in the dialects and in `words/*.toml`.
"""

from __future__ import annotations

from atlasbridge.core import vocabulary
from atlasbridge.core.prompt.model import Choice
from atlasbridge.core.prompt.step import Step
from atlasbridge.core.recognition.dialect import Dialect, matches_any


def refuses(label: str, dialect: Dialect, own: str = "") -> bool:
    """`own`: a menu's own pattern, instead of all words."""
    if own:
        return matches_any((own,), label)
    if matches_any(dialect.refuse, label):
        return True
    said = vocabulary.begins("refuse", label, abroad=True) or vocabulary.begins("cancel", label, abroad=True)
    return said and not vocabulary.speaks("always", "labels", label)


def is_always(label: str, dialect: Dialect) -> bool:
    return matches_any(dialect.always, label) or vocabulary.speaks("always", "labels", label)


def choice_of(value: str, label: str, steps: tuple[Step, ...], dialect: Dialect, default: bool = False) -> Choice:
    return Choice(value, label, steps, refuses(label, dialect), is_always(label, dialect), default)


def asks_to_choose(question: str) -> bool:
    return vocabulary.speaks("choose", "asks", question)


def confirms_in(question: str) -> str:
    """The language in which this line asks yes or no without a hint; "": in none."""
    language = vocabulary.spoken_in("confirm", "asks", question)
    return language if language and not vocabulary.speaks("confirm", "unless", question) else ""
