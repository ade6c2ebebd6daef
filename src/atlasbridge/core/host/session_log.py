"""The session's own log file: one JSON object per line. An error while writing the log never disturbs the session."""

from __future__ import annotations

import json
import os
from pathlib import Path

from atlasbridge.core.clock import Clock, iso
from atlasbridge.core.system import OWN_FILE

_MAX_BYTES = 1_000_000


class SessionLog:
    def __init__(self, path: Path | None, clock: Clock) -> None:
        self._clock = clock
        self._room = _MAX_BYTES
        self._fd = -1
        if path is not None:
            try:
                self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | OWN_FILE, 0o600)
            except OSError:
                self._fd = -1

    def note(self, event: str, **fields: object) -> None:
        line = json.dumps({"at": iso(self._clock.wall()), "event": event, **fields}, default=str).encode() + b"\n"
        self._room -= len(line)
        if self._fd < 0 or self._room < 0:
            return
        try:
            os.write(self._fd, line)
        except OSError:
            self._room = 0  # the disk is full or the folder is gone

    def crash(self, event: str, error: BaseException) -> None:
        import traceback  # rarely needed, and slow to import

        from atlasbridge.core.prompt.redact import leaves

        trace = "".join(traceback.format_exception(error))
        self.note(event, error=leaves(str(error)), trace=leaves(trace[-4000:]))
