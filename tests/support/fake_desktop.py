"""A program in the place of notify-send: notes its arguments, one call a line, and says a number like the real one."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from tests.support.terminal import SCRIPT

PROGRAM = """import json, sys
if sys.argv[1:] == []: sys.exit(2)
with open({log!r}, "a") as file: file.write(json.dumps(sys.argv[1:]) + "\\n")
if "--print-id" in sys.argv:
    words = sys.argv
    print(words[words.index("--replace-id") + 1] if "--replace-id" in words else sum(1 for _ in open({log!r})))
"""


class FakeDesktop:
    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ab-desktop-"))
        self._log = self.folder / "calls"
        path = self.folder / "notify-send"
        path.write_text(SCRIPT + PROGRAM.format(log=str(self._log)).replace("\\\\n", "\\n"))
        path.chmod(0o755)
        self.program = str(path)

    def calls(self) -> list[list[str]]:
        return [json.loads(line) for line in self._log.read_text().splitlines()] if self._log.exists() else []

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
