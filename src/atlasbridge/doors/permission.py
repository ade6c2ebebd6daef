"""A permission request of the Agent Client Protocol: read as a prompt, and answered as its JSON-RPC response.

Pure.  What cannot be read is no request of ours: it passes to the editor untouched.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from atlasbridge.core.prompt.model import Answer, Choice, Prompt
from atlasbridge.core.prompt.question import BadQuestion, Question, prompt_of
from atlasbridge.core.prompt.subject import SubjectKind
from atlasbridge.core.values import frozen, replace
from atlasbridge.doors.tool_use import about_tool, beside_command

_KINDS = {  # the protocol's own word for what a tool does; without one nobody knows
    "execute": SubjectKind.COMMAND,
    "edit": SubjectKind.EDIT,
    "fetch": SubjectKind.FETCH,
    "switch_mode": SubjectKind.PLAN,
}


@frozen
class Permission:
    key: str  # the request's id as JSON
    options: tuple[str, ...]  # option ids, in the order of the prompt's choices
    prompt: Prompt

    def answer_line(self, answer: Answer) -> bytes:
        at = [choice.value for choice in self.prompt.choices].index(answer.value)
        result = {"outcome": {"outcome": "selected", "optionId": self.options[at]}}
        return _line({"jsonrpc": "2.0", "id": json.loads(self.key), "result": result})

    def cancel_line(self) -> bytes:
        """Tells the editor that its dialog is over."""
        return _line({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": json.loads(self.key)}})


def read_message(line: bytes) -> Any:
    """What a line says; None: nothing that we can read, however it is made."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def read_permission(line: bytes) -> Permission | None:
    message = read_message(line)
    try:
        params = message["params"]
        if message["method"] != "session/request_permission" or "id" not in message:
            return None
        options = [(str(item["optionId"]), str(item["name"]), str(item.get("kind", ""))) for item in params["options"]]
        prompt = _prompt(params, options)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, BadQuestion):
        return None
    return Permission(json.dumps(message["id"]), tuple(option for option, _, _ in options), prompt)


def canceled_key(line: bytes) -> str:
    """The key of the request that its sender takes back with this line; "" when it is no such line."""
    message = read_message(line)
    if not isinstance(message, dict) or message.get("method") != "$/cancel_request" or "id" in message:
        return ""
    params = message.get("params")
    return json.dumps(params["requestId"]) if isinstance(params, dict) and "requestId" in params else ""


def _prompt(params: Mapping[str, Any], options: list[tuple[str, str, str]]) -> Prompt:
    call = params.get("toolCall") or {}
    title = str(call.get("title") or call.get("kind") or "The agent asks for a permission")
    arguments = call.get("rawInput")
    about, kind, target, more = title, None, "", ""
    if isinstance(arguments, Mapping) and arguments:
        kind, about, target = about_tool(arguments, _KINDS.get(str(call.get("kind")), SubjectKind.TOOL))
        more = beside_command(kind, arguments)
    said = title if about == title else f"{title}\n{about}"
    question = Question(
        text=f"{said}\n\n{more}" if more else said,
        choices=_labels([name for _, name, _ in options]),
        about=about,
        target=target,
        complete=not more,
    )
    prompt = prompt_of(question if kind is None else replace(question, kind=kind))
    return replace(prompt, choices=tuple(map(_of_kind, prompt.choices, (kind for _, _, kind in options))))


def _labels(names: list[str]) -> tuple[str, ...]:
    """Each with a name of its own, as a choice needs it."""
    return tuple(name if names.count(name) == 1 else f"{name} ({at})" for at, name in enumerate(names, 1))


def _of_kind(choice: Choice, kind: str) -> Choice:
    """The protocol says what an option does; its label need not."""
    if not kind:
        return choice
    return replace(choice, refuses=kind.startswith("reject"), always=kind.endswith("always"))


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
