"""The blocks of `examples.md`, and the mark of a test that runs some of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
_BLOCK = re.compile(r"^## (.+?) (\d+): [^\n]*\n\n````\w*\n(.*?)^````$", re.MULTILINE | re.DOTALL)
BLOCKS = {
    (found[1], int(found[2])): found[3]
    for found in _BLOCK.finditer(Path(__file__).with_name("examples.md").read_text(encoding="utf-8"))
}


def block(document: str, number: int) -> str:
    return BLOCKS[document, number]


def example(document: str, number: int) -> Callable[[F], F]:
    """The test runs this example."""

    def mark(test: F) -> F:
        test.examples = (*getattr(test, "examples", ()), (document, number))  # type: ignore[attr-defined]
        return test

    return mark
