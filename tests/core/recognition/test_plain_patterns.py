"""Possessive repeats and atomic groups mean on every Python what a plain pattern means.

Python 3.11.0 to 3.11.4 (Debian 12's 3.11.2 among them) matches a possessive repeat of a group wrongly: after the last,
failing round it stays where that round gave up.  A possessive repeat of one character and an atomic group are right
everywhere, so src uses only those.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.figures.accuracy import corpus_cases

import atlasbridge.core
from atlasbridge.core import patterns
from atlasbridge.core.screen.view import View
from atlasbridge.lab.replay import read_recording, screen_at

ROOT = Path(__file__).resolve().parents[3]
SRC = ROOT / "src"
POSSESSIVE_GROUP = re.compile(r"(?<!\\)\)(?:[*+?]|\{\d*,?\d*\})\+")
FAST = re.compile(r"(?:[*+?]|\{\d*,?\d*\})\+|\(\?>")
QUANTIFIER = re.compile(r"(?:[*+?]|\{\d*,?\d*\})")
GROUP_HEAD = re.compile(r"\((?:\?(?::|>|=|!|<=|<!|P<\w+>|P=\w+|[aiLmsux]+\)|[aiLmsux-]+:))?")
ROWS = ("", " ", "a", "ab  c", "1.5 s 12:30", "enterape to", "aca", " x" * 9, "│ ├─ │─  y", "  12   Yes   No   ")


def plain(pattern: str) -> str:
    """The same pattern without possessive repeats and atomic groups: a lookahead takes the text once, and a reference
    to what it took goes over it."""
    text, rest = _alternatives(pattern, iter(range(1000)))
    assert rest == "", f"not understood: {rest!r} of {pattern!r}"
    return text


def _alternatives(rest: str, numbers: Iterator[int]) -> tuple[str, str]:
    made = ""
    while rest and rest[0] != ")":
        piece, rest = _piece(rest, numbers)
        made += piece
    return made, rest


def _piece(rest: str, numbers: Iterator[int]) -> tuple[str, str]:
    atom, rest, atomic = _atom(rest, numbers)
    if found := QUANTIFIER.match(rest) if atom not in ("|", "^", "$") else None:
        rest = rest[found.end() :]
        atom, atomic = (_once(atom, numbers) if atomic else atom) + found[0], rest[:1] == "+"
        if rest[:1] in ("+", "?"):
            atom, rest = atom + ("?" if rest[0] == "?" else ""), rest[1:]
    return (_once(atom, numbers) if atomic else atom), rest


def _once(atom: str, numbers: Iterator[int]) -> str:
    name = f"plain{next(numbers)}"
    return f"(?:(?=(?P<{name}>{atom}))(?P={name}))"


def _atom(rest: str, numbers: Iterator[int]) -> tuple[str, str, bool]:
    if rest[0] == "\\":
        assert not rest[1].isdigit() or rest[1] == "0", "a reference by number: the added groups would shift it"
        return rest[:2], rest[2:], False
    if rest[0] == "[":
        end = rest.index("]", 3 if rest[1] == "^" else 2)
        while (end - len(rest[:end].rstrip("\\"))) % 2:
            end = rest.index("]", end + 1)
        return rest[: end + 1], rest[end + 1 :], False
    if rest[0] != "(":
        return rest[0], rest[1:], False
    head = GROUP_HEAD.match(rest)
    assert head is not None
    if head[0].endswith(")"):
        return head[0], rest[head.end() :], False
    inside, rest = _alternatives(rest[head.end() :], numbers)
    assert rest[:1] == ")"
    atomic = head[0] == "(?>"
    return ("(?:" if atomic else head[0]) + inside + ")", rest[1:], atomic


def found_by(pattern: re.Pattern[str], text: str) -> list[tuple[Any, ...]]:
    """Where it matches and what its own groups take."""
    added = {place for name, place in pattern.groupindex.items() if name.startswith("plain")}
    own = [place for place in range(pattern.groups + 1) if place not in added]
    return [tuple(match.span(place) for place in own) for match in pattern.finditer(text)]


def constants() -> Iterator[str]:
    for path in SRC.rglob("*.py"):
        text = path.read_text("utf-8")
        if FAST.search(text):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value
    for path in SRC.rglob("*.toml"):
        yield from _strings(tomllib.loads(path.read_text("utf-8")))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _strings(one)


def fast_patterns() -> dict[str, int]:
    """Every pattern of src that has a possessive repeat or an atomic group, with its flags."""
    found: dict[str, int] = {
        text: re.IGNORECASE | re.MULTILINE for text in constants() if FAST.search(text) and _compiles(text)
    }
    for module in pkgutil.walk_packages(atlasbridge.core.__path__, "atlasbridge.core."):
        if not module.name.endswith("__main__"):
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, patterns.Lazy) and isinstance(value.source, str) and FAST.search(value.source):
                    found[value.source] = value.compile().flags
    return found


def _compiles(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True


@pytest.fixture(scope="module")
def screens() -> list[str]:
    """What stood on the screen at the end of every recording, and in its middle."""
    shown = set(ROWS)
    for case in corpus_cases(ROOT / "tests" / "corpus"):
        recording = read_recording(case / "session.cast")
        for share in (0.5, 1.0):
            shown.add("\n".join(View.of(screen_at(recording, recording.ends_at * share)).lines))
    return sorted(shown)


def test_no_pattern_repeats_a_group_possessively() -> None:
    wrong = [
        f"{path.relative_to(SRC)}:{number}"
        for path in (*SRC.rglob("*.py"), *SRC.rglob("*.toml"))
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if POSSESSIVE_GROUP.search(line) and "strip(" not in line
    ]
    assert wrong == [], "early 3.11 gets them wrong; write (?> ... ) or a plain repeat"


def test_every_fast_pattern_finds_what_its_plain_form_finds(screens: list[str]) -> None:
    fast = fast_patterns()
    assert len(fast) > 30 and len(screens) > 100, "they are found"
    for source, flags in fast.items():
        quick, slow = re.compile(source, flags), re.compile(plain(source), flags)
        rows = (
            screens
            if "\\n" in source or "\\A" in source
            else sorted({row for text in screens for row in text.split("\n")})
        )
        for text in rows:
            assert found_by(quick, text) == found_by(slow, text), f"{source!r} on {text!r}"


@pytest.mark.parametrize(
    ("source", "text", "spans"),
    [
        (r"\S++(?> \S++)*", "Allow once    Always", [(0, 10), (14, 20)]),
        (r"(?>ab?c)+", "aca", [(0, 2)]),
        (r"a*+b", "aab ab", [(0, 3), (4, 6)]),
        (r"(?>a|ab)c", "abc ac", [(4, 6)]),
    ],
)
def test_the_plain_form_is_what_the_documentation_of_re_says(source: str, text: str, spans: list[Any]) -> None:
    assert [found[0] for found in found_by(re.compile(plain(source)), text)] == spans
    assert [found[0] for found in found_by(re.compile(source), text)] == spans
