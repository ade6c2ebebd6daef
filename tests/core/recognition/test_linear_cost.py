"""No pattern and no finder costs more than its text is long: rows of blanks, frames and hostile signs, in two sizes.

What is compared is the ratio between the two, never the time itself: with four times the text, four times the work.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

import atlasbridge.core
from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core import patterns
from atlasbridge.core.recognition.dialect import Dialect, compiled
from atlasbridge.core.recognition.finding import Facts
from atlasbridge.core.recognition.recognise import recognise
from atlasbridge.core.recognition.widgets import list_rows
from atlasbridge.core.recognition.widgets.list_rows import move_steps
from atlasbridge.core.screen.view import View, begins_with

pytestmark = pytest.mark.landing

SMALL, LARGE = 250, 1000
TOO_STEEP = 2.5 * LARGE / SMALL  # linear is 4, quadratic 16
TOO_SHORT_S = 1e-3  # the larger one took less: whatever its shape, no row of a screen is felt
UNITS = (
    *(
        " ",
        "\t",
        "  x",
        " a",
        "a ",
        "a  ",
        "1",
        "1 ",
        "12. ",
        "_",
        "-",
        "- ",
        "─",
        "━",
        "│",
        "│ ",
        " │",
        "|",
        "●",
        "○ ",
        "◉",
    ),
    *(
        "[",
        "]",
        "[]",
        "[ ]",
        "[x] ",
        "(",
        ")",
        "()",
        "(a)",
        "(y/n)",
        "[y/N] ",
        "<",
        ">",
        "<>",
        "< ",
        "< a > ",
        "/",
        "a/",
    ),
    *(
        "A/",
        "Yes/",
        "yes no ",
        "y/n ",
        ",",
        ", ",
        "a,",
        "a, ",
        ".",
        "...",
        ":",
        ": ",
        "a: ",
        "?",
        "? ",
        "a? ",
        "!",
        "'",
        '"',
    ),
    *(
        "`",
        "*",
        "* ",
        "+",
        "=",
        "==>",
        "❯",
        "❯ ",
        "› ",
        "…",
        "»",
        "#",
        "$ ",
        "%",
        "&",
        "\\",
        "@",
        "a@",
        "://",
        "a:b@",
        "é",
        "日",
    ),
    *(
        "a-b",
        "A",
        "Aa",
        "a1",
        "1a",
        "1/",
        "1/2 ",
        "1-",
        "[1-",
        "0",
        "w w  ",
        "press ",
        "enter ",
        "type a to b ",
        "or ",
        "default ",
    ),
    *("token=", "password ", "--token ", "\u00a0", "\u3000", "Use ", "(p) P, ", "0%", "k=", "1s", "1.", "1:1"),
)
FRAMES = (("", ""), ("a", "b"), ("? [", ")"), ("1. (", ":"))
WINDOWED = ("prompt.redact._NAME_BEFORE",)  # sees no more than the longest name, whatever the text
PATTERN_FIELDS = (
    "pattern",
    "unless",
    "programs",
    "needs",
    "top",
    "refuse",
    "text_choice",
    "hotkeys",
    "labels",
    "follow",
)
DIALECTS = ("generic", "claude", "codex", "gemini", "opencode", "aider")


def rows(size: int) -> Iterator[str]:
    for unit in UNITS:
        for head, tail in FRAMES:
            yield head + (unit * size)[: max(len(unit), size - len(head) - len(tail))] + tail


def patterns_in_core() -> Iterator[tuple[str, Callable[[str], object]]]:
    """Every pattern that a module of core holds, used as the module uses it, and its name."""
    for found in pkgutil.walk_packages(atlasbridge.core.__path__, "atlasbridge.core."):
        if found.name.endswith("__main__"):
            continue
        module = importlib.import_module(found.name)
        source = inspect.getsource(module)
        for name, value in vars(module).items():
            held = isinstance(value, patterns.Lazy)
            text = isinstance(value, str) and f"compiled({name})" in source
            pattern = value.compile() if held else compiled(value) if text else None
            if pattern is None or isinstance(pattern.pattern, bytes):
                continue
            for use in _uses(name, source):
                yield f"{found.name.removeprefix('atlasbridge.core.')}.{name}.{use}", _using(pattern, use)


def _uses(name: str, source: str) -> list[str]:
    """The methods a module calls on a pattern; one that it only hands on is tried with two."""
    return sorted(set(re.findall(rf"\b{name}\)?\.(\w+)\(", source))) or ["match", "search"]


def _using(pattern: re.Pattern[str], use: str) -> Callable[[str], object]:
    if use == "sub":
        return lambda text: pattern.sub("", text)
    if use == "finditer":
        return lambda text: sum(1 for _ in pattern.finditer(text))
    return lambda text: getattr(pattern, use)(text)


def patterns_in_dialects() -> Iterator[tuple[str, Callable[[str], object]]]:
    seen: set[tuple[str, str]] = set()
    for name in DIALECTS:
        dialect = load_dialect(name)
        for field in ("counting", "passing", "noise", "refuse", "always", "secret"):
            seen |= {(name, pattern) for pattern in getattr(dialect, field)}
        for part in (*dialect.rules, *dialect.menus, *dialect.marks):
            held = {getattr(part, field, "") for field in PATTERN_FIELDS}
            seen |= {(name, pattern) for pattern in held if pattern}
    for pattern, name in {pattern: name for name, pattern in sorted(seen, reverse=True)}.items():
        yield f"{name}: {pattern}", compiled(pattern).search


def steepest(work: Callable[[str], object]) -> tuple[float, str]:
    worst = (0.0, "")
    for small, large in zip(rows(SMALL), rows(LARGE), strict=True):
        if _took(work, large) < TOO_SHORT_S:
            continue
        ratio = min(_took(work, large) for _ in range(3)) / min(_took(work, small) for _ in range(5))
        worst = max(worst, (ratio, f"{small[:12]!r} .. {small[-6:]!r}"))
    return worst


def _took(work: Callable[[Any], object], text: Any) -> float:
    begun = time.thread_time()
    work(text)
    return max(time.thread_time() - begun, 1e-7)


def too_steep(named: Iterable[tuple[str, Callable[[str], object]]]) -> list[str]:
    found = []
    for name, work in named:
        ratio, where = steepest(work)
        if ratio >= TOO_STEEP:
            found.append(f"{name}: four times the text is {ratio:.0f} times the work, at {where}")
    return found


def test_no_pattern_of_core_goes_over_its_text_again_and_again() -> None:
    named = list(patterns_in_core())
    assert len(named) > 60, "they are found"
    assert too_steep((name, work) for name, work in named if not name.startswith(WINDOWED)) == []


def test_no_pattern_of_a_dialect_goes_over_its_text_again_and_again() -> None:
    named = list(patterns_in_dialects())
    assert len(named) > 60, "they are found"
    assert too_steep(named) == []


def test_a_pattern_that_does_is_noticed() -> None:
    assert too_steep([("blanks at the end", re.compile(r"\s+$").search)]) != []


def screens(row: str) -> Iterator[View]:
    """A hostile row alone, several of them, in a frame, behind a pointer, and below a question."""
    lines = (row, f"│{row}│", "Choose one:", row, row, "❯ " + row, "  " + row, "", row)
    styles = tuple((0, 32) * (len(line) // 2) for line in lines)
    for at in (3, 8):
        yield View(lines, at, len(lines[at]), cols=len(row) + 2, styles=styles)
    yield View(lines, 5, 0, cursor_visible=False, alternate=True, cols=len(row) + 2, styles=styles)


def _looking(facts: Facts, dialect: Dialect) -> Callable[[str], object]:
    return lambda row: [recognise(view, facts, dialect) for view in screens(row)]


@pytest.mark.parametrize("facts", [Facts(canonical=True, echo=True, reading=True), Facts(canonical=False, echo=False)])
@pytest.mark.parametrize("name", ["generic", "claude"])
def test_no_finder_goes_over_a_screen_again_and_again(name: str, facts: Facts) -> None:
    dialect = load_dialect(name)
    units = UNITS if name == "generic" else (" ", "│ ", "a ", "[ ] ")
    rows_of = {size: [(unit * size)[:size] for unit in units] for size in (SMALL, LARGE)}
    work = _looking(facts, dialect)
    for small, large in zip(rows_of[SMALL], rows_of[LARGE], strict=True):
        ratio = min(_took(work, large) for _ in range(2)) / min(_took(work, small) for _ in range(2))
        assert ratio < TOO_STEEP, f"four times the text is {ratio:.0f} times the work, for rows of {small[:12]!r}"


def test_the_beginning_of_a_line_is_found_in_one_pass() -> None:
    assert too_steep([("begins_with", lambda text: begins_with(text, f"x{text}"))]) == []


def test_the_ways_through_a_list_grow_with_it_and_not_with_its_square(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = {size: _steps_built(size, monkeypatch) for size in (15, 30, 60)}
    assert counted[60] - counted[30] == 2 * (counted[30] - counted[15]) > 0


def _steps_built(size: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """All steps that are made for a list of so many choices, and not only those that are kept."""
    built = 0

    def counting(*args: Any, **named: Any) -> tuple[Any, ...]:
        nonlocal built
        steps = move_steps(*args, **named)
        built += len(steps)
        return steps

    with monkeypatch.context() as patched:
        patched.setattr(list_rows, "move_steps", counting)
        rows = ["Which one?", *(f"{'❯' if at == 0 else ' '} Choice {at}" for at in range(size))]
        view = View(tuple(rows), size, 0, cursor_visible=False, cols=200)
        found = recognise(view, Facts(canonical=False, echo=False), load_dialect("generic"))
    assert found is not None
    assert len(found.choices) == size
    return built
