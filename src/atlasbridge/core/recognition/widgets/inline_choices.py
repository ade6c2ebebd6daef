"""The words and keys that a question offers in itself: `(eu, us, ap)`, `[y,n,q,?]`, `(Y)es/(N)o`, `(df) Show diff`.

Also what must be typed for yes and for no: the letter, or the word as the question spells it, and its default.
"""

from __future__ import annotations

import re

from atlasbridge.core import vocabulary
from atlasbridge.core.patterns import lazy
from atlasbridge.core.prompt.keys import ENTER, Step, When, named_key
from atlasbridge.core.prompt.model import Choice
from atlasbridge.core.recognition.dialect import Dialect, Rule
from atlasbridge.core.recognition.finding import typed_line
from atlasbridge.core.recognition.kinds import is_always
from atlasbridge.core.screen.view import View

_CODED = lazy(r"[\[(]([A-Za-z?]{1,3})[\])]\s+([^\s(),:][^(),:]{0,60}?)\s*(?=,|:|\?|$|[\[(])")
_OFFER = r"(?:\^\w|\w\(\w{1,20}\)|\[?\(?[\w?.*+!-]{1,24}\)?\]?)"  # of a group: `y`, `[yes]`, `d(iff)`, `^C`
_GROUP = lazy(rf"[\[({{<]((?:{_OFFER}(?:\s*[,/|]\s*|\s+or\s+)){{1,30}}{_OFFER})[\])}}>]")
_KEYS = lazy(r"[\[(]((?:[^\s,\])]{1,2},){2,}[^\s,\])]{1,2})[\])]")  # `[y,n,j,J,/,e,?]`: any sign is a key
_SLASHED = lazy(r"((?:[A-Z][A-Za-z']{1,15}/){1,5}[A-Z][A-Za-z']{1,15})\s*[?:]\s*$")  # `Retry/Ignore/Cancel?`
_BEHIND = lazy(r"[?:]\s+((?:[\w?]{1,6}/){2,6}[\w?]{1,6})\W*$")  # `Merge? y/n/all/q`
_DOTTED = lazy(r"[\[(]([a-zA-Z?]{2,14})(?:\.{3}|…)[\])]")  # `[ynW...], or ? for more options:`
_FRACTION = lazy(r"[\d.]++[a-zA-Z%]{0,3}+\s*+/\s*+[\d.]++[a-zA-Z%]{0,3}+")
_SPELLED = lazy(r"(?<![\w'-])(?:[\w'-]*+[\[(]\w[\])][\w' -]*+)(?:\s*+[/,|]\s*+[\w'-]*+[\[(]\w[\])][\w' -]*+)+")
_MARKED_WORD = lazy(r"(?<![\w\])])[\[(]\w[\])][a-zA-Z'-]+|(?<!\w)\w\)[a-z][a-z'-]{2,}|(?<!\w)'\w'[a-z]{2,}")
_KEY_BEHIND = lazy(
    r"(?<![\w(])([^\W\d_][\w' -]{1,24}) [\[(]([^\W\d_])[\])](?=\s*[,;/|?:]|\s+or\s|\s*$)"
)  # `Replace (r), `
_WORD_IN_H = lazy(r"^(?=[^aeiou]*[aeiou])[a-z]*+(?<=[cgpst]h)$|^(?:zsh|ksh|csh|tcsh|mksh|ssh|pwsh)$", re.IGNORECASE)
_LETTERS = lazy(r"^(?>.*?\S\s).*[\[(]([a-zA-Z?]{2,14})[\])]\W*+\w?$")
_YES_TOKEN = lazy(r"\byes\b", re.IGNORECASE)
_NO_TOKEN = lazy(r"\bno\b", re.IGNORECASE)
_QUOTED_YES = lazy(r"[\"'`“‘<](yes|y)[\"'`”’>]", re.IGNORECASE)
_QUOTED_NO = lazy(r"[\"'`“‘<](no|n)[\"'`”’>]", re.IGNORECASE)
_KEYS_BELOW = lazy(r"(?<!\S)(\^?[^\W\d_])\s{1,3}+([^\W\d_]{2,20})(?!\S)")
_TOLD_YES = lazy(r"\b(?:type|enter|write|answer)(?:\s+in)?\s+(yes)\b(?!\W{1,3}(?:or\W+)?no\b)", re.IGNORECASE)


def coded_choices(view: View, row: int, question: str) -> tuple[tuple[str, str], ...]:
    """`(p) Postpone, (df) Show diff, (e) Edit:` in the question and the rows of its sentence above it."""
    if not question.endswith((":", "?")):
        return ()
    items = [(match[1], match[2]) for match in _CODED.finditer(question)]
    for at in range(row - 1, -1, -1):
        above = [(match[1], match[2]) for match in _CODED.finditer(view.lines[at])] if items else []
        if not above or not view.lines[at].rstrip().endswith(","):
            break
        items = above + items
    return tuple(items) if len(items) >= 2 and len(dict(items)) == len(items) else ()


def inline_choices(text: str) -> list[str]:
    """The words a question offers in brackets, as they are written."""
    slashed = _SLASHED.match(text)
    if slashed:
        return slashed[1].split("/")
    spelled = _SPELLED.search(text)
    words = [word.strip() for word in re.split(r"\s*[/,|]\s*", spelled[0]) if word.strip()] if spelled else []
    marked = marked_words(text)
    if words or marked:
        return marked if len(marked) > len(words) else words
    keys = _KEYS.search(text)
    if keys and _ends_asking(text[keys.end() :]):
        return keys[1].split(",")
    for match in reversed(list(_GROUP.finditer(text))):
        if _FRACTION.fullmatch(match[1]):
            continue  # counts, as in `(1/2)` and `(20/125k)`
        words = [word for word in re.split(r"\s*[,/|]\s*|\s+or\s+", match[1]) if word]
        if len(words) >= 2 and _ends_asking(text[match.end() :]):
            return words
    behind = _BEHIND.search(text)
    if behind and {"y", "n"} <= set(behind[1].lower().split("/")):
        return behind[1].split("/")
    dotted = _DOTTED.search(text)
    if dotted and _ends_asking(text[dotted.end() :]):
        return list(dict.fromkeys(dotted[1]))
    letters = _LETTERS.search(text)
    if not letters or not _are_keys(letters[1]):
        return []
    return list(letters[1].lower())


def _ends_asking(rest: str) -> bool:
    """Behind the brackets nothing but a default and signs, or words that lead up to a sign: `(1/2) and Enter:`."""
    return not any(map(str.isalnum, rest)) or rest.rstrip().endswith((":", "?", ">", "]", ")"))


def marked_words(text: str) -> list[str]:
    """`(m)odified or (d)eleted`, `a)utorename A)utorename-all`: words of a sentence, each with the letter to type."""
    found = (re.sub(r"^'(\w)'", r"(\1)", word) for word in _MARKED_WORD.findall(text))
    words = [word if word[0] in "([" else f"({word}" for word in found]
    words = words or [one[0] for one in _KEY_BEHIND.finditer(text) if one[2].lower() in one[1].lower()]
    keys = [key_of(word) for word in words]
    return words if len(words) >= 2 and len(set(keys)) == len(keys) else []


def key_of(word: str) -> str:
    """The letter to type of a word that marks it."""
    return next(char for at, char in enumerate(word) if at and word[at - 1] in "([")


def _are_keys(letters: str) -> bool:
    """`yn`, `nyae`, `yaxH`, `abh`: each letter once, with y and n, a default in capitals, or the h for help.  `Rome`
    and `bash` are words: the default of a line."""
    once = len(set(letters.lower())) == len(letters)
    marked = letters != letters.lower() and not letters.isupper() and not letters.istitle()
    known = {"y", "n"} <= set(letters.lower()) or marked or letters.endswith(("h", "?"))
    return once and known and not _WORD_IN_H.search(letters)


def typing_hint(view: View) -> str:
    """`Type "yes" or "no"` at the foot of a full screen says what must be typed into its line."""
    for at in range(view.row + 1, len(view.lines)):
        if _QUOTED_YES.search(view.lines[at]) and re.search(r"\b(?:type|enter)\b", view.lines[at], re.IGNORECASE):
            return view.lines[at]
    return ""


def keys_below(view: View) -> list[tuple[str, str]]:
    """An editor's ` O Oui`, ` N Non` and `^C Annuler` at the foot of the screen: keys and what they say, the one for
    yes and the one for no first; none where it is not these two that are told."""
    rows = view.lines[view.row + 1 :]
    listed = [(match[1], match[2]) for row in rows for match in _KEYS_BELOW.finditer(row)]
    yes = [one for one in listed if vocabulary.begins("agree", one[1])]
    no = [one for one in listed if vocabulary.answers_as(one[1], "refuse")]
    return [*yes, *no, *(one for one in listed if one not in (*yes, *no))] if len(yes) == len(no) == 1 else []


def yes_no_choices(
    text: str, rule: Rule, one_key: bool, raw: bool, clear: tuple[Step, ...], dialect: Dialect
) -> tuple[Choice, ...]:
    yes, no = (rule.yes, rule.no) if rule.yes else spoken_words(text)
    default = _yes_no_default(text) or _capital(text, yes, no)

    def steps(word: str) -> tuple[Step, ...]:
        if one_key or (raw and named_key(word)):
            return (Step(named_key(word) or word[:1].encode()),)
        if raw and len(word) == 1:
            return (*clear, Step(word.encode(), When.MAY_LEAVE), Step(ENTER))  # many libraries take the letter at once
        return (*clear, *typed_line(word, raw))

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
