"""Does a question ask for a secret?  By its words, also where the answer would be seen while it is typed.

The words are data (`words/*.toml`, and those of a dialect); a terminal that hides what is typed says so by itself.
"""

from __future__ import annotations

from atlasbridge.core.prompt.model import PromptType
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition.dialect import Dialect, compiled, matches_any
from atlasbridge.core.recognition.finding import Finding
from atlasbridge.core.values import replace


def asks_for_secret(question: str, dialect: Dialect) -> bool:
    """What speaks of something else ("country code", "press any key") is taken out before the words are looked for."""
    low = question.lower()
    languages = [
        (words.asks, words.unless) for words in dialect.secret_words if any(sign in low for sign in words.signs)
    ]
    return any(_asks(question, *given) for given in ((dialect.secret, dialect.not_secret), *languages))


def _asks(question: str, asks: tuple[str, ...], unless: tuple[str, ...]) -> bool:
    if not matches_any(asks, question):
        return False
    for pattern in unless:
        question = compiled(pattern).sub(" ", question)
    return matches_any(asks, question)


def with_secrecy(found: Finding, dialect: Dialect) -> Finding:
    """A question for any text that asks for a secret says so."""
    known = found.constraints.get("secret") or found.constraints.get("idle")
    if known or found.type is not PromptType.TYPE_FREE_TEXT or not asks_for_secret(_question(found), dialect):
        return found
    return replace(found, constraints={**found.constraints, "secret": True})


def _question(found: Finding) -> str:
    """The line that asks, or, where that is a bare marker, the last words above it."""
    if sum(map(str.isalpha, found.core)) >= numbers.OWN_WORDS:
        return found.core
    rows = [row.strip() for row in found.excerpt.split("\n")]
    return next((row for row in reversed(rows) if sum(map(str.isalpha, row)) >= numbers.OWN_WORDS), "")
