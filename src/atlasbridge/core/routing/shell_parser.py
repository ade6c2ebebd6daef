"""Parses commands with `shfmt`, which is installed with us. Processes are started ahead, and results are cached.

`core.policy` interprets the tree. A command that cannot be parsed in time has no tree.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any, Final

from atlasbridge.core.policy.shell import plain_tree

log = logging.getLogger(__name__)

REMEMBERED: Final = 256
SPARE: Final = 2
LONGEST: Final = 262_144
TIMEOUT_S: Final = 2.0


class ShellParser:
    """The parser of `core.policy`. Starting a process takes most of the time, so `warm_up` starts some ahead."""

    def __init__(self, program: str = "") -> None:
        self._program = program or find_shfmt()
        self._ready: list[subprocess.Popen[bytes]] = []
        self._known: OrderedDict[str, dict[str, Any] | None] = OrderedDict()

    def __call__(self, text: str) -> dict[str, Any] | None:
        if text in self._known:
            self._known.move_to_end(text)
            return self._known[text]
        tree = plain_tree(text) or self._parse(text)
        if len(text) < 4096:
            self._known[text] = tree
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return tree

    def warm_up(self) -> None:
        """Starts processes for the next commands; called when nobody waits."""
        while self._program and len(self._ready) < SPARE:
            process = self._start()
            if process is None:
                return
            self._ready.append(process)

    def close(self) -> None:
        while self._ready:
            process = self._ready.pop()
            process.kill()
            process.communicate()

    def _parse(self, text: str) -> dict[str, Any] | None:
        try:
            data = text.encode("utf-8")
        except UnicodeEncodeError:
            return None
        if not self._program or len(data) > LONGEST:
            return None
        process = self._ready.pop(0) if self._ready else self._start()
        if process is None:
            return None
        try:
            out, _ = process.communicate(data, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            log.warning("a command of %d characters was not parsed in time", len(text))
            return None
        return read_tree(out) if process.returncode == 0 else None

    def _start(self) -> subprocess.Popen[bytes] | None:
        try:
            return subprocess.Popen(
                [self._program, "-ln", "bash", "--to-json"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={"GOMAXPROCS": "1", "GOMEMLIMIT": "256MiB"},
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            log.error("commands cannot be parsed: %s: %s", self._program, error)
            return None


def read_tree(out: bytes) -> dict[str, Any] | None:
    """Parses the JSON without the source positions, which are most of it."""
    try:
        tree = json.loads(out, object_hook=_without_places)
    except (ValueError, RecursionError):
        return None
    return tree if isinstance(tree, dict) else None


def _without_places(node: dict[str, Any]) -> dict[str, Any] | None:
    if "Col" in node and "Line" in node:
        return None
    return {name: value for name, value in node.items() if value is not None}


def find_shfmt() -> str:
    """Returns the program that was installed with us, otherwise the system's; "" without one: then a person is asked
    about all commands."""
    from importlib import metadata  # slow to import, and most hubs have no rules

    beside = Path(sys.executable).parent / "shfmt"
    if os.access(beside, os.X_OK):
        return str(beside)
    try:
        files = metadata.files("shfmt-py") or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name in ("shfmt", "shfmt.exe"):
            return os.path.realpath(file.locate())
    return shutil.which("shfmt") or ""
