"""A session as the store, the channels and the commands see it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from atlasbridge.core.escape import escape_controls
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
    channels: tuple[str, ...] | None = None  # None: all configured channels; (): `--channel none`
    open_prompt: str = ""
    stopped: bool = False  # by job control (Ctrl-Z), as its host reports; not stored
    exit_code: int | None = None
    ended_at: str = ""
    # what an external adapter reports about itself (context, error); not stored
    adapter: Mapping[str, Any] | None = None
    machine: str = ""  # its machine's name, where several machines are shown; "": this one

    def to_json(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in _PUBLIC},
            "command": list(self.command),
            "state": self.state.value,
            "open_prompt": self.open_prompt or None,
            **({"adapter": dict(self.adapter)} if self.adapter else {}),
        }

    def to_wire(self) -> dict[str, Any]:
        """All fields that a host knows, for its `hello`; the hub reads them by their types."""
        channels = None if self.channels is None else list(self.channels)
        sizes = {"rows": self.rows, "cols": self.cols, "channels": channels}
        return {**self.to_json(), **sizes, "open_prompt": self.open_prompt}


_PUBLIC = (
    *("session_id", "tool", "command", "pid", "host_pid", "state", "attached", "stopped", "cwd", "label"),
    *("started_at", "ended_at", "exit_code", "open_prompt"),
)


NAME_LIMIT = 40


def session_name(session: SessionRecord) -> str:
    """What chats call the session: its label, else its folder, else its tool; with the machine if there are several."""
    folder = escape_controls(session.cwd, keep_lines=False).rstrip("/").rpartition("/")[2]
    label = escape_controls(session.label, keep_lines=False).strip()
    name = (label or folder or escape_controls(session.tool, keep_lines=False))[:NAME_LIMIT]
    return f"{name}@{escape_controls(session.machine, keep_lines=False)[:NAME_LIMIT]}" if session.machine else name


# How a person names a session or a prompt: by its id, its name, or a unique beginning of either. Pure.
#
# All commands use this rule. The caller provides the candidates.

LONGEST_NAME = 80
INTEGRATIONS = {"ask": "a command", "mcp": "an MCP client", "acp": "an editor's agent"}  # callers without a terminal
_NEAR = 0.6  # minimum similarity of two words for a suggestion
_WORSE = 0.12  # a suggestion that is so much less similar than the best one is none
_SHOWN = 8


@frozen
class Named:
    """A candidate. `live`: it runs or is open; ended candidates count only if no live one matches."""

    id: str
    name: str = ""
    live: bool = True

    @property
    def shown(self) -> str:
        return f"{short_id(self.id)} ({self.name})" if self.name else short_id(self.id)


@frozen
class Match:
    """`found` contains the match, or all possible matches if it is ambiguous; empty if nothing matches."""

    found: tuple[Named, ...]
    near: tuple[str, ...] = ()  # suggestions

    @property
    def one(self) -> str:
        return self.found[0].id if len(self.found) == 1 else ""


def choose(said: str, candidates: Iterable[Named]) -> Match:
    """Matches by id, name, name in any case, and beginning of an id or a name; the first rule with a result decides."""
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


def nearest(said: str, words: Iterable[str]) -> tuple[str, ...]:
    """The words that are most similar to what was typed."""
    from difflib import SequenceMatcher  # imported late: only needed after a typo

    low = {word.lower(): word for word in words}
    typed = said.lower()
    likeness = {word: SequenceMatcher(None, word, typed).ratio() for word in low}
    least = max(_NEAR, max(likeness.values(), default=0.0) - _WORSE)
    near = sorted((word for word in low if likeness[word] >= least), key=lambda word: -likeness[word])
    return tuple(low[word] for word in near[:3])


def did_you_mean(words: Sequence[str]) -> str:
    """The suggestion "did you mean a, b or c?", or an empty string."""
    if not words:
        return ""
    head = ", ".join(words[:-1])
    return f"did you mean {head + ' or ' if head else ''}{words[-1]}?"


def join_names(found: Sequence[Named]) -> str:
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return ", ".join(item.shown for item in found[:_SHOWN]) + more
