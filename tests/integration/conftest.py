"""A home of its own for every test, short enough for a socket's path; whatever runs in it ends with the test."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.sessions import end_all
from tests.support.zygotes import SWITCH, start_zygote


@pytest.fixture
def home(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="ab"))
    if "WITH_ZYGOTE" in os.environ or request.node.get_closest_marker("zygote"):
        monkeypatch.delenv(SWITCH, raising=False)
        start_zygote(path)
    yield path
    end_all(path)
    shutil.rmtree(path, ignore_errors=True)
