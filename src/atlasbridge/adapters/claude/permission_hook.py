"""Claude Code's PermissionRequest hook: sends the complete request to the session host. It runs as a separate script.

It decides nothing: it prints the host's decision, or nothing, and then the dialog stays. With `answers` it waits for
the decision while the dialog is shown; without, it exits at once. It always exits with success, also if the session is
gone. It uses the standard library and `core.peer`, and runs with `python -I -S`.
"""

import json
import os
import select
import socket
import sys

PACKAGES = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))  # `-I -S` leaves them out
TIMEOUT_S = 1.0
PORT_S = 3.0
NUMBER = 32  # bytes of each random number and of each proof
LOOK_S = 5.0  # how often it checks that Claude Code still runs
WAITS_S = 3600.0  # after this time, only the keys answer
LINE_LIMIT = 65536
TEXT_LIMIT = 20_000
NOTE_LIMIT = 1000  # characters of the tool's note about a command
APPS = ("qwen", "codex")  # other tools with such a hook
# Qwen Code uses different names for the same tools.
ALSO = {
    "run_shell_command": "Bash",
    "write_file": "Write",
    "edit": "Edit",
    "web_fetch": "WebFetch",
    "ask_user_question": "AskUserQuestion",
    "exit_plan_mode": "ExitPlanMode",
}
NAMES = {"WebFetch": "Fetch", "ExitPlanMode": "Plan", "AskUserQuestion": "Question"}
REFUSED = "A person refused this."
EDITS = ("Edit", "MultiEdit", "Write", "NotebookEdit")
PATCH = "apply_patch"  # Codex: one or several files
PATCHES = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")


def main(attach_socket: str, answers: bool = False, app: str = "claude-code") -> None:
    try:
        message = tell(json.loads(sys.stdin.buffer.read()), app)
        line = json.dumps({"m": "structured", "answers": answers, **message}).encode() + b"\n"
        with reach(attach_socket) as connection:
            connection.sendall(line)
            said = hear(connection) if answers else wait_until_heard(connection)
        if said.get("behavior"):
            print(json.dumps(decision(said)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return  # no session, or a hook of another version: the screen decides


def reach(attach_socket: str) -> socket.socket:
    """Connect to the session's socket; without one, to its port with the key from the file."""
    port = os.path.splitext(attach_socket)[0] + ".tcp"
    if not hasattr(socket, "AF_UNIX") or os.path.exists(port):
        return reach_port(port)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(TIMEOUT_S)
    connection.connect(attach_socket)
    sys.path.append(PACKAGES)
    from atlasbridge.core.peer import prove_above

    prove_above(connection)  # raises OSError: another program listens in the place of the session's host
    return connection


def reach_port(place: str) -> socket.socket:
    """Both ends prove that they have the key before any data is sent, the session first."""
    import hmac  # imported only here: a tool waits for its hook

    with open(place, encoding="ascii") as file:
        port, key = file.read().split()
    connection = socket.create_connection(("127.0.0.1", int(port)), PORT_S)
    ours = os.urandom(NUMBER)
    connection.sendall(ours)
    theirs, proof = receive(connection, NUMBER), receive(connection, NUMBER)
    if not hmac.compare_digest(proof, prove(b"hub", port, key, ours + theirs)):
        raise OSError("another program has the session's port")
    connection.sendall(prove(b"peer", port, key, ours + theirs))
    return connection


def prove(who: bytes, port: str, key: str, numbers: bytes) -> bytes:
    import hmac

    words = b"\0".join((b"atlasbridge", who, port.encode(), numbers))
    return hmac.digest(bytes.fromhex(key), words, "sha256")


def receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise OSError("the session hung up")
        data += more
    return data


def wait_until_heard(connection: socket.socket) -> dict:  # type: ignore[type-arg]
    """Wait, because the session asks the kernel who the peer is, so the process must still exist."""
    connection.shutdown(socket.SHUT_WR)
    while connection.recv(LINE_LIMIT):
        pass
    return {}


def hear(connection: socket.socket) -> dict:  # type: ignore[type-arg]
    """Return the host's decision; {} if the dialog has ended, the host is gone, or after a timeout."""
    began, heard = parent(), b""
    for _ in range(int(WAITS_S / LOOK_S)):
        ready, _, _ = select.select([connection], [], [], LOOK_S)
        if parent() != began:
            return {}
        if not ready:
            continue
        data = connection.recv(LINE_LIMIT)
        heard = (heard + data)[-LINE_LIMIT:]
        *lines, heard = heard.split(b"\n")
        for message in map(json.loads, lines):
            if message.get("m") in ("decide", "over", "ended"):
                return dict(message)
        if not data:
            return {}
    return {}


def parent() -> int:
    """The parent's pid; it changes when Claude Code has exited. On Windows it never changes, so the end of the session
    counts."""
    return os.getppid() if os.name != "nt" else 0


def decision(said: dict) -> dict:  # type: ignore[type-arg]
    """The decision in Claude Code's format. A refusal ends the turn, as the dialog's own No does. A refusal with a
    reason tells the reason to the model, which continues."""
    why = str(said.get("reason", ""))
    refused = {"behavior": "deny", "message": why or REFUSED, "interrupt": not why}
    behaviour = {"behavior": "allow"} if said["behavior"] == "allow" else refused
    return {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": behaviour}}


def tell(payload: dict, app: str = "claude-code") -> dict:  # type: ignore[type-arg]
    """The message to the host: the kind of dialog, a short name for it, and its subject."""
    tool, given = str(payload["tool_name"]), dict(payload["tool_input"])
    tool, folder = ALSO.get(tool, tool), str(payload.get("cwd") or "")
    kind, text, target = about(tool, given, folder)
    subject = {
        "kind": kind,
        "text": text[:TEXT_LIMIT],
        "target": target,
        "folder": folder,
        "source": "hook",
        "complete": len(text) <= TEXT_LIMIT and (tool == PATCH or "\n" not in target),
    }
    return {
        "kind": "question" if kind == "question" else "permission",
        "text": NAMES.get(tool, tool),
        "source": f"{app} (PermissionRequest hook)",
        "subject": subject,
        "note": str(given.get("description") or "")[:NOTE_LIMIT] if tool == "Bash" else "",
        "missing_lines": text[TEXT_LIMIT:].count("\n") + 1 if len(text) > TEXT_LIMIT else 0,
    }


def about(tool: str, given: dict, folder: str) -> tuple:  # type: ignore[type-arg]
    """Return the kind of subject, its complete text, and the file or address that it is about."""
    if tool == PATCH:
        return "edit", str(given["command"]), "\n".join(patched(str(given["command"]), folder))
    if tool == "Bash":
        return "command", str(given["command"]), ""
    if tool in EDITS:
        return "edit", "\n".join(changes(given)), str(given.get("file_path") or given.get("notebook_path"))
    if tool == "WebFetch":
        return "fetch", str(given["url"]), str(given["url"])
    if tool == "AskUserQuestion":
        return "question", "\n".join(line for question in given["questions"] for line in asked(question)), ""
    if tool == "ExitPlanMode":
        return "plan", str(given.get("plan", "")), ""
    return "tool", json.dumps(given, ensure_ascii=False), tool


def changes(given: dict) -> list:  # type: ignore[type-arg]
    if "content" in given:
        return [f"+{line}" for line in str(given["content"]).split("\n")]
    if "new_source" in given:
        return [f"+{line}" for line in str(given["new_source"]).split("\n")]
    edits = given.get("edits") or [given]
    return [
        f"{sign}{line}"
        for edit in edits
        for sign, key in (("-", "old_string"), ("+", "new_string"))
        for line in str(edit.get(key, "")).split("\n")
    ]


def patched(patch: str, folder: str) -> list:  # type: ignore[type-arg]
    """Every file that the patch creates, changes, removes or moves, one per line."""
    lines = [(line, mark) for line in patch.split("\n") for mark in PATCHES if line.startswith(mark)]
    return sorted({os.path.normpath(os.path.join(folder, line[len(mark) :].strip())) for line, mark in lines})


def asked(question: dict) -> list:  # type: ignore[type-arg]
    options = [f"- {option['label']}: {option.get('description', '')}" for option in question.get("options", ())]
    return [str(question["question"]), *options]


if __name__ == "__main__":
    main(sys.argv[1], "answers" in sys.argv[2:], next((app for app in APPS if app in sys.argv[2:]), "claude-code"))
