"""What a session is, for the store, the channels and the commands."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class SessionState(StrEnum):
    ACTIVE = "active"
    COMPLETED = "completed"
    CRASHED = "crashed"
    TERMINATED = "terminated"


@dataclass(frozen=True, slots=True)
class SessionRecord:
    session_id: str
    tool: str
    command: tuple[str, ...]
    cwd: str
    pid: int
    host_pid: int
    started_at: str
    state: SessionState = SessionState.ACTIVE
    attached: bool = False
    rows: int = 24
    cols: int = 80
    label: str = ""
    channels: tuple[str, ...] | None = None  # None: all that are configured; (): `--channel none`
    open_prompt: str = ""
    exit_code: int | None = None
    ended_at: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "session_id": self.session_id,
            "tool": self.tool,
            "command": list(self.command),
            "pid": self.pid,
            "host_pid": self.host_pid,
            "state": self.state.value,
            "attached": self.attached,
            "cwd": self.cwd,
            "label": self.label,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "exit_code": self.exit_code,
            "open_prompt": self.open_prompt or None,
        }
