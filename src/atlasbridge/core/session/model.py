"""What a session is, for the store, the channels and the commands."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from atlasbridge.core.values import frozen


class SessionState(StrEnum):
    ACTIVE = "active"
    COMPLETED = "completed"
    CRASHED = "crashed"
    TERMINATED = "terminated"


@frozen
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
    stopped: bool = False  # by job control (Ctrl-Z), as its host says now; not stored
    exit_code: int | None = None
    ended_at: str = ""
    machine: str = ""  # its name where several machines are spoken of; "": this one

    def to_json(self) -> dict[str, Any]:
        return {
            "session_id": self.session_id,
            "tool": self.tool,
            "command": list(self.command),
            "pid": self.pid,
            "host_pid": self.host_pid,
            "state": self.state.value,
            "attached": self.attached,
            "stopped": self.stopped,
            "cwd": self.cwd,
            "label": self.label,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
            "exit_code": self.exit_code,
            "open_prompt": self.open_prompt or None,
        }

    def to_wire(self) -> dict[str, Any]:
        """Everything, for the host's `hello`."""
        return {
            **self.to_json(),
            "open_prompt": self.open_prompt,
            "rows": self.rows,
            "cols": self.cols,
            "channels": None if self.channels is None else list(self.channels),
        }

    @classmethod
    def from_wire(cls, data: Mapping[str, Any]) -> SessionRecord:
        """The inverse of `to_wire`; a missing or wrong field raises (KeyError, TypeError or ValueError)."""
        channels = data.get("channels")
        return cls(
            session_id=str(data["session_id"]),
            tool=str(data["tool"]),
            command=tuple(str(word) for word in data["command"]),
            cwd=str(data["cwd"]),
            pid=int(data["pid"]),
            host_pid=int(data["host_pid"]),
            started_at=str(data["started_at"]),
            attached=bool(data.get("attached", False)),
            rows=int(data.get("rows", 24)),
            cols=int(data.get("cols", 80)),
            label=str(data.get("label", "")),
            channels=None if channels is None else tuple(str(name) for name in channels),
            open_prompt=str(data.get("open_prompt") or ""),
        )
