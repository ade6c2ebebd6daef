"""Choices that stand in text: numbered or lettered lists above a line, and words in brackets inside it."""

from __future__ import annotations

import re

from atlasbridge.core.patterns import lazy
from atlasbridge.core.recognition.kinds import asks_to_choose
from atlasbridge.core.screen.frames import is_drawn, unframed
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import frozen

LIST_ROWS = 40
_EDGES = ("│", "┃", "║")
GAP_ROWS = 5
CODED_ROWS = 6  # of a sentence that lists codes
LONGEST_SHELL = 120  # characters in front of a shell's mark: who, where
_NUMBERED = lazy(
    r"(?:^|(?<=\s\s)(?!\s)|(?<=\t)(?!\s))[*>+-]?\s*+(?:[\[(]\s?)?(\d{1,3})(?:[\]).:>]|\)\.| [-/=](?=\s))\s++"
    r"(\S++(?:\s++\S++)*?)(?=\s{2,}+[\[(]?\d{1,3}[\]).:]\s|\s*+$)"
)
_TABLED = lazy(r"^\s*+[*>]?\s*+(\d{1,3})\s{3,}+(\S.*)$")
_NUMBER_FIRST = lazy(r"^\s*+[*>]?\s*+(\d{1,3})\s++(\S.*)$")  # believed only where the numbers are complete
_LETTERED = lazy(
    r"^\s*[\[(]([A-Za-z])[\])]\s+(\S.*)$|^\s*([A-Za-z])[).:]\s+(\S.*)$|^\s{2,8}([a-zA-Z])\s{2,}(?![:=-]\s)(\S.*)$"
    r"|^\s*([A-Za-z])(?: or [A-Za-z])?\s+[:=-]\s+(\S.*)$"
)
_KEYED = lazy(r"^\s{0,8}[\[(]([A-Za-z]{1,2}|\d)[\])]\s++(\S.*)$")  # `(q)  Quit and do nothing.`
_CODED = lazy(r"[\[(]([A-Za-z?]{1,3})[\])]\s+([^\s(),:][^(),:]{0,60}?)\s*(?=,|:|\?|$|[\[(])")
_CHOOSING = lazy(
    r"\b(?:select|selection|choices?|choose|option|number|which|pick|decision|what now|your answer)\b"
    r"|\b(?:enter|type) (?:an?|the|one|your)? ?(?:of the )?"
    r"(?:value|letter|digit|key|item|entry|code|index|id|above)s?\b"
    r"|#\?|^\w(?:/\w)+>|^\[[\w?]{2,}\]\W*$|\((?:\w/)+\w\)|[\[(]\d+\s*[-–]\s*\d+[\]),]|\bdefault\b|\((?:\w|\d+)\):?$",
    re.IGNORECASE,
)
_CHOSEN = lazy(r"[:?>]\s+(?:\d{1,3}|[A-Za-z])$")
_HEADS = lazy(r"\b(?:what|how)\b[^?]*\?\W*$|\b(?:options|menu|actions|commands)\W*$", re.IGNORECASE)
_BARE = lazy(r"^\W*$")
_REPL = lazy(
    r"(?:irb|pry|iex|ghci|node|sqlite|mysql|psql|gdb|lldb|i?pdb)\b\S{0,40}>$|\((?:gdb|lldb|i?pdb)\)$|In \[\d{1,6}\]:$"
    r"|irb\(\S{1,40}>$|\w{1,40}[=-][>#]$",
    re.IGNORECASE,
)
_SHELL_MARKS = ("$", "%", "#", "❯", "➜", "λ", ">>>", "...", "=>")
_GROUP = lazy(
    r"[\[({<]((?:\[?\(?[\w?.*+!-]{1,24}\)?\]?(?:\s*[,/|]\s*|\s+or\s+)){1,30}\[?\(?[\w?.*+!-]{1,24}\)?\]?)[\])}>]"
)
_KEYS = lazy(r"[\[(]((?:[^\s,\])]{1,2},){2,}[^\s,\])]{1,2})[\])]")  # `[y,n,j,J,/,e,?]`: any sign is a key
_SLASHED = lazy(r"((?:[A-Z][A-Za-z']{1,15}/){1,5}[A-Z][A-Za-z']{1,15})\s*[?:]\s*$")  # `Retry/Ignore/Cancel?`
_FRACTION = lazy(r"\d++\s*+/\s*+\d++")
_SPELLED = lazy(r"(?<![\w'-])(?:[\w'-]*+[\[(]\w[\])][\w' -]*+)(?:\s*+[/,|]\s*+[\w'-]*+[\[(]\w[\])][\w' -]*+)+")
_MARKED_WORD = lazy(r"(?<![\w\])])[\[(]\w[\])][a-zA-Z'-]{2,}|(?<!\w)\w\)[a-z][a-z'-]{2,}")
_WORD_IN_H = lazy(r"^(?=[^aeiou]*[aeiou])[a-z]*+(?<=[cgpst]h)$|^(?:zsh|ksh|csh|tcsh|mksh|ssh|pwsh)$", re.IGNORECASE)
_LETTERS = lazy(r"^(?>.*?\S\s).*[\[(]([a-zA-Z?]{2,14})[\])]\W*+\w?$")


@frozen
class Listed:
    """`items` are (what is typed, label), in the order of their keys; `current` is the key of the marked one."""

    kind: str  # "numbers" or "letters"
    items: tuple[tuple[str, str], ...]
    current: str = ""
    row: int = 0  # of its first item
    bottom: int = 0


def listed_choices(view: View, row: int, question: str) -> Listed | None:
    """The list that ends shortly above `row`, if the line or the list's head asks to choose of it."""
    for pattern, kind in ((_NUMBERED, "numbers"), (_TABLED, "numbers"), (_LETTERED, "letters")):
        found = _collect(view, row, pattern, kind)
        if found and _asks_to_choose(view, found, row, question):
            return found
    keyed = _collect(view, row, _KEYED, "letters", spread=True)
    if keyed and _asks_to_choose(view, keyed, row, question):
        return keyed
    found = _collect(view, row, _NUMBER_FIRST, "numbers")
    return found if found and _is_complete(found, row) and _asks_to_choose(view, found, row, question) else None


def _is_complete(found: Listed, row: int) -> bool:
    """Row by row down to the question, none left out."""
    numbers = [int(key) for key, _ in found.items]
    return found.row + len(numbers) == row and numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _collect(view: View, row: int, pattern: re.Pattern[str], kind: str, spread: bool = False) -> Listed | None:
    """`spread`: every choice may be a paragraph of its own."""
    items: dict[str, str] = {}
    gap, top, bottom, current, seen = 0, row, row, "", False
    for at in range(row - 1, max(-1, row - LIST_ROWS), -1):
        text = unframed(view.lines)[at]
        found = [tuple(part for part in match.groups() if part) for match in pattern.finditer(text)]
        if found and (kind == "letters" or text[: text.find(found[0][0])].strip(" \t*>+-[(") == ""):
            for key, label in found:
                items.setdefault(key, " ".join(label.split()))
                if re.match(rf"\s*[*>+]\s*\W?{key}\b", text):
                    current = key
            top, bottom, seen = at, bottom if seen else at, True
            continue
        if seen and not text.startswith("   ") and not (spread and not text.strip()):
            break
        if not seen and _CHOSEN.search(text) and _CHOOSING.search(text):
            break  # that list has had its answer
        gap += 0 if seen else 1
        if gap > GAP_ROWS:
            break
    ordered = _in_order(items) if kind == "numbers" else tuple(reversed(items.items()))
    return Listed(kind, ordered, current, top, bottom) if len(ordered) >= 2 else None


def _in_order(items: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """By number.  Numbers of several columns must be complete; gaps are for lists that count downwards row by row."""
    numbers = sorted(int(key) for key in items)
    found = [int(key) for key in items]  # from the bottom up
    complete = numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else False
    if not numbers or numbers[0] > 1 or not (complete or found == numbers[::-1]):
        return ()
    by_number = {int(key): (key, label) for key, label in items.items()}
    return tuple(by_number[number] for number in numbers)


def coded_choices(view: View, row: int, question: str) -> tuple[tuple[str, str], ...]:
    """`(p) Postpone, (df) Show diff, (e) Edit:` in the question and the rows of its sentence above it."""
    if not question.endswith((":", "?")):
        return ()
    items = [(match[1], match[2]) for match in _CODED.finditer(question)]
    for at in range(row - 1, max(-1, row - CODED_ROWS), -1):
        above = [(match[1], match[2]) for match in _CODED.finditer(view.lines[at])] if items else []
        if not above or not view.lines[at].rstrip().endswith(","):
            break
        items = above + items
    return tuple(items) if len(items) >= 2 and len(dict(items)) == len(items) else ()


def is_bare(question: str) -> bool:
    """A mark and nothing else: a shell, a calculator or a program that takes anything."""
    return _BARE.match(question) is not None or is_shell(question)


def is_shell(question: str) -> bool:
    """The line of something that takes commands: what is typed there is run."""
    short = len(question) <= LONGEST_SHELL and len(question.split()) <= 3
    return short and (question.endswith(_SHELL_MARKS) or _REPL.match(question) is not None)


def _asks_to_choose(view: View, found: Listed, row: int, question: str) -> bool:
    """The line asks for one of a list; or it is a mark without words, right below a list whose head asks."""
    if _CHOOSING.search(question) or asks_to_choose(question):
        return True
    last_row = bool(found.items) and question.endswith(found.items[-1][1])  # nothing stands below the list
    if not (_BARE.match(question) or last_row) or any(
        not is_drawn(view.lines[at]) for at in range(found.bottom + 1, row)
    ):
        return False
    if view.lines[found.row].lstrip()[:1] in _EDGES:
        return True  # nobody frames what he only tells
    head = " ".join(view.lines[max(0, found.row - 6) : found.row])
    if found.kind == "letters" and _HEADS.search(head):
        return True
    return bool(re.search(r"\b(?:select|choose|pick|which|following)\b", head, re.IGNORECASE)) or asks_to_choose(head)


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
            continue  # counts, as in `(1/2)`
        words = [word for word in re.split(r"\s*[,/|]\s*|\s+or\s+", match[1]) if word]
        if len(words) >= 2 and _ends_asking(text[match.end() :]):
            return words
    letters = _LETTERS.search(text)
    if not letters or not _are_keys(letters[1]):
        return []
    return list(letters[1] if _both_cases(letters[1]) else letters[1].lower())


def _ends_asking(rest: str) -> bool:
    """Behind the brackets nothing but a default and signs, or words that lead up to a sign: `(1/2) and Enter:`."""
    return not any(char.isalpha() for char in rest) or rest.rstrip().endswith((":", "?", ">", "]", ")"))


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
