"""What a timer is allowed to type when nobody answers: a denial, or Enter if only continuing is asked.

The detector names a safe default. Every caller that types one checks it here again, so that a default which was stored,
sent or configured wrongly approves nothing. `asks_permission` decides by the verb of a question whether "no" means that
nothing happens; its words are in `timer.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.model import Choice, Prompt, PromptType

WARNING_S = 60.0  # how long before it types people are told what a timer will do
_BARE_ENTER = lazy(
    r"\W*(?:please\s+)?(?:press|hit|strike|push|tap)\s+(?:the\s+)?\W{0,2}"
    r"(?:enter|return|any key|a key|space(?:\s?bar)?)\W{0,2}"
    r"(?:\s+key)?(?:\s+(?:to|and)\s+(?:continue|proceed|go on))?\W*",
    re.IGNORECASE,
)
_ENTER = ("enter", "\r", "\n")
_HINT = lazy(r"[\[(][A-Za-z][\])]\w{1,8}/?|[\[(（][^\[\](（）)\n]{0,24}(?:\[\w{0,12}\])?[\])）]")
_TYPED = frozenset(
    {"yes", "no", "default", "fingerprint", "ja", "nein", "oui", "non", "sí", "si", "sim", "não", "да", "нет"}
)
_ENDS = lazy(r"(?<=[\w)\]\"'][.!?:;])\s+|(?<=[。！？：；])|\n")
_TURNED = lazy(  # what says something about the other answer: it may do more than nothing
    r"\b(?:unless|otherwise|if (?:you )?(?:answer|say|choose|press)|if not|declin\w+|refus\w+|reject\w+|negative\w*"
    r"|not \w+ing)\b"
    r"|(?<![\w'’.-])(?:no|n|nein|non|não|нет)(?![\w'’-])",
    re.IGNORECASE,
)
_OFFER = lazy(
    r"\b(?:y|yes)['\"]?\s*(?:/|,|\||\bor\b)\s*['\"]?(?:n|no)\b|\b(?:n|no)['\"]?\s*(?:/|,|\||\bor\b)\s*['\"]?(?:y|yes)\b",
    re.IGNORECASE,
)
_ONE_OR_OTHER = lazy(r",?\s{1,4}\w or \w(?=\W*$)")  # `Proceed, y or n?`
_PRESS_YES = lazy(r"(?:press|type|hit|enter)\s+['\"]?y(?:es)?['\"]?\s+to\s+", re.IGNORECASE)  # `Press y to go on`
_PLAIN_NO = lazy(r"\W*(?:no|n|cancel|abort|reject|deny|decline|refuse|none)\W*(?:\(\w+\))?\W*", re.IGNORECASE)
_NEGATED = lazy(r"\b(?:don['’]?t|do not|not)\b", re.IGNORECASE)
_NO_BUT = lazy(  # refusals that continue anyway or lose something: a timer never sends them
    r"\b(?:continue|proceed|go on|anyway|without saving|discard|delete|deploy|allow|approve|accept|force|overwrite"
    r"|and)\b",
    re.IGNORECASE,
)
_NOT_STOPPING = lazy(
    r"\W*(?:don['’]?t|do not|never)\b.*\b(?:stop|cancel|abort|save|keep|exit|quit|wait|verify|check|back ?up)\b",
    re.IGNORECASE,
)
_LETTERS = 3  # beside the labels of a row: their hot keys
_MOST_LEADS = 5  # any number of words that can be read in several ways takes for ever to match
_LONGEST = 400  # maximum length of a question whose verb is searched


def is_bare_enter(question: str) -> bool:
    """Whether the question is only `Press Enter to continue...` or similar."""
    return _BARE_ENTER.fullmatch(question.strip()) is not None


@lru_cache(maxsize=256)
def asks_permission(question: str) -> bool:
    """Whether the question asks for permission, so that "no" leaves everything as it is. False if the verb is unknown,
    and if "no" could be the harmful answer."""
    if _says_what_no_does(question):
        return False
    question = _HINT.sub(_without_hint, _ONE_OR_OTHER.sub("", question))
    asked = _PRESS_YES.sub("", _last_question(question), count=1)
    if not asked or len(asked) > _LONGEST:
        return False
    found = [weak for asks, weak, _ in _languages() if asks.match(asked)]
    if any(stops.search(asked) for _, _, stops in _languages()):
        return False
    return bool(found) and not any(weak is not None and weak.search(asked) for weak in found)


def _says_what_no_does(text: str) -> bool:
    return _TURNED.search(_OFFER.sub(" ", _HINT.sub(_without_hint, _ONE_OR_OTHER.sub("", text)))) is not None


def may_permit(text: str, choices: Sequence[Choice]) -> bool:
    """Whether a list of choices asks for permission: its question does, or a choice that agrees."""
    rows = text.replace("\0", "\n").split("\n")
    above = [row for row in rows if not any(choice.label and choice.label in row for choice in choices)]
    if _says_what_no_does("\n".join(row for row in rows if not _offers(row, choices))):
        return False
    asked = [row for row in above if "?" in row][-1:] or above[-1:]
    agreeing = (choice.label for choice in choices if not choice.refuses)
    return asks_permission("\n".join(asked)) or any(map(asks_permission, agreeing))


def _offers(row: str, choices: Sequence[Choice]) -> bool:
    """Whether the row holds nothing but labels, their numbers and their frames."""
    rest = row
    for label in sorted((choice.label for choice in choices if choice.label), key=len, reverse=True):
        rest = rest.replace(label, "")
    return rest != row and sum(map(str.isalpha, rest)) <= _LETTERS


def refusal_among(choices: Sequence[Choice], sure: bool) -> str:
    """The choice that refuses for now, or "". Unless its meaning is `sure`, it is a plain "no", or loses nothing."""
    refusing = [choice for choice in choices if choice.refuses and choice.steps and not choice.always]
    plain = [choice for choice in refusing if _PLAIN_NO.fullmatch(choice.label)]
    if not sure:
        refusing = plain or [choice for choice in refusing if not _goes_on(choice.label)]
    return refusing[0].value if refusing else ""


def _goes_on(label: str) -> bool:
    return bool(_NOT_STOPPING.match(label) if _NEGATED.search(label) else _NO_BUT.search(label))


def _last_question(text: str) -> str:
    """The last sentence that contains words, without the offered keys and without surrounding marks."""
    head, mark, tail = text.strip().rpartition("?")
    offered = all(len(word) == 1 or word.lower() in _TYPED for word in _WORDS.findall(tail))
    text = head if mark and offered and "\n" not in tail else head + mark + tail
    sentences = [piece.strip(" \t?？!.:;<>…¿¡*#\"'“”«»-–—。：/") for piece in _ENDS.split(text)]
    return next((piece for piece in reversed(sentences) if any(map(str.isalpha, piece))), "")


_WORDS = lazy(r"[^\W\d_]+")


def _without_hint(found: re.Match[str]) -> str:
    """Removes brackets that only offer what can be typed; all others are part of the question."""
    words = [word for word in _WORDS.findall(found.group()) if len(word) > 3 and word.lower() not in _TYPED]
    return found.group() if words else " "


@cache
def _languages() -> tuple[tuple[re.Pattern[str], re.Pattern[str] | None, re.Pattern[str]], ...]:
    """For each language: the pattern of a question that asks for permission, and words that it must not contain."""
    import tomllib  # imported late: most sessions never need it
    from pathlib import Path

    tables = tomllib.loads(Path(__file__).with_name("timer.toml").read_text(encoding="utf-8"))
    return tuple(
        (_asking(name, table), _words(name, table["weak"]) if "weak" in table else None, _words(name, table["stops"]))
        for name, table in tables.items()
    )


_UNSPACED = ("ja", "ko", "zh")  # these languages do not separate words by spaces


def _asking(name: str, table: dict[str, Any]) -> re.Pattern[str]:
    verbs, leads = "|".join(table["verbs"]), "|".join(table["leads"])
    gap, end = (r"\s*", "") if name in _UNSPACED else (r"[\s,]+", r"(?![\w-])")
    if table["place"] == "first":
        ending, acts = "|".join(table.get("ending", ())), "|".join(table.get("acts", ()))
        whole = rf"(?!(?:{ending})\b.*\b(?:{acts})(?![\w-]))" if ending else ""
        return re.compile(rf"(?:(?:{leads}){gap}){{0,{_MOST_LEADS}}}{whole}(?:{verbs}){end}", re.IGNORECASE)
    ends = "|".join(table["ends"])
    if name in _UNSPACED:
        return re.compile(rf".*(?:{verbs})\s*(?:{ends})\Z", re.IGNORECASE)
    return re.compile(rf"(?:(?:{leads})\b.*\b|.*\b)?(?:{verbs})(?:\s+(?:{ends}))*\Z", re.IGNORECASE)


def _words(name: str, words: list[str]) -> re.Pattern[str]:
    whole = "|".join(words)
    return re.compile(whole if name in _UNSPACED else rf"(?<![\w-])(?:{whole})(?![\w-])", re.IGNORECASE)


def timer_can_answer(prompt: Prompt) -> bool:
    """Whether a timer is allowed to type this prompt's safe default."""
    said = prompt.safe_default
    if not said or prompt.secret or prompt.idle:
        return False
    if prompt.type is PromptType.TYPE_CONFIRM_ENTER:
        return said in _ENTER and prompt.whole and is_bare_enter(prompt.question or prompt.excerpt)
    if prompt.type not in (PromptType.TYPE_YES_NO, PromptType.TYPE_MULTIPLE_CHOICE):
        return False
    if not prompt.choices:
        return prompt.type is PromptType.TYPE_YES_NO and said == "n"
    return any(choice.value == said and choice.refuses and not choice.always for choice in prompt.choices)
