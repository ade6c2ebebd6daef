"""What a shell session is made of once its process is gone, and its file on disk.

The file holds the environment, secrets included: it is readable by its owner only, and replaced in one step.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ptypool.errors import PtyInternalError

_VERSION = 1


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    command: str
    exit_status: int
    cwd: str
    duration_s: float


@dataclass(frozen=True, slots=True)
class SessionState:
    shell: str
    cwd: str
    env: dict[str, str]
    history: tuple[HistoryEntry, ...] = ()

    def save(self, path: str | os.PathLike[str]) -> None:
        target = Path(path)
        draft = target.with_name(f".{target.name}.{os.getpid()}")
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0), 0o600)
        with open(fd, "w", encoding="utf-8") as file:
            json.dump({"version": _VERSION, **asdict(self)}, file, indent=1)
            file.flush()
            os.fsync(fd)
        os.replace(draft, target)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SessionState:
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
            return cls._from_document(document)
        except (ValueError, KeyError, TypeError) as error:
            raise PtyInternalError(f"{os.fspath(path)} is no saved session: {error}") from error

    @classmethod
    def _from_document(cls, document: dict[str, Any]) -> SessionState:
        if document["version"] != _VERSION:
            raise ValueError(f"version {document['version']} is not {_VERSION}")
        history = tuple(HistoryEntry(**entry) for entry in document["history"])
        return cls(str(document["shell"]), str(document["cwd"]), dict(document["env"]), history)
