"""An agent's wish to use one of its tools, as a question: which command, file or page it is about, whole.

Pure.  The names of tools are those that AI CLIs give them; one that is not known is shown with all its arguments.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from atlasbridge.core.prompt.question import Question
from atlasbridge.core.prompt.subject import SubjectKind

ALLOW, DENY = "Allow", "Deny"
_COMMAND = ("command", "cmd", "script")
_HARMLESS = frozenset({"description", "timeout", "timeout_ms", "run_in_background"})  # beside a command
_FILE = ("file_path", "path", "filename", "notebook_path", "absolute_path")
_ADDRESS = ("url", "uri")
_PLAN = ("plan",)


def question_of(tool: str, arguments: Mapping[str, Any], folder: str) -> Question:
    """Allow it once, or deny it; own words deny it and say why."""
    kind, about, target = about_tool(arguments)
    verb = {
        SubjectKind.COMMAND: "wants to run a command",
        SubjectKind.EDIT: f"wants to change {target}",
        SubjectKind.FETCH: f"wants to open {target}",
        SubjectKind.PLAN: "has a plan",
    }.get(kind, "wants to use a tool")
    more = beside_command(kind, arguments)
    return Question(
        text=f"{tool} {verb}:\n{about}" + (f"\n\n{more}" if more else ""),
        choices=(ALLOW, DENY),
        takes_text=True,
        default=DENY,
        folder=folder,
        kind=kind,
        about=about,
        target=target,
        complete=not more,
    )


def about_tool(arguments: Mapping[str, Any]) -> tuple[SubjectKind, str, str]:
    """The kind, the whole text, and the file or address it is about."""
    command = _first(arguments, _COMMAND)
    if isinstance(command, list):
        command = " ".join(map(str, command))  # as it will be run by whoever splits it again; shown with all its words
        return SubjectKind.TOOL, _whole(arguments), command
    if isinstance(command, str):
        return SubjectKind.COMMAND, command, ""
    plan = _first(arguments, _PLAN)
    if isinstance(plan, str):
        return SubjectKind.PLAN, plan, ""
    path = _first(arguments, _FILE)
    if isinstance(path, str) and len(arguments) > 1:
        return SubjectKind.EDIT, _whole(arguments), path
    address = _first(arguments, _ADDRESS)
    if isinstance(address, str):
        return SubjectKind.FETCH, _whole(arguments), address
    return SubjectKind.TOOL, _whole(arguments), ""


def beside_command(kind: SubjectKind, arguments: Mapping[str, Any]) -> str:
    """What else a tool is given with its command: another folder, its input, an environment.  It is shown, and no rule
    that looks at commands can know what it does."""
    if kind is not SubjectKind.COMMAND:
        return ""
    own = next(name for name in _COMMAND if name in arguments)
    return _whole({name: value for name, value in arguments.items() if name != own and name not in _HARMLESS})


def _first(arguments: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((arguments[name] for name in names if name in arguments), None)


def _whole(arguments: Mapping[str, Any]) -> str:
    """Every argument under its name; texts as they are, so that a diff or a file can be read."""
    parts = []
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        parts.append(f"{name}:\n{text}" if "\n" in text else f"{name}: {text}")
    return "\n".join(parts)
