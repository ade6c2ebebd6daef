"""How much of a long test runs: a share of it in `make test`, all of it where a change lands (`make test-landing`).
What takes long and serves several tests is made once, whichever test processes they run in."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

IS_LANDING = "LANDING" in os.environ


def times(at_a_landing: int, quickly: int) -> int:
    """A file that uses this runs as a whole at a landing (see conftest.py)."""
    return at_a_landing if IS_LANDING else quickly


def examples(at_a_landing: int) -> int:
    """Of a property; `make test` takes the same ones every time, so that more of them find little that is new."""
    return times(at_a_landing, quickly=max(20, at_a_landing // 4))


def first_of(cases: Iterable[Any], quickly: int = 1) -> list[Any]:
    """Cases of a test that all go the same way: `make test` takes the first, a landing the others."""
    return [case if number < quickly else _at_a_landing(case) for number, case in enumerate(cases)]


def _at_a_landing(case: Any) -> Any:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.landing)


def once_per_run(name: str, make: Callable[[], Any]) -> Any:
    """What `make` returns (as JSON), made by the first test process that asks. All of one run share a folder."""
    import fcntl  # Windows has none

    path = Path(tempfile.gettempdir(), name)
    with path.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        if not (text := file.read()):
            text = json.dumps(make())
            file.write(text)
        return json.loads(text)
