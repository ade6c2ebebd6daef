"""Texts of chats in the reader's language, and times in the reader's time zone.

A text is named by its English words, as on the page. `web/static/<tag>.json` and `languages/<tag>.json` are one
catalogue: the second has only what the page does not say. Values stand in braces; where one and many differ, both forms
are given with a bar between them, and `count` decides.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Literal

from atlasbridge.core.ports import HubApi
from atlasbridge.core.scheduler.times import find_zone

LANGUAGES = {"en": "English", "de": "Deutsch", "es": "Español", "ja": "日本語"}
Language = Literal["", "en", "de", "es", "ja"]
DAYS = "Mon Tue Wed Thu Fri Sat Sun"
PLACES = (Path(__file__).parents[1] / "web" / "static", Path(__file__).parent / "languages")
OWN_LABELS = {"y": "Yes", "n": "No", "cancel": "Cancel"}
SENTENCES = ("sentence", "why", "by", "when", "state")  # holes of a sentence of the hub that hold one themselves
LEAST_WORDS = 6  # letters that tell one shape from another; in a hole, a few are enough
LONGEST = 400  # of a sentence of the hub that is looked at
_HOLE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Reader:
    """`language` is a tag such as `de`, `zone` a name such as `Europe/Berlin`; empty: English, this machine's zone."""

    language: str = ""
    zone: str = ""


NOBODY = Reader()
_reader: ContextVar[Reader] = ContextVar("reader", default=NOBODY)


@contextmanager
def reading(reader: Reader) -> Iterator[None]:
    """Everything that is rendered inside, also by tasks that start there, is for this reader."""
    token = _reader.set(reader)
    try:
        yield
    finally:
        _reader.reset(token)


def common_reader(hub_api: HubApi, identities: Iterable[str], language: str = "") -> Reader:
    """The reader of a place that all of these people read: what they have in common. `language` is what a setting
    says."""
    languages, zones = zip(*(hub_api.reads(identity) for identity in identities), strict=True)
    return Reader(
        language or (languages[0] if len(set(languages)) == 1 else ""), zones[0] if len(set(zones)) == 1 else ""
    )


def known_language(*tags: object) -> str:
    """The first of these tags that has a catalogue; of "de-AT" the language counts."""
    short = (re.split("[-_]", str(tag or ""))[0].lower() for tag in tags)
    return next((tag for tag in short if tag in LANGUAGES), "")


def language_key(channel: str, chat: str) -> str:
    """The hub's note in which a chat keeps the language that was chosen there."""
    return f"{channel}.language.{chat}"


def current_language() -> str:
    return _reader.get().language or "en"


def t(english: str, **values: object) -> str:
    """The text in the reader's language. Without a translation it is English."""
    return _fill(_texts(_reader.get().language).get(english, english), values)


def say_label(value: str, english: str) -> str:
    """The label of an answer. One that AtlasBridge named, because the tool only has a letter or a key for it, is in the
    reader's language; what a tool calls its answers is shown as it is."""
    return t(english) if OWN_LABELS.get(value) == english else english


def machine_reader(language: str = "") -> Reader:
    """Who sits at this machine: the language of a setting, else of the locale."""
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    return Reader(language or known_language(next((os.environ[name] for name in names if os.environ.get(name)), "")))


def hub_says(sentence: str) -> str:
    """A finished sentence of the hub in the reader's language: the text that it was made from is found by its shape.
    Names, commands and answers in it stay as they are."""
    return _say_again(_reader.get().language, sentence)


def say_digest(text: str) -> str:
    """A digest for the reader. A line that ends with a quotation mark quotes a tool; the others are the hub's."""
    return "\n".join(line if line.endswith("”") else hub_says(line) for line in text.split("\n"))


def at_time(wall: float, form: str = "%H:%M") -> str:
    """The moment on the reader's clock; `%a` is the day in the reader's language."""
    try:
        zone = find_zone(_reader.get().zone)
    except ValueError:
        zone = None
    moment = datetime.fromtimestamp(wall, UTC).astimezone(zone)
    return moment.strftime(form.replace("%a", t(DAYS).split()[moment.weekday()])).strip()


def _fill(text: str, values: dict[str, object]) -> str:
    one, bar, many = text.partition("|")
    form = many if bar and values.get("count") != 1 else one
    return _HOLE.sub(lambda hole: str(values.get(hole[1], hole[0])), form)


@lru_cache
def _texts(language: str) -> dict[str, str]:
    return {key: text for place in PLACES for key, text in _catalogue(place, language).items()}


@lru_cache
def _catalogue(place: Path, language: str) -> dict[str, str]:
    if language not in LANGUAGES or language == "en":
        return {}
    found: dict[str, str] = json.loads((place / f"{language}.json").read_text("utf-8"))
    return found


@lru_cache
def _shapes(language: str) -> list[tuple[re.Pattern[str], int, str]]:
    """The texts with holes that only chats have, as patterns; those with the most words first."""
    own = _catalogue(PLACES[1], language)
    pairs = [pair for key, text in own.items() for pair in zip(key.split("|"), text.split("|"), strict=False)]
    pairs.sort(key=lambda pair: -_letters(pair[0]))
    return [
        (_shape(english), _letters(english), other) for english, other in pairs if english not in own or "{" in english
    ]


def _letters(english: str) -> int:
    return sum(char.isalpha() for char in _HOLE.sub("", english))


def _shape(english: str) -> re.Pattern[str]:
    parts, seen = [], set()
    for place, part in enumerate(_HOLE.split(english)):
        again = place % 2 and part in seen
        parts.append(re.escape(part) if place % 2 == 0 else f"(?P={part})" if again else f"(?P<{part}>.+?)")
        seen |= {part} if place % 2 else set()
    return re.compile("".join(parts), re.DOTALL)


def _say_again(language: str, sentence: str, least: int = LEAST_WORDS) -> str:
    if known := _texts(language).get(sentence):
        return known
    for shape, letters, text in _shapes(language) if len(sentence) <= LONGEST else ():
        if letters >= least and (found := shape.fullmatch(sentence)):
            values = found.groupdict().items()
            return _fill(text, {n: _say_again(language, value, 1) if n in SENTENCES else value for n, value in values})
    return sentence
