"""Processes of AtlasBridge that find what Python offers on Windows, and no more; a Unix terminal plays pywinpty."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.operator import Operator
from tests.support.terminal import ATLASBRIDGE, Terminal

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).with_name("windows_stand_in")


def environ_like_windows() -> dict[str, str]:
    more = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return {"PYTHONPATH": os.pathsep.join([str(FOLDER), str(ROOT), *more])}


class OperatorLikeWindows(Operator):
    """All of its commands run as they do on Windows."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self._environ |= environ_like_windows()

    def _is_asked(self) -> bool:
        """Each look is a command: a hub as on Windows is not found by this process, which is as on Unix."""
        return True


def run_on_console(home: Path, *command: str, options: Sequence[str] = (), **more: Any) -> Terminal:
    words = (*ATLASBRIDGE, "run", "--backend", "conpty", *options, "--", *command)
    return Terminal(words, home, env=environ_like_windows(), **more)
