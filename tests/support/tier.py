"""How much of a long test runs: a share of it in `make test`, all of it where a change lands (`make test-landing`)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest

IS_LANDING = "LANDING" in os.environ


def times(at_a_landing: int, quickly: int) -> int:
    """A file that uses this runs as a whole at a landing (see conftest.py)."""
    return at_a_landing if IS_LANDING else quickly


def first_of(cases: Iterable[Any], quickly: int = 1) -> list[Any]:
    """Cases of a test that all go the same way: `make test` takes the first, a landing the others."""
    return [case if number < quickly else _at_a_landing(case) for number, case in enumerate(cases)]


def _at_a_landing(case: Any) -> Any:
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.landing)
