"""What is known of programs: which words make a harmless one run or write something else, and which run others.

A wildcard of an `allow` rule never takes such a word; a person who wants it writes it out.  Of a program that
`programs.toml` does not list, only what speaks for itself is known: options that say they run something, and names of
programs that do; the rest is known to the rule's author alone.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from atlasbridge.core.patterns import lazy
from atlasbridge.core.values import frozen

ANY = "ANY"  # every word that a wildcard takes: the program runs what it is given
_KNOWN = tomllib.loads(Path(__file__).with_name("programs.toml").read_text(encoding="utf-8"))
_DANGEROUS: dict[str, list[str]] = _KNOWN["dangerous"]
SHELLS: frozenset[str] = frozenset(_KNOWN["shells"])
INTERPRETERS: frozenset[str] = frozenset(_KNOWN["interpreters"])
DESTRUCTIVE: frozenset[str] = frozenset(_KNOWN["destructive"])
INERT: frozenset[str] = frozenset(_KNOWN["inert"])
_RUNS: frozenset[str] = frozenset(_KNOWN["runs"])
_TELLING: frozenset[str] = frozenset(_KNOWN["telling"])
_LISTED = frozenset(key.partition(" ")[0] for key in _DANGEROUS)


@frozen
class Wrapper:
    """A program that runs the one named after it."""

    values: tuple[str, ...] = ()  # its options that take a word of their own
    skip: int = 0  # words of its own before the program
    plain: str = ""  # the options with which it changes nothing that a rule cares about; "": it always does


WRAPPERS = {
    name: Wrapper(tuple(table.get("values", ())), table.get("skip", 0), table.get("plain", ""))
    for name, table in _KNOWN["wrapper"].items()
}


def program_of(word: str) -> str:
    """A program is its last path component; versions of an interpreter are that interpreter."""
    name = word.rsplit("/", 1)[-1].lstrip("=")
    for base in ("python", "pypy", "perl", "ruby", "node", "php", "lua", "pip"):
        if name.startswith(base) and name[len(base) :].replace(".", "").isdigit():
            return "python" if base == "pypy" else base
    return {"pypy": "python", "pythonw": "python", "nodejs": "node", "bsdtar": "tar", "gtar": "tar", "gsed": "sed"}.get(
        name, name
    )


_RUNNING = (SHELLS | INTERPRETERS | frozenset(WRAPPERS) | _RUNS | DESTRUCTIVE) - {"op", "go", "ed", "ex", "view", "."}


@lru_cache(maxsize=1024)
def _flags(key: str) -> tuple[str, ...]:
    return tuple(_DANGEROUS.get(key, ()))


@lru_cache(maxsize=1024)
def _expression(source: str) -> re.Pattern[str]:
    return re.compile(source)


def dangerous_places(words: Sequence[str]) -> frozenset[int]:
    """Places of words that a wildcard must not have taken, because of them another thing would run or be written."""
    name = program_of(words[0])
    if name in WRAPPERS:
        return _places_of_wrapper(name, words)
    if name in SHELLS or name in _RUNS or _flags(name) == (ANY,):
        return _places_of_runner(name, words)
    return _places_of_flags(name, words) | _places_that_tell(name, words)


def _places_that_tell(name: str, words: Sequence[str]) -> frozenset[int]:
    """Of any program: options that say by their name that they run something; and, of one that is not known at all,
    the names of programs that do, since it may run what it is given."""
    stranger = name not in INERT and name not in _LISTED
    return frozenset(
        place
        for place, word in enumerate(words[1:], 1)
        if _is_telling(word) or (stranger and _is_program(word, _RUNNING))
    )


def _is_telling(word: str) -> bool:
    parts = word.partition("=")[0].lower().lstrip("-").split("-") if word.startswith("--") else []
    return bool(parts) and parts[0] != "no" and not _TELLING.isdisjoint(parts)


def _is_program(word: str, names: frozenset[str]) -> bool:
    """Written alone, or as the system's own path: a file may have such a name anywhere."""
    return program_of(word) in names and ("/" not in word or word.startswith(("/bin/", "/usr/", "/sbin/")))


def _places_of_flags(name: str, words: Sequence[str]) -> frozenset[int]:
    flags = list(_flags(name))
    command = next((place for place, word in enumerate(words[1:], 1) if not word.startswith("-")), 0)
    found: set[int] = set()
    if command:
        special = _flags(f"{name} {words[command]}")
        if special == (ANY,):
            found |= set(range(command, len(words)))
        else:
            flags += special
        if any(_is_flag(words[command], flag) for flag in _flags(f"{name} *")):
            found.add(command)
    for place, word in enumerate(words[1:], 1):
        if any(_is_flag(word, flag) for flag in flags):
            found.add(place)
    return frozenset(found)


def _places_of_wrapper(name: str, words: Sequence[str]) -> frozenset[int]:
    """Everything up to the program inside must be written out in the rule, and what is dangerous for that one."""
    start = 1
    while start < len(words) and (words[start].startswith("-") or "=" in words[start]):
        start += 2 if words[start] in WRAPPERS[name].values else 1
    start += WRAPPERS[name].skip
    everything = frozenset(range(1, len(words)))
    if name in _FED or start >= len(words):
        return everything
    return frozenset(range(1, start + 1)) | frozenset(start + place for place in dangerous_places(words[start:]))


_FED = frozenset({"xargs", "parallel", "watch"})  # what they run is not all in their words
_SCRIPT_RUNNERS = SHELLS | {"python", "node", "perl", "ruby", "php", "lua", "tsx", "ts-node", "Rscript"}


def reads_elsewhere(words: Sequence[str]) -> bool:
    """Whether it runs what comes through a pipe or a terminal: that stands nowhere in its words."""
    name = program_of(words[0])
    runs = name in SHELLS or name in INTERPRETERS
    return name in _FED or (runs and all(word.startswith("-") and word != "--version" for word in words[1:]))


def _places_of_runner(name: str, words: Sequence[str]) -> frozenset[int]:
    """A script that the rule writes out takes words of its own, and `python -m pytest …` is pytest."""
    if name == "python" and len(words) > 2 and words[1] == "-m":
        return frozenset({1, 2}) | frozenset(place + 2 for place in dangerous_places(words[2:]))
    if name in _SCRIPT_RUNNERS and len(words) > 1 and words[1][:1] not in ("-", "+"):
        return frozenset({1})
    return frozenset(range(1, len(words)))


def _is_flag(word: str, flag: str) -> bool:
    if flag.startswith("^"):
        return bool(_expression(flag).match(word))
    if flag.startswith("--"):
        name = word.split("=", 1)[0]
        if flag == "--":
            return word == "--"
        return name.startswith("--") and len(name) > 2 and flag.startswith(name)
    if len(flag) == 2:
        return word.startswith("-") and not word.startswith("--") and flag[1] in word[1:]
    return word.lstrip("-").split("=", 1)[0] == flag.lstrip("-") if word.startswith("-") else word == flag


_OWN_VALUE = lazy(r"\w+(\.\d+)?")  # a number, a time, a signal


def unwrap(words: Sequence[str]) -> tuple[str, ...] | None:
    """The command inside a transparent wrapper whose options are all understood; None where there is none."""
    name = program_of(words[0])
    wrapper = WRAPPERS.get(name)
    if wrapper is None or not wrapper.plain:
        return None
    place, skip = 1, wrapper.skip
    while place < len(words) and words[place].startswith("-"):
        if not _expression(wrapper.plain).fullmatch(words[place]):
            return None
        takes = words[place] in wrapper.values
        if takes and not _OWN_VALUE.fullmatch("".join(words[place + 1 : place + 2])):
            return None
        place += 2 if takes else 1
    if not all(_OWN_VALUE.fullmatch(word) for word in words[place : place + skip]):
        return None
    if name == "env" and place < len(words) and "=" in words[place]:
        return None
    inner = tuple(words[place + skip :])
    return inner if inner and not inner[0].startswith("-") else None
