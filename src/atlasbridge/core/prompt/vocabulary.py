"""Words by kind (agree, refuse, always, choose, …) in the languages of `recognition/words/*.toml`.

The tables are read when they are first needed, not at startup. The code refers to kinds, not to words. The words of a
dialect take precedence over these.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "recognition" / "words"
ENGLISH = "en"
_UNSPACED = ("ja", "ko", "zh")  # these languages do not separate words by spaces


@cache
def languages() -> dict[str, dict[str, Any]]:
    return {path.stem: tomllib.loads(path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.toml"))}


def answers_as(word: str, *kinds: str) -> bool:
    """Whether a reply that consists of just this word means one of these kinds, in any language.

    Single letters count only in English and in languages without spaces: `s` and `o` mean yes in other languages, and
    are also keys in many menus.
    """
    return word.casefold() in _answers(kinds)


def letter_of(letter: str, kind: str, label: str) -> bool:
    """Whether this letter means the kind in a language in which `label` is of that kind: `j` for `Ja`."""
    low = letter.casefold()
    return any(
        low in table.get(kind, {}).get("answers", ())
        and label.casefold().startswith(low)
        and _begins(name, kind, label)
        for name, table in languages().items()
    )


@lru_cache(maxsize=512)
def begins(kind: str, label: str, abroad: bool = False) -> bool:
    """Whether a choice is of this kind by its first words. `abroad`: only in languages other than English."""
    return any(_begins(name, kind, label) for name in languages() if not (abroad and name == ENGLISH))


@lru_cache(maxsize=2048)  # several kinds are searched in each row, which is still there at the next look
def speaks(kind: str, field: str, text: str, language: str = "") -> bool:
    """Whether one of the kind's patterns, of this language or of any, occurs anywhere in the text."""
    low = text.lower()  # faster than to ignore the case
    return any(pattern.search(low) for pattern in _anywhere(kind, field, language))


def spoken_in(kind: str, field: str, text: str) -> str:
    """The first language with a pattern of this kind that occurs in the text; "" if none does."""
    return next((name for name in languages() if speaks(kind, field, text, name)), "")


def first_label(kind: str, language: str) -> str:
    """The label of a choice of this kind in that language."""
    labels = languages().get(language, {}).get(kind, {}).get("labels", ())
    return str(labels[0]).capitalize() if labels else ""


def forget() -> None:
    """Clears the caches after a table was changed."""
    for made in (begins, speaks, _answers, _anywhere, _beginning):
        made.cache_clear()


@cache
def _answers(kinds: tuple[str, ...]) -> frozenset[str]:
    words = {word.casefold() for name in languages() for kind in kinds for word in _said(name, kind)}
    return frozenset(words)


def _said(language: str, kind: str) -> list[str]:
    words = languages()[language].get(kind, {}).get("answers", ())
    return [word for word in words if language in (ENGLISH, *_UNSPACED) or len(word) > 1]


@cache
def _anywhere(kind: str, field: str, language: str) -> list[re.Pattern[str]]:
    """What begins with a word is one pattern, and the rest another: so it is known where either can begin."""
    words, others = list[str](), list[str]()
    for name in (language,) if language else languages():
        for pattern in languages()[name].get(kind, {}).get(field, ()):
            worded = pattern.removeprefix(r"\b").removeprefix("(?:")[0].isalpha() and name not in _UNSPACED
            (words if worded else others).append(pattern.removeprefix(r"\b") if worded else pattern)
    words = [rf"\b(?:{'|'.join(words)})"] if words else []
    return [re.compile(one, re.MULTILINE) for one in (*words, "|".join(others)) if one]


def _begins(language: str, kind: str, label: str) -> bool:
    pattern = _beginning(language, kind)
    return pattern is not None and pattern.match(label) is not None


@cache
def _beginning(language: str, kind: str) -> re.Pattern[str] | None:
    labels = languages()[language].get(kind, {}).get("labels", ())
    end = "" if language in _UNSPACED else r"(?![\w'’-])"
    return re.compile(rf"[^\w]{{0,4}}(?:{'|'.join(map(re.escape, labels))}){end}", re.IGNORECASE) if labels else None
