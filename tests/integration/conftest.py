"""A home of its own for every test, short enough for a socket's path; whatever runs in it ends with the test."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.sessions import end_all


@pytest.fixture
def home() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="ab"))
    yield path
    end_all(path)
    shutil.rmtree(path, ignore_errors=True)
