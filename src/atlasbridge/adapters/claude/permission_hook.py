"""Claude Code's PermissionRequest hook: tells the session host what is asked, in full.  Run as a script of its own.

It decides nothing and prints nothing, so the dialog stays as it is; it always ends well and soon, also when the
session is gone.  Standard library only, started with `python -I -S`.
"""

import json
import socket
import sys

TIMEOUT_S = 1.0
TEXT_LIMIT = 20_000
NAMES = {"WebFetch": "Fetch", "ExitPlanMode": "Plan", "AskUserQuestion": "Question"}


def main(door: str) -> None:
    try:
        message = tell(json.loads(sys.stdin.buffer.read()))
        line = json.dumps({"m": "structured", **message}).encode() + b"\n"
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(TIMEOUT_S)
            connection.connect(door)
            connection.sendall(line)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return  # no session, or a hook of another version: the screen decides


def tell(payload: dict) -> dict:  # type: ignore[type-arg]
    """What the host is told: kind, text, source.  The text's first line stands on the screen as well."""
    tool, given = str(payload["tool_name"]), dict(payload["tool_input"])
    kind = "question" if tool == "AskUserQuestion" else "permission"
    lines = describe(tool, given)
    if kind == "permission" and payload.get("cwd"):
        lines.insert(1, f"in {payload['cwd']}")
    return {"kind": kind, "text": "\n".join(lines)[:TEXT_LIMIT], "source": "claude-code (PermissionRequest hook)"}


def describe(tool: str, given: dict) -> list:  # type: ignore[type-arg]
    name = NAMES.get(tool, tool)
    if tool == "Bash":
        first, *rest = str(given["command"]).split("\n")
        return [f"{name}: {first}", *rest]
    if tool in ("Edit", "MultiEdit", "Write", "NotebookEdit"):
        path = str(given.get("file_path") or given.get("notebook_path"))
        return [f"{name}: {path.rpartition('/')[2]}", path, *changes(given)]
    if tool == "WebFetch":
        return [f"{name}: {given['url']}", str(given.get("prompt", ""))]
    if tool == "AskUserQuestion":
        return [line for question in given["questions"] for line in asked(question)]
    if tool == "ExitPlanMode":
        return [line for line in str(given.get("plan", "")).split("\n") if line.strip()]
    return [name, json.dumps(given, ensure_ascii=False)]


def changes(given: dict) -> list:  # type: ignore[type-arg]
    if "content" in given:
        return [f"+{line}" for line in str(given["content"]).split("\n")]
    edits = given.get("edits") or [given]
    return [
        f"{sign}{line}"
        for edit in edits
        for sign, key in (("-", "old_string"), ("+", "new_string"))
        for line in str(edit.get(key, "")).split("\n")
    ]


def asked(question: dict) -> list:  # type: ignore[type-arg]
    options = [f"- {option['label']}: {option.get('description', '')}" for option in question.get("options", ())]
    return [str(question["question"]), *options]


if __name__ == "__main__":
    main(sys.argv[1])
