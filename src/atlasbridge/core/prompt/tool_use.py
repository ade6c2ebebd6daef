"""Converts an agent's request to use a tool to a question about the whole command, file or page.

Pure. The names of tools are those of AI CLIs. An unknown tool is shown with all its arguments, because what another
server's tool calls `command` or `path` is not necessarily a shell command or a file change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from atlasbridge.core.prompt.model import SubjectKind
from atlasbridge.core.prompt.question import Question

ALLOW, DENY = "Allow", "Deny"
_COMMAND = ("command", "cmd", "script")
# harmless arguments beside a command
_HARMLESS = frozenset({"description", "timeout", "timeout_ms", "run_in_background"})
_FILE = ("file_path", "path", "filename", "notebook_path", "absolute_path")
_ADDRESS = ("url", "uri")
_PLAN = ("plan",)
_KINDS = {
    **dict.fromkeys(
        (
            "bash",
            "shell",
            "sh",
            "local_shell",
            "run_shell_command",
            "run_command",
            "execute_command",
            "execute",
            "exec",
        ),
        SubjectKind.COMMAND,
    ),
    **dict.fromkeys(("run_terminal_cmd", "terminal", "powershell"), SubjectKind.COMMAND),
    **dict.fromkeys(("edit", "multiedit", "write", "notebookedit", "write_file", "edit_file"), SubjectKind.EDIT),
    **dict.fromkeys(("replace", "create_file", "str_replace", "str_replace_editor", "patch"), SubjectKind.EDIT),
    **dict.fromkeys(("webfetch", "web_fetch", "fetch"), SubjectKind.FETCH),
    **dict.fromkeys(("exitplanmode", "exit_plan_mode"), SubjectKind.PLAN),
}


def question_of(tool: str, arguments: Mapping[str, Any], folder: str) -> Question:
    """Asks to allow it once or to deny it. A reply in the person's own words denies it and gives the reason."""
    kind, about, target = about_tool(arguments, _KINDS.get(tool.lower(), SubjectKind.TOOL))
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


def about_tool(arguments: Mapping[str, Any], known: SubjectKind) -> tuple[SubjectKind, str, str]:
    """Returns the kind, the whole text, and the file or address. `known` is the purpose of the tool according to its
    name. If the arguments do not match it, the kind is TOOL."""
    command = _first(arguments, _COMMAND)
    if isinstance(command, list):
        # as a program would run it after splitting it again; shown with all its words
        command = " ".join(map(str, command))
        return SubjectKind.TOOL, _whole(arguments), command
    if known is SubjectKind.COMMAND and isinstance(command, str):
        return known, command, ""
    plan = _first(arguments, _PLAN)
    if known is SubjectKind.PLAN and isinstance(plan, str):
        return known, plan, ""
    path = _first(arguments, _FILE)
    if known is SubjectKind.EDIT and isinstance(path, str) and len(arguments) > 1:
        return known, _whole(arguments), path
    address = _first(arguments, _ADDRESS)
    if known is SubjectKind.FETCH and isinstance(address, str):
        return known, _whole(arguments), address
    return SubjectKind.TOOL, _whole(arguments), ""


def beside_command(kind: SubjectKind, arguments: Mapping[str, Any]) -> str:
    """The other arguments besides a command, such as a folder, its input or an environment. They are shown, and rules
    about commands do not apply, because they cannot know the effect."""
    if kind is not SubjectKind.COMMAND:
        return ""
    own = next(name for name in _COMMAND if name in arguments)
    return _whole({name: value for name, value in arguments.items() if name != own and name not in _HARMLESS})


def _first(arguments: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((arguments[name] for name in names if name in arguments), None)


def _whole(arguments: Mapping[str, Any]) -> str:
    """Every argument with its name; strings are shown as they are, so that a diff or a file is readable."""
    parts = []
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
        parts.append(f"{name}:\n{text}" if "\n" in text else f"{name}: {text}")
    return "\n".join(parts)
