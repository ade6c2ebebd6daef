"""What a session is, for the store, the channels and the commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from atlasbridge.core.ids import short_id
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
    adapter: Mapping[str, Any] | None = None  # what an outside adapter says of itself (context, fault); not stored
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
            **({"adapter": dict(self.adapter)} if self.adapter else {}),
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


# What a person may say for a session or a prompt: its id, its name, or a beginning of either that only one has.  Pure.
#
# The one rule for every command.  Where the candidates come from is left to who asks.

LONGEST_NAME = 80
INTEGRATIONS = {"ask": "a command", "mcp": "an MCP client", "acp": "an editor's agent"}  # what asks without a terminal
_NEAR = 0.6  # how alike two words are that may be a slip of the fingers
_SHOWN = 8


@frozen
class Named:
    """A candidate.  `live`: it runs, or waits; the past is looked at only where the present has no such name."""

    id: str
    name: str = ""
    live: bool = True

    @property
    def shown(self) -> str:
        return f"{short_id(self.id)} ({self.name})" if self.name else short_id(self.id)


@frozen
class Match:
    """`found` holds the one that is meant, or all it could be; none: nothing is called like that."""

    found: tuple[Named, ...]
    near: tuple[str, ...] = ()  # what may have been meant

    @property
    def one(self) -> str:
        return self.found[0].id if len(self.found) == 1 else ""


def choose(said: str, candidates: Iterable[Named]) -> Match:
    """Id, name, name in other letters, beginning of an id or a name: the first of these that fits anything decides."""
    known = tuple(candidates)
    for part in ([item for item in known if item.live], [item for item in known if not item.live]):
        found = _fitting(said.strip(), part)
        if found:
            return Match(tuple(found))
    return Match((), nearest(said, [item.name for item in known if item.name] + [short_id(item.id) for item in known]))


def _fitting(said: str, candidates: Sequence[Named]) -> list[Named]:
    low = said.lower()
    if not low:
        return []
    rules: tuple[Callable[[Named], bool], ...] = (
        lambda item: item.id == low,
        lambda item: item.name == said,
        lambda item: item.name.lower() == low,
        lambda item: item.id.startswith(low) or item.name.lower().startswith(low),
    )
    for fits in rules:
        found = [item for item in candidates if fits(item)]
        if found:
            return found
    return []


def nearest(said: str, words: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """The words that look most like what was said; none when nothing does."""
    from difflib import get_close_matches  # only after a slip

    known = dict.fromkeys(words)
    low = {word.lower(): word for word in known}
    return tuple(low[word] for word in get_close_matches(said.lower(), low, count, _NEAR))


def meant(words: Sequence[str]) -> str:
    """ "did you mean a, b or c?", or nothing."""
    if not words:
        return ""
    head = ", ".join(words[:-1])
    return f"did you mean {head + ' or ' if head else ''}{words[-1]}?"


def listed(found: Sequence[Named]) -> str:
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return ", ".join(item.shown for item in found[:_SHOWN]) + more
