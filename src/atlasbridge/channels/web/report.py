"""What people report about detection: "not a prompt" and "you missed one", as files that the lab reads.

One file per report in HOME/reports; the detector's makers turn them into recordings and tests.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from atlasbridge.channels.web.server import write_private
from atlasbridge.core.clock import Clock, iso
from atlasbridge.core.ids import new_id, short_id
from atlasbridge.core.prompt.discreet import discreet_data

MAX_REPORTS = 1000


class Reports:
    def __init__(self, home: Path, clock: Clock) -> None:
        self._folder = home / "reports"
        self._clock = clock

    def write(self, verdict: str, session_id: str, prompt_id: str, note: str, detail: dict[str, Any]) -> Path | None:
        """None: there are so many already that one more would only fill the disk."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        if self.count() >= MAX_REPORTS:
            return None
        at = iso(self._clock.wall())
        path = self._folder / f"{at[:19].replace(':', '')}-{short_id(new_id())}.json"
        record = {"prompt_id": prompt_id, "verdict": verdict, "at": at, "session_id": session_id, "note": note}
        write_private(path, discreet_data({**record, **detail}))
        return path

    def count(self, verdict: str = "") -> int:
        files = list(self._folder.glob("*.json")) if self._folder.is_dir() else []
        return sum(1 for path in files if not verdict or f'"verdict": "{verdict}"' in path.read_text("utf-8"))
