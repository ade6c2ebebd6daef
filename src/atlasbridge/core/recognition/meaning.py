"""What words mean: whether a label refuses or decides permanently, and whether a question asks for a secret.

The words come from the dialect first, then from all languages (`words/*.toml`).
"""

from __future__ import annotations

from functools import cache

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt import vocabulary
from atlasbridge.core.prompt.keys import Step
from atlasbridge.core.prompt.model import Choice, PromptType
from atlasbridge.core.recognition.dialect import Dialect, compiled, matches_any
from atlasbridge.core.recognition.finding import Finding
from atlasbridge.core.values import replace

_ASIDE = lazy(r"(?<=[:?])\s*\([^()]*\)\s*$")  # `Disk key: (press TAB for no echo)`
_MARKED_KEY = lazy(r"[\[(](\w)[\])](?=\w)")


def refuses(label: str, dialect: Dialect, own: str = "") -> bool:
    """Whether a label refuses. `own` is a menu's own pattern, which replaces all other words."""
    if own:
        return matches_any((own,), label)
    if matches_any(dialect.refuse, label):
        return True
    said = vocabulary.begins("refuse", label, abroad=True) or vocabulary.begins("cancel", label, abroad=True)
    return said and not vocabulary.speaks("always", "labels", label)


def is_always(label: str, dialect: Dialect) -> bool:
    return matches_any(dialect.always, label) or vocabulary.speaks("always", "labels", label)


def decides(labels: list[str], dialect: Dialect) -> bool:
    """Whether one label refuses and another agrees. Words that are side by side for another reason do not."""
    return any(refuses(one, dialect) for one in labels) and any(vocabulary.begins("agree", one) for one in labels)


def choice_of(value: str, label: str, steps: tuple[Step, ...], dialect: Dialect, default: bool = False) -> Choice:
    word = _MARKED_KEY.sub(r"\1", label)  # `[A]bort` refuses, and `[n]ext` does not
    return Choice(value, label, steps, refuses(word, dialect), is_always(word, dialect), default)


def asks_for_secret(question: str, dialect: Dialect) -> bool:
    """Whether a question asks for a secret. Phrases like "country code" and "press any key" do not count."""
    question = _ASIDE.sub("", question)
    low = question.lower()
    spoken = [(asks, unless) for signs, asks, unless in secret_words() if any(sign in low for sign in signs)]
    return any(_asks(question, *given) for given in ((dialect.secret, dialect.not_secret), *spoken))


@cache
def secret_words() -> list[tuple[tuple[str, ...], ...]]:
    """Of each language: parts of words that are searched first, what asks for a secret, what is removed before."""
    tables = [table["secret"] for table in vocabulary.languages().values()]
    return [tuple(tuple(table[name]) for name in ("signs", "asks", "unless")) for table in tables]


def _asks(question: str, asks: tuple[str, ...], unless: tuple[str, ...]) -> bool:
    if not matches_any(asks, question):
        return False
    for pattern in unless:
        question = compiled(pattern).sub(" ", question)
    return matches_any(asks, question)


def with_secrecy(found: Finding, dialect: Dialect) -> Finding:
    known = any(found.constraints.get(name) for name in ("secret", "idle", "fields"))
    words = found.type in (PromptType.TYPE_FREE_TEXT, PromptType.TYPE_UNKNOWN) and not found.orders
    if known or not words or not asks_for_secret(_question(found), dialect):
        return found
    return replace(found, constraints={**found.constraints, "secret": True})


def _question(found: Finding) -> str:
    """The line that asks, or the last words above it if the line is only a mark."""
    core = found.core if found.type is PromptType.TYPE_FREE_TEXT else ""  # of an unknown screen it is everything
    rows = (core, *reversed(found.excerpt.split("\n")))
    return next((row.strip() for row in rows if any(map(str.isalpha, row))), "")
