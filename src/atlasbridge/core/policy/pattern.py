"""Patterns in rules: the shape of a command, folders, files and hosts.

A shape consists of words, with `*` within a word and `**` for any further words.

There are two ways to match. `match_exactly` (for `allow`) also returns which words a wildcard matched, because a
wildcard matches only what `grammar` says is harmless. `match_loosely` (for `deny` and `ask`) finds the shape in any
order and spelling of options.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from unicodedata import normalize

from atlasbridge.core.patterns import lazy
from atlasbridge.core.values import frozen

WILDCARD = "*"
REST = "**"
UNKNOWN = "\ufffc"  # in a word: a part that is unknown before the command runs


@frozen
class Shape:
    words: tuple[str, ...]

    @property
    def program(self) -> str:
        return self.words[0]

    def __str__(self) -> str:
        return " ".join(self.words)


def has_wildcard(word: str) -> bool:
    return WILDCARD in word


@lru_cache(maxsize=2048)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Only `*` is special in a rule's word."""
    return re.compile(translate(re.sub(r"[?\[]", r"[\g<0>]", pattern)))


def match_word(pattern: str, word: str) -> bool:
    return bool(_compiled(pattern).match(word))


def match_exactly(shape: Shape, words: Sequence[str]) -> dict[int, str] | None:
    """Returns the positions that a wildcard matched, each with its pattern; None if the shape does not match."""
    patterns = shape.words
    rest = patterns[-1] == REST
    fixed = patterns[:-1] if rest else patterns
    if len(words) < len(fixed) or (len(words) > len(fixed) and not rest):
        return None
    taken = dict.fromkeys(range(len(fixed), len(words)), REST)
    for place, (pattern, word) in enumerate(zip(fixed, words, strict=False)):
        if not match_word(pattern, word):
            return None
        if has_wildcard(pattern):
            if pattern != "*" and ".." in word.split("/"):
                return None  # `src/*` does not match outside src
            taken[place] = pattern
    return taken


def match_loosely(shape: Shape, words: Sequence[str]) -> bool:
    """Whether the command has, or could have, this shape: options in any order, bundled, long or short."""
    if not words or not _same_program(shape.program, words[0]):
        return False
    wanted = [word for word in shape.words[1:] if _is_option(word)]
    plain = [word for word in shape.words[1:] if not _is_option(word)]
    given = list(words[1:])
    options = [word for word in given if _is_option(word)]
    if not all(_has_option(option, options) for option in wanted):
        return False
    return _match_plain(tuple(plain), tuple(given))


def _same_program(pattern: str, word: str) -> bool:
    """A glob pattern, or another case on a case-insensitive disk, can still name the program."""
    name = word.rsplit("/", 1)[-1].lstrip("=").casefold()
    wanted = pattern.rsplit("/", 1)[-1].casefold()
    if match_word(wanted, name):
        return True
    return any(char in name for char in "*?[") and name.strip("*?[]") != "" and fnmatchcase(wanted, name)


def _is_option(word: str) -> bool:
    return len(word) > 1 and word[0] == "-" and word != "--"


def _has_option(wanted: str, given: Sequence[str]) -> bool:
    if any(match_word(wanted, word) or match_word(wanted, word.split("=", 1)[0]) for word in given):
        return True
    if has_wildcard(wanted):
        return False
    return all(_has_letter(letter, given) for letter in _letters(wanted)) if _letters(wanted) else False


_LONG = {
    "recursive": "rR",
    "force": "f",
    "all": "a",
    "delete": "dD",
    "interactive": "i",
    "verbose": "v",
    "quiet": "q",
    "global": "g",
    "yes": "y",
    "hard": "",
}


def _letters(option: str) -> str:
    """The letters of a bundle such as `-rf`; for a long option, its usual letter."""
    if option.startswith("--"):
        return _LONG.get(option[2:].split("=")[0], "")[:1]
    return option[1:] if option[1:].isalpha() and len(option) <= 5 else ""


def _has_letter(letter: str, given: Sequence[str]) -> bool:
    same = {letter}
    for letters in _LONG.values():
        if letter in letters:
            same |= set(letters)
    for word in given:
        if word.startswith("--"):
            name = word[2:].split("=")[0]
            if len(name) > 1 and any(
                long.startswith(name) and same & set(letters) for long, letters in _LONG.items() if letters
            ):
                return True
        elif same & set(word[1:]):
            return True
    return False


def _match_plain(patterns: tuple[str, ...], words: tuple[str, ...]) -> bool:
    """Matches words that are not options, in order. An option can take the next word, so both readings are followed."""
    places = {0}  # possible numbers of matched patterns before each word
    after_option: set[int] = set()  # the same, if the previous word was an option that can take this one
    for word in words:
        following: set[int] = set()
        optional = _is_option(word) or word == "--" or not word.strip(UNKNOWN)
        for place in places | after_option:
            if place < len(patterns) and patterns[place] == REST:
                return True
            if place < len(patterns) and not _is_option(word) and _may_match(patterns[place], word):
                following.add(place + 1)
        if optional:
            following |= places | after_option
        following |= after_option  # it was the value of the option before it
        after_option = places | after_option if _is_option(word) else set()
        places = following
    return any(patterns[place:] in ((), (REST,)) for place in places | after_option)


def _may_match(pattern: str, word: str) -> bool:
    if match_word(pattern, word):
        return True
    return any(char in word for char in "*?[") and not has_wildcard(pattern) and fnmatchcase(pattern, word)


# Folders, files and hosts: `~`, `*` within a part, `**` for any parts; a folder includes everything below it. Link
# targets are resolved elsewhere and matched like names.

_PART = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_PLAIN_URL = lazy(rf"https?://((?:{_PART}\.)*{_PART})(?::\d{{1,5}})?(?:[/?#][!-\[\]-~]*)?", 2)
_ANY_URL = lazy(r"[\\/]{2,}([^\s'\"<>|;&)]+)")


def absolute(path: str, folder: str, home: str) -> str:
    """Resolves `.` and `..`; "" if the path is unknown."""
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    if not path.startswith("/"):
        if not folder.startswith("/"):
            return ""
        path = f"{folder}/{path}"
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


@lru_cache(maxsize=512)
def _glob(pattern: str, below: bool) -> re.Pattern[str]:
    out = []
    for part in pattern.strip("/").split("/"):
        if part == "**":
            out.append("(?:/[^/]+)*")
        elif part:
            out.append("/" + "[^/]*".join(re.escape(piece) for piece in part.split("*")))
    return re.compile("".join(out) + ("(?:/.*)?" if below else "") if out else ".*" if below else "/")


def _pattern(pattern: str, folder: str, home: str) -> str:
    if pattern == "~" or pattern.startswith("~/"):
        return home + pattern[1:]
    return pattern if pattern.startswith(("/", "**")) else f"{folder}/{pattern}"


def in_folder(pattern: str, folder: str, home: str, *, folds: bool = False) -> bool:
    where = absolute(folder, "", home)
    return bool(where) and _is_below(_pattern(pattern, "", home), where, below=True, folds=folds)


def is_file(pattern: str, path: str, folder: str, home: str, *, below: bool = False, folds: bool = False) -> bool:
    """A relative pattern applies in the folder where the tool works. `folds`: the disk treats `A` and `a`, and both
    encodings of `é`, as equal."""
    where = absolute(path, folder, home)
    return bool(where) and _is_below(_pattern(pattern, folder, home), where, below=below, folds=folds)


def _is_below(pattern: str, where: str, *, below: bool, folds: bool) -> bool:
    if folds:
        pattern, where = _folded(pattern), _folded(where)
    return _glob(pattern, below).fullmatch(where) is not None


def _folded(path: str) -> str:
    return normalize("NFC", normalize("NFC", path).casefold())


def plain_host(address: str) -> str:
    """The host of a URL that every program reads in the same way; "" for any other."""
    found = _PLAIN_URL.fullmatch(address)
    return found.group(1).lower() if found else ""


def any_hosts(text: str) -> list[str]:
    """Every host that a program could read from this text."""
    hosts = []
    for found in _ANY_URL.finditer(text):
        authority = found.group(1).replace("\\", "/")
        for piece in {authority.split("/")[0], *authority.split("/")[0].split("@")}:
            host = piece.split("?")[0].split("#")[0].lower()
            hosts += [host.rsplit(":", 1)[0].rstrip("."), host.rstrip(".")]
    return list(dict.fromkeys(host for host in hosts if host))


@lru_cache(maxsize=256)
def _host_glob(pattern: str) -> re.Pattern[str]:
    return re.compile("[a-z0-9.-]*".join(re.escape(piece) for piece in pattern.lower().split("*")))


def is_host(pattern: str, host: str) -> bool:
    return bool(_host_glob(pattern).fullmatch(host))
