"""Configures the hub's log: JSON lines in a rotating file, or readable lines on a terminal."""

from __future__ import annotations

import json
import logging
import sys
from contextvars import ContextVar
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from atlasbridge.core.clock import iso
from atlasbridge.core.prompt.redact import redact_outgoing

request_id: ContextVar[str] = ContextVar("request_id", default="")  # the id of the HTTP request that is being served
INDENT = "\n    "  # indents continuation lines, so that foreign text cannot look like a log line


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "ts": iso(record.created),
            "level": record.levelname.lower(),
            "logger": record.name.removeprefix("atlasbridge."),
            "message": redact_outgoing(record.getMessage()),
        }
        if request := request_id.get():
            entry["request_id"] = request
        if record.exc_info:
            entry["traceback"] = redact_outgoing(self.formatException(record.exc_info))
        return json.dumps(entry, ensure_ascii=False)


class Readable(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = f"{iso(record.created)[11:19]} {record.levelname.lower():7} {redact_outgoing(record.getMessage())}"
        text += "\n" + redact_outgoing(self.formatException(record.exc_info)) if record.exc_info else ""
        return text.replace("\n", INDENT)


def open_log(path: Path, level: str, max_bytes: int, backups: int, to_terminal: bool, as_json: bool = False) -> None:
    """Configures the root logger. Third-party packages log only warnings and errors (and never a URL)."""
    handler: logging.Handler
    if to_terminal:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonLines() if as_json else Readable())
    else:
        path.touch(mode=0o600, exist_ok=True)
        handler = RotatingFileHandler(path, maxBytes=max_bytes, backupCount=backups, encoding="utf-8")
        handler.setFormatter(JsonLines())
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("atlasbridge").setLevel(level.upper())
    logging.captureWarnings(True)  # a line that is not JSON would stop whatever reads the log
