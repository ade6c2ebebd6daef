"""What must be typed for yes and for no: the letter, or the word as the question spells it, and its default."""

from __future__ import annotations

import re

from atlasbridge.core import vocabulary
from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import ENTER
from atlasbridge.core.prompt.model import Choice
from atlasbridge.core.prompt.step import Step, When
from atlasbridge.core.recognition.dialect import Dialect, Rule
from atlasbridge.core.recognition.finding import typed_line
from atlasbridge.core.recognition.kinds import is_always
from atlasbridge.core.recognition.widgets.inline_choices import inline_choices
from atlasbridge.core.screen.view import View

_YES_TOKEN = lazy(r"\byes\b", re.IGNORECASE)
_NO_TOKEN = lazy(r"\bno\b", re.IGNORECASE)
_QUOTED_YES = lazy(r"[\"'`“‘<](yes|y)[\"'`”’>]", re.IGNORECASE)
_QUOTED_NO = lazy(r"[\"'`“‘<](no|n)[\"'`”’>]", re.IGNORECASE)
_KEYS_BELOW = lazy(r"(?<!\S)([^\W\d_])\s{1,3}+([^\W\d_]{2,20})(?!\S)")
_TOLD_YES = lazy(r"\b(?:type|enter|write|answer)(?:\s+in)?\s+(yes)\b(?!\W{1,3}(?:or\W+)?no\b)", re.IGNORECASE)


def typing_hint(view: View) -> str:
    """`Type "yes" or "no"` at the foot of a full screen says what must be typed into its line."""
    for at in range(view.row + 1, len(view.lines)):
        if _QUOTED_YES.search(view.lines[at]) and re.search(r"\b(?:type|enter)\b", view.lines[at], re.IGNORECASE):
            return view.lines[at]
    return ""


def keys_below(view: View) -> tuple[str, str]:
    """An editor's ` O Oui` and ` N Non` at the foot of the screen: the keys for yes and for no; "": not there."""
    listed = [
        (match[1], match[2])
        for at in range(view.row + 1, len(view.lines))
        for match in _KEYS_BELOW.finditer(view.lines[at])
    ]
    yes = [key for key, label in listed if vocabulary.begins("agree", label)]
    no = [key for key, label in listed if vocabulary.answers_as(label, "refuse")]
    return (yes[0], no[0]) if len(yes) == len(no) == 1 else ("", "")


def yes_no_choices(
    text: str, rule: Rule, one_key: bool, raw: bool, clear: tuple[Step, ...], dialect: Dialect
) -> tuple[Choice, ...]:
    yes, no = (rule.yes, rule.no) if rule.yes else spoken_words(text)
    default = _yes_no_default(text) or _capital(text, yes, no)

    def steps(word: str) -> tuple[Step, ...]:
        if one_key:
            return (Step(word[:1].encode()),)
        if raw and len(word) == 1:
            return (*clear, Step(word.encode(), When.MAY_LEAVE), Step(ENTER))  # many libraries take the letter at once
        return (*clear, *typed_line(word))

    choices = [
        Choice("y", "Yes" if len(yes) < 3 else yes, steps(yes), default=default == "y"),
        Choice("n", "No" if len(no) < 2 else no, steps(no), refuses=True, default=default == "n"),
    ]
    for word in inline_choices(text):
        plain = re.sub(r"[\[\]()]", "", word)
        if plain.lower() not in ("y", "n", "yes", "no", yes.lower(), no.lower()):
            typed = () if word.startswith("[") else steps(plain)
            choices.append(Choice(plain.lower(), word, typed, always=is_always(plain, dialect)))
    return tuple(choices)


def spoken_words(text: str) -> tuple[str, str]:
    """What must be typed for yes and for no: the letter, or the word as the question spells it."""
    if re.search(r"\bcapital|upper ?case", text, re.IGNORECASE):
        return "YES", "NO"
    quoted = _QUOTED_YES.search(text)
    if quoted:
        refused = _QUOTED_NO.search(text)
        return quoted[1], refused[1] if refused else "NO" if quoted[1].isupper() else "no"
    told = _TOLD_YES.search(text)
    if told:
        return told[1], "NO" if told[1].isupper() else "no"
    yes, no = _YES_TOKEN.search(text), _NO_TOKEN.search(text)
    if yes and no and re.search(r"\byes\W{1,3}(?:or\W)?no\b|\bno\W{1,3}(?:or\W)?yes\b", text, re.IGNORECASE):
        return yes[0], no[0]
    return "y", "n"


def _yes_no_default(text: str) -> str:
    if re.search(r"\[y(?:es)?\](?!es)|\bY/n\b|\bYes/no\b|[\[(]default:? ?y|\bYn\b", text):
        return "y"
    if re.search(r"\[n(?:o)?\](?!o)|\by/N\b|\byes/No\b|N/y|[\[(]default:? ?n|\byN\b", text):
        return "n"
    alone = re.search(r"\[(y)(?:es)?\]\W*$|\[(n)o?\]\W*$|[?:]\s*\((?:(y)(?:es)?|(n)o?)\)\W*$", text, re.IGNORECASE)
    return next(group for group in alone.groups() if group).lower() if alone else ""


def _capital(text: str, yes: str, no: str) -> str:
    """The default of `[j/N]`: the letter that is written in capitals."""
    pair = re.search(rf"({re.escape(yes)})\W+({re.escape(no)})\b", text, re.IGNORECASE)
    if not pair or len(yes) > 1 or pair[1].isupper() == pair[2].isupper():
        return ""
    return "y" if pair[1].isupper() else "n"
