"""The words and keys that a question offers in itself: `(eu, us, ap)`, `[y,n,q,?]`, `(Y)es/(N)o`, `(df) Show diff`."""

from __future__ import annotations

import re

from atlasbridge.core.patterns import lazy
from atlasbridge.core.screen.view import View

_CODED = lazy(r"[\[(]([A-Za-z?]{1,3})[\])]\s+([^\s(),:][^(),:]{0,60}?)\s*(?=,|:|\?|$|[\[(])")
_GROUP = lazy(
    r"[\[({<]((?:\[?\(?[\w?.*+!-]{1,24}\)?\]?(?:\s*[,/|]\s*|\s+or\s+)){1,30}\[?\(?[\w?.*+!-]{1,24}\)?\]?)[\])}>]"
)
_KEYS = lazy(r"[\[(]((?:[^\s,\])]{1,2},){2,}[^\s,\])]{1,2})[\])]")  # `[y,n,j,J,/,e,?]`: any sign is a key
_SLASHED = lazy(r"((?:[A-Z][A-Za-z']{1,15}/){1,5}[A-Z][A-Za-z']{1,15})\s*[?:]\s*$")  # `Retry/Ignore/Cancel?`
_FRACTION = lazy(r"[\d.]++[a-zA-Z%]{0,3}+\s*+/\s*+[\d.]++[a-zA-Z%]{0,3}+")
_SPELLED = lazy(r"(?<![\w'-])(?:[\w'-]*+[\[(]\w[\])][\w' -]*+)(?:\s*+[/,|]\s*+[\w'-]*+[\[(]\w[\])][\w' -]*+)+")
_MARKED_WORD = lazy(r"(?<![\w\])])[\[(]\w[\])][a-zA-Z'-]{2,}|(?<!\w)\w\)[a-z][a-z'-]{2,}")
_WORD_IN_H = lazy(r"^(?=[^aeiou]*[aeiou])[a-z]*+(?<=[cgpst]h)$|^(?:zsh|ksh|csh|tcsh|mksh|ssh|pwsh)$", re.IGNORECASE)
_LETTERS = lazy(r"^(?>.*?\S\s).*[\[(]([a-zA-Z?]{2,14})[\])]\W*+\w?$")


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
    letters = _LETTERS.search(text)
    if not letters or not _are_keys(letters[1]):
        return []
    return list(letters[1] if _both_cases(letters[1]) else letters[1].lower())


def _ends_asking(rest: str) -> bool:
    """Behind the brackets nothing but a default and signs, or words that lead up to a sign: `(1/2) and Enter:`."""
    return not any(map(str.isalnum, rest)) or rest.rstrip().endswith((":", "?", ">", "]", ")"))


def marked_words(text: str) -> list[str]:
    """`(m)odified or (d)eleted`, `a)utorename A)utorename-all`: words of a sentence, each with the letter to type."""
    words = [word if word[0] in "([" else f"({word}" for word in _MARKED_WORD.findall(text)]
    keys = [word[1] for word in words]
    return words if len(words) >= 2 and len(set(keys)) == len(keys) else []


def _are_keys(letters: str) -> bool:
    """`yn`, `nyae`, `yaxH`, `abh`: each letter once, with y and n, a default in capitals, or the h for help; `aArRq`:
    small and capital letters that differ.  `Rome` and `bash` are words: the default of a line."""
    once = len(set(letters.lower())) == len(letters)
    marked = letters != letters.lower() and not letters.isupper() and not letters.istitle()
    known = {"y", "n"} <= set(letters.lower()) or marked or letters.endswith(("h", "?"))
    return (once and known and not _WORD_IN_H.search(letters)) or _both_cases(letters)


def _both_cases(letters: str) -> bool:
    paired = sum(letter.swapcase() in letters for letter in letters)
    return len(set(letters)) == len(letters) and paired >= 4
