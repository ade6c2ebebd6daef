"""How much of a long test runs: a share of it in `make test`, all of it where a change lands (`make test-landing`)."""

from __future__ import annotations

import os

IS_LANDING = "LANDING" in os.environ


def times(at_a_landing: int, quickly: int) -> int:
    return at_a_landing if IS_LANDING else quickly
