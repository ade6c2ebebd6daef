"""No pattern and no finder costs more than its text is long: rows of blanks, frames and hostile signs, in two sizes.

What is compared is the ratio between the two, never the time itself: with eight times the text, eight times the work.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import time
from collections.abc import Callable, Iterator

import atlasbridge.core
from atlasbridge.adapters.dialect_files import load_dialect
from atlasbridge.core import patterns
from atlasbridge.core.recognition.dialect import compiled

SMALL, LARGE = 500, 4000
TOO_STEEP = 3 * LARGE / SMALL  # linear is 8, quadratic 64
TOO_SHORT_S = 2e-3  # the larger one took less: whatever its shape, no row of a screen is felt
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
FRAMES = (("", ""), ("│", "│"), ("a", "b"), ("? ", "?"), ("[", ")"), ("(", ""), ("❯ ", "x"), ("1. ", ":"))
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
            held = isinstance(value, patterns._Lazy)
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


def _took(work: Callable[[str], object], text: str) -> float:
    begun = time.thread_time()
    work(text)
    return max(time.thread_time() - begun, 1e-7)
