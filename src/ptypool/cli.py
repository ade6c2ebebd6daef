"""Runs a task in an AI coding CLI on a PTY, without a person: one adapter for each tool.

The flags are those of current versions (docs/ptypool.md lists differences to the specification). Only the argument
`dangerously_skip_permissions` lets a tool act without asking.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, runtime_checkable

from ptypool.handle import Environment, Name, Words

if TYPE_CHECKING:
    from ptypool.handle import PtyHandle
    from ptypool.pool import PtyPool

Status = Literal["completed", "error"]
Event = dict[str, Any]

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")


class CliType(StrEnum):
    """The tools. The names in mixed case are the specification's, for the same members."""

    CLAUDE = "claude"
    CODEX = "codex"
    GEMINI = "gemini"
    OPENCODE = "opencode"
    Claude = CLAUDE
    Codex = CODEX
    Gemini = GEMINI
    OpenCode = OPENCODE

    def __call__(self) -> Self:
        """`adapter.cli_type()`, as the specification writes it."""
        return self


@runtime_checkable
class CliAdapter(Protocol):
    """The interface of a tool's adapter; write your own for other tools."""

    @property
    def cli_type(self) -> CliType: ...

    @property
    def binary_name(self) -> str: ...

    @property
    def default_args(self) -> Words: ...

    async def spawn(self, pool: PtyPool, task: str, workdir: str | os.PathLike[str]) -> PtyHandle: ...

    def parse_status_output(self, output: str) -> Status | None: ...


@dataclass(frozen=True, slots=True)
class _Tool:
    """The differences between the CLIs."""

    binary_name: str
    base_args: tuple[str, ...]
    dangerous_args: tuple[str, ...]
    json_args: tuple[str, ...]
    task_args: Callable[[str], tuple[str, ...]]
    judge_event: Callable[[Event], Status | None]
    completed_line: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class TaskAdapter:
    """A CliAdapter for one of the known tools."""

    cli_type: CliType
    dangerously_skip_permissions: bool = False
    json_events: bool = False

    @property
    def binary_name(self) -> Name:
        return Name(self._tool.binary_name)

    @property
    def default_args(self) -> Words:
        tool = self._tool
        dangerous = tool.dangerous_args if self.dangerously_skip_permissions else ()
        return Words((*tool.base_args, *dangerous, *(tool.json_args if self.json_events else ())))

    async def spawn(
        self,
        pool: PtyPool,
        task: str,
        workdir: str | os.PathLike[str],
        *,
        env: Environment | None = None,
        size: tuple[int, int] = (24, 80),
    ) -> PtyHandle:
        """Start the tool on its task in `workdir`; it ends when the task is done."""
        return await pool.spawn(self.binary_name, self.arguments(task), env, workdir, size)

    def arguments(self, task: str) -> Words:
        """All arguments after the program's name for this task."""
        if not task.strip():
            raise ValueError("an adapter needs a task to give to its tool")
        return Words((*self.default_args, *self._tool.task_args(task)))

    def parse_status_output(self, output: str) -> Status | None:
        """The state of the task according to all output so far; None while it is unknown.

        It is exact with `json_events`. Plain text is for people: then only the tool's exit status counts.
        """
        status: Status | None = None
        for line in _lines(output):
            event = _event(line)
            verdict = self._judge_text(line) if event is None else self._tool.judge_event(event)
            status = verdict or status
        return status

    def _judge_text(self, line: str) -> Status | None:
        if re.match(r"(error|api error|fatal)\b.*:", line, re.IGNORECASE):
            return "error"
        done = self._tool.completed_line
        return "completed" if done is not None and done.fullmatch(line) else None

    @property
    def _tool(self) -> _Tool:
        return _TOOLS[self.cli_type]


def adapter_for(
    cli_type: CliType | str, *, dangerously_skip_permissions: bool = False, json_events: bool = False
) -> TaskAdapter:
    """Return the adapter of a tool.

    `dangerously_skip_permissions` lets the tool run commands and change files without asking: use it only on a
    disposable machine. `json_events` makes the tool print one JSON object per line instead of text.
    """
    return TaskAdapter(CliType(cli_type), dangerously_skip_permissions, json_events)


def _lines(output: str) -> Iterator[str]:
    return (line.strip() for line in _ESCAPES.sub("", output).splitlines())


def _event(line: str) -> Event | None:
    if not line.startswith("{"):
        return None
    try:
        event = json.loads(line)
    except ValueError:
        return None  # truncated, or not JSON
    return event if isinstance(event, dict) else None


def _judge_claude(event: Event) -> Status | None:
    if event.get("type") != "result":
        return None
    return "error" if event.get("is_error") else "completed"


def _judge_codex(event: Event) -> Status | None:
    match event.get("type"):
        case "turn.completed":
            return "completed"
        case "turn.failed" | "error":
            return "error"
    return None


def _judge_gemini(event: Event) -> Status | None:
    if event.get("type") != "result":
        return None
    return "completed" if event.get("status") == "success" else "error"


def _judge_opencode(event: Event) -> Status | None:
    if event.get("type") == "error":
        return "error"
    part = event.get("part")
    finished = event.get("type") == "step_finish" and isinstance(part, dict) and part.get("reason") == "stop"
    return "completed" if finished else None


def _after_dashes(task: str) -> tuple[str, ...]:
    """A task that starts with a dash must not become a flag."""
    return ("--", task)


_TOOLS = {
    CliType.CLAUDE: _Tool(
        "claude",
        ("-p",),
        ("--dangerously-skip-permissions",),
        ("--output-format", "stream-json", "--verbose"),
        _after_dashes,
        _judge_claude,
    ),
    CliType.CODEX: _Tool(
        "codex",
        ("exec", "--skip-git-repo-check"),
        ("--sandbox", "workspace-write"),
        ("--json",),
        _after_dashes,
        _judge_codex,
        re.compile("tokens used"),
    ),
    CliType.GEMINI: _Tool(
        "gemini",
        (),
        ("--approval-mode", "yolo"),
        ("--output-format", "stream-json"),
        lambda task: (f"--prompt={task}",),
        _judge_gemini,
    ),
    CliType.OPENCODE: _Tool("opencode", ("run",), ("--auto",), ("--format", "json"), _after_dashes, _judge_opencode),
}
