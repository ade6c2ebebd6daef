"""Which rules, words and numbers carry their weight?  Each is left out in turn; what changes on the recordings is told.

Works on pictures: every moment of a corpus is played once, and only recognition and the verdict are repeated without
the piece.  A number is halved, and doubled: what neither changes is no number that anything goes by.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core import recognition
from atlasbridge.core.detection.events import ProbeAnswer, ProbeState
from atlasbridge.core.detection.verdict import Moment, Patience, Situation, decide_verdict
from atlasbridge.core.patterns import Lazy, lazy
from atlasbridge.core.prompt import vocabulary
from atlasbridge.core.recognition import numbers
from atlasbridge.core.recognition import recognise as looking
from atlasbridge.core.recognition.dialect import Dialect
from atlasbridge.core.recognition.finding import Facts, Finding
from atlasbridge.core.recognition.recognise import Finder, recognise
from atlasbridge.core.recognition.widgets.known_dialog import stated
from atlasbridge.core.screen.view import View
from atlasbridge.core.values import replace
from atlasbridge.lab.replay import read_recording, screen_at, simulated_probe
from tests.figures.accuracy import GRACE_S, corpus_cases

NEVER = lazy(r"(?!)()()()")  # with groups: some patterns are asked to put theirs elsewhere
STILL_S = (0.3, 3.0, 60.0)  # whether a person is asked is looked at after so long
KINDS = (
    "agree", "refuse", "always", "cancel", "continue", "choose", "confirm", "instruct", "speaker",
    "hint", "message", "button", "send",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Picture:
    """What stood on the screen at a moment of a recording, and what was known of the terminal."""

    case: str
    tool: str
    view: View
    facts: Facts


@dataclass(frozen=True, slots=True)
class Weight:
    """A piece, and the cases that come out otherwise without it."""

    kind: str  # "finder", "rule", "menu", "words", "pattern", "number"
    name: str
    changed: tuple[str, ...]


def pictures_of(corpus: Path) -> Iterator[Picture]:
    """Every moment of every recording: as its tool's, and as that of a tool that nobody knows."""
    for case in corpus_cases(corpus):
        expected = json.loads((case / "expected.json").read_text("utf-8"))
        recording, tool = read_recording(case / "session.cast"), expected["tool"]
        probe = simulated_probe(tool)
        for moment in expected["moments"]:
            screen = screen_at(recording, min(moment["from_s"] + GRACE_S, moment["to_s"]))
            view, facts = View.of(screen), Facts(probe.canonical, probe.echo)
            yield Picture(f"{tool}/{case.name}", tool, view, facts)
            if tool != "generic":
                yield Picture(f"{tool}/{case.name} as a stranger", "generic", view, facts)


def weigh(pictures: Sequence[Picture]) -> Iterator[Weight]:
    """Every piece that some picture's dialect has, with what changes without it."""
    dialects = {picture.tool: load_dialect(picture.tool) for picture in pictures}
    usual = _seen(pictures, dialects)
    for kind, name, without in _pieces(dialects):
        others = [at for at, one in enumerate(pictures) if without[one.tool] != dialects[one.tool]]
        concerned = [pictures[at] for at in others]
        yield Weight(kind, name, _changed(concerned, [usual[at] for at in others], _seen(concerned, without)))
    for kind in KINDS:
        with _unspoken(kind):
            yield Weight("words", kind, _changed(pictures, usual, _seen(pictures, dialects)))
    users = _users(pictures, dialects)
    for finder in looking.FINDERS:
        with _unlooked(finder):
            yield Weight("finder", finder.widget, _changed_among(users[finder.widget], pictures, usual, dialects))
    for name, places in _patterns():
        with _unmatched(places):
            yield Weight("pattern", name, _changed_among(users[name], pictures, usual, dialects))
    for name, value in _numbers():
        for other in (value // 2, 2 * value):
            with _set_to(name, other):
                changed = _changed(pictures, usual, _seen(pictures, dialects))
            if changed or other > value:
                yield Weight("number", f"{name} {value} → {other}", changed)
                break


def _pieces(dialects: dict[str, Dialect]) -> Iterator[tuple[str, str, dict[str, Dialect]]]:
    for field, kind in (("rules", "rule"), ("menus", "menu")):
        for name in dict.fromkeys(one.id for dialect in dialects.values() for one in getattr(dialect, field)):
            yield kind, name, {tool: _without(dialect, field, name) for tool, dialect in dialects.items()}
    for field in ("refuse", "always", "secret", "passing", "counting", "noise", "quiet_programs", "screen_programs"):
        yield "words", f"dialect {field}", {tool: replace(one, **{field: ()}) for tool, one in dialects.items()}


def _without(dialect: Dialect, field: str, name: str) -> Dialect:
    return replace(dialect, **{field: tuple(one for one in getattr(dialect, field) if one.id != name)})


class _Watched:
    """A pattern that tells when it matches."""

    def __init__(self, pattern: Lazy, matched: Callable[[], None]) -> None:
        self.pattern, self.matched = pattern, matched

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if method not in Lazy.__slots__:
            raise AttributeError(method)

        def watched(*given: Any, **options: Any) -> Any:
            got = getattr(self.pattern, method)(*given, **options)
            got = list(got) if method == "finditer" else got
            if got != given[1] if method == "sub" else len(got) > 1 if method == "split" else got:
                self.matched()
            return iter(got) if method == "finditer" else got

        return watched


def _users(pictures: Sequence[Picture], dialects: dict[str, Dialect]) -> dict[str, list[int]]:
    """On which pictures each finder finds something and each pattern matches: without it, nothing else changes."""
    finders, patterns = looking.FINDERS, _patterns()
    seen = set[str]()
    users: dict[str, list[int]] = {
        name: [] for name in (*(one.widget for one in finders), *(one for one, _ in patterns))
    }

    def watched(finder: Finder) -> Finder:
        def find(*given: Any) -> Finding | None:
            found = finder.find(*given)
            seen.update([finder.widget] if found else [])
            return found

        return replace(finder, find=find)

    looking.FINDERS = tuple(map(watched, finders))
    known = [(place, getattr(*place)) for _, places in patterns for place in places]
    for name, places in patterns:
        one = _Watched(getattr(*places[0]), partial(seen.add, name))
        for place in places:
            setattr(*place, one)
    try:
        for at, picture in enumerate(pictures):
            forget_rows()
            seen.clear()
            recognise(picture.view, picture.facts, dialects[picture.tool])
            for name in seen:
                users[name].append(at)
    finally:
        looking.FINDERS = finders
        for place, pattern in known:
            setattr(*place, pattern)
        forget_rows()
    return users


def _changed_among(
    users: Sequence[int], pictures: Sequence[Picture], usual: list[str], dialects: dict[str, Dialect]
) -> tuple[str, ...]:
    concerned = [pictures[at] for at in users]
    return _changed(concerned, [usual[at] for at in users], _seen(concerned, dialects))


@contextmanager
def _unspoken(kind: str) -> Iterator[None]:
    """As if no language had words of this kind."""
    tables = vocabulary.languages()
    taken = {name: table.pop(kind) for name, table in tables.items() if kind in table}
    vocabulary.forget()
    try:
        yield
    finally:
        for name, table in taken.items():
            tables[name][kind] = table
        vocabulary.forget()


@contextmanager
def _unlooked(left_out: Finder) -> Iterator[None]:
    """As if nobody looked for this kind of widget."""
    usual = looking.FINDERS
    looking.FINDERS = tuple(one for one in usual if one is not left_out)
    try:
        yield
    finally:
        looking.FINDERS = usual


def _modules() -> list[ModuleType]:
    found = pkgutil.walk_packages(recognition.__path__, f"{recognition.__name__}.")
    return [importlib.import_module(one.name) for one in found if not one.ispkg]


def _patterns() -> list[tuple[str, list[tuple[ModuleType, str]]]]:
    """Every pattern of a finder, and the names by which modules know it."""
    known = [
        (module, name, one) for module in _modules() for name, one in vars(module).items() if isinstance(one, Lazy)
    ]
    out: dict[int, tuple[str, list[tuple[ModuleType, str]]]] = {}
    for module, name, one in known:
        label = f"{module.__name__.rpartition('.')[2]} {name.strip('_')}"
        out.setdefault(id(one), (label, []))[1].append((module, name))
    return list(out.values())


@contextmanager
def _unmatched(places: list[tuple[ModuleType, str]]) -> Iterator[None]:
    """As if this pattern matched nothing."""
    usual = getattr(*places[0])
    for module, name in places:
        setattr(module, name, NEVER)
    forget_rows()
    try:
        yield
    finally:
        for module, name in places:
            setattr(module, name, usual)
        forget_rows()


def forget_rows() -> None:
    """Forget what was read of rows before, but not the files that a process reads once."""
    for module in _modules():
        for one in vars(module).values():
            if hasattr(one, "cache_clear") and one is not vocabulary.languages:
                one.cache_clear()


def _numbers() -> list[tuple[str, int]]:
    """Every whole number that recognition goes by."""
    return [(name, value) for name, value in sorted(vars(numbers).items()) if name.isupper() and type(value) is int]


@contextmanager
def _set_to(name: str, value: int) -> Iterator[None]:
    usual = getattr(numbers, name)
    setattr(numbers, name, value)
    try:
        yield
    finally:
        setattr(numbers, name, usual)


def _seen(pictures: Sequence[Picture], dialects: dict[str, Dialect]) -> list[str]:
    return [_summary(one, recognise(one.view, one.facts, dialects[one.tool]), dialects[one.tool]) for one in pictures]


def _summary(one: Picture, found: Finding | None, dialect: Dialect) -> str:
    """What a person would be asked and when: type, question, choices, what each means and which keys take it."""
    if found is None:
        return ""
    choices = [(choice.label, choice.refuses, choice.always, choice.steps) for choice in found.choices]
    asked = found.question or found.excerpt, found.core, sorted(found.constraints.items(), key=str)
    keys = found.text_steps, found.end_steps, found.whole, found.abridged, found.orders
    return repr((found.type, asked, choices, keys, _asked_after(one, found, dialect)))


def _asked_after(one: Picture, found: Finding, dialect: Dialect) -> list[bool]:
    """After which times a person is asked, if the program reads, or sits in an event loop with a timer."""
    facts = one.facts
    state = ProbeState.READING if facts.reading else ProbeState.UNKNOWN if facts.blind else ProbeState.POLLING
    probe = ProbeAnswer(state, "", facts.echo, facts.canonical, timer=True, command=facts.command)
    case = Situation(found, probe, Moment(0.0, 0.0, None), dialect, Patience(), looks=(state, state))
    case = replace(case, works=stated(one.view, dialect) == "busy")
    return [decide_verdict(replace(case, moment=Moment(still_s, 0.0, None)))[0] for still_s in STILL_S]


def _changed(pictures: Sequence[Picture], usual: list[str], now: list[str]) -> tuple[str, ...]:
    changed = [one.case for one, before, after in zip(pictures, usual, now, strict=True) if before != after]
    return tuple(dict.fromkeys(changed))


def render_weights(weights: Sequence[Weight]) -> str:
    rows = ["| | left out | cases that change | for example |", "|---|---|---|---|"]
    for weight in sorted(weights, key=lambda one: (one.kind, -len(one.changed), one.name)):
        rows.append(f"| {weight.kind} | {weight.name} | {len(weight.changed)} | {', '.join(weight.changed[:2])} |")
    return "\n".join(rows)


def render_page(weights: Sequence[Weight], pictures: int, unweighed: Iterable[str] = ()) -> str:
    idle = sum(not weight.changed for weight in weights)
    names = ", ".join(sorted(unweighed))
    said = f" No recording exists for the dialects of {names}." if names else ""
    return _PAGE.format(
        pictures=pictures, pieces=len(weights), idle=idle, table=render_weights(weights), unweighed=said
    )


_PAGE = """\
# What each rule contributes

This page is generated; do not edit it. To generate it again from the recordings and tests in this repository:

    python -m tests.figures weights

Each piece of the recogniser is left out in turn: every finder, every rule and menu of a dialect, every group of words
and every pattern of a finder. Every number is halved, and doubled if that changes nothing. Then {pictures} moments
are read again: those of the recordings, each with the tool's own rules and without them, and the screens of
`tests/core/recognition` and its neighbours. A case changes if its type, its question, its choices, their meaning,
their keys, or the moment at which a person is asked come out differently. {idle} of {pieces} pieces change nothing.
To add a piece, add a recording or screen that needs it; pieces that change nothing are removed.{unweighed}

{table}
"""
