"""`atlasbridge acp -- AGENT`: a proxy between an editor and its agent that passes everything through, byte for byte.

A permission request of the agent goes to the editor and to the hub. The first answer wins: the other side's request is
cancelled, and its later answer is dropped.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from typing import IO, Any

from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.home import Home
from atlasbridge.core.peer import session_limits
from atlasbridge.core.prompt.model import Answer, Choice, Prompt, SubjectKind
from atlasbridge.core.prompt.question import (
    MAX_QUESTION,
    BadQuestion,
    Question,
    about_tool,
    beside_command,
    prompt_of,
)
from atlasbridge.core.values import frozen, replace
from atlasbridge.integrations.caller_label import Origin
from atlasbridge.integrations.open_question import OpenQuestion

# A permission request of the Agent Client Protocol: parsed as a prompt, and answered as its JSON-RPC response. Pure. A
# message that cannot be parsed passes to the editor unchanged.

_KINDS = {  # the protocol's kinds of tool calls; without one the kind is unknown
    "execute": SubjectKind.COMMAND,
    "edit": SubjectKind.EDIT,
    "fetch": SubjectKind.FETCH,
    "switch_mode": SubjectKind.PLAN,
}

_OF_A_CALL = ("title", "kind", "rawInput", "content")
WHOLE = "arguments are whole"  # what is kept of a call besides
MOST_CALLS = 50
LONGEST_DIFF = 200_000


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
        """Tells the editor to close its dialog."""
        return _line({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": json.loads(self.key)}})


def read_message(line: bytes) -> Any:
    """Parse a line; None if that fails for any reason."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


class AcpSessions:
    """What editor and agent have said so far: the folder of each session, and its tool calls, of which a permission
    request repeats only what changed."""

    def __init__(self) -> None:
        self._opening: dict[str, str] = {}  # the folder, by the id of the request
        self.folders: dict[str, str] = {}
        self._calls: dict[tuple[str, str], Mapping[str, Any]] = {}

    def hear_editor(self, line: bytes) -> None:
        """A session is opened, by an id of its own or by one that the agent answers."""
        message = read_message(line)
        try:
            params, folder = message["params"], str(message["params"]["cwd"])
            if str(message["method"]).startswith("session/") and folder.startswith("/"):
                self._opening[json.dumps(message["id"])] = folder
                self.folders[str(params.get("sessionId", ""))] = folder
        except (KeyError, TypeError, AttributeError):
            return

    def hear_agent(self, line: bytes) -> None:
        if self._opening and b"sessionId" in line:
            self._hear_opened(line)
        if TOOL_CALL in line:
            self._hear_call(line)

    def _hear_opened(self, line: bytes) -> None:
        message = read_message(line)
        if isinstance(message, dict) and "method" not in message and isinstance(message.get("result"), dict):
            folder = self._opening.pop(json.dumps(message.get("id")), "")
            if folder and "sessionId" in message["result"]:
                self.folders[str(message["result"]["sessionId"])] = folder

    def _hear_call(self, line: bytes) -> None:
        message = read_message(line)
        try:
            update = message["params"]["update"]
            if message["method"] == "session/update" and update["sessionUpdate"] in ("tool_call", "tool_call_update"):
                session = str(message["params"]["sessionId"])
                merged = self.merge(session, update)
                if update.get("rawInput"):  # until a call runs, its arguments can be a beginning
                    merged = {**merged, WHOLE: update.get("status") == "in_progress"}
                self._calls.pop((session, str(update["toolCallId"])), None)
                if update.get("status") not in ("completed", "failed"):
                    self._calls[session, str(update["toolCallId"])] = merged
        except (KeyError, TypeError, AttributeError):
            return
        for oldest in list(self._calls)[:-MOST_CALLS]:
            del self._calls[oldest]

    def merge(self, session: str, call: Mapping[str, Any]) -> Mapping[str, Any]:
        known = self._calls.get((session, str(call.get("toolCallId"))), {})
        return {**known, **{name: call[name] for name in _OF_A_CALL if call.get(name)}}


def read_permission(line: bytes, sessions: AcpSessions | None = None) -> Permission | None:
    message, known = read_message(line), sessions or AcpSessions()
    try:
        params = message["params"]
        if message["method"] != "session/request_permission" or "id" not in message:
            return None
        options = [(str(item["optionId"]), _name_of(item), str(item.get("kind", ""))) for item in params["options"]]
        session, own = str(params.get("sessionId")), params.get("toolCall") or {}
        folder = known.folders.get(session, "")
        call = known.merge(session, own)
        is_newest = bool(own.get("rawInput")) or (call.get(WHOLE) is True and not own.get("content"))
        prompt = _prompt(call, is_newest, folder, options)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, BadQuestion):
        return None
    return Permission(json.dumps(message["id"]), tuple(option for option, _, _ in options), prompt)


def _name_of(option: Mapping[str, Any]) -> str:
    """A label for people; some agents have only the protocol's word, such as allow_once."""
    name = str(option["name"])
    return name.replace("_", " ").capitalize() if name == option.get("kind") else name


def canceled_key(line: bytes) -> str:
    """The key of the request that this line cancels; "" if it cancels none."""
    message = read_message(line)
    if not isinstance(message, dict) or message.get("method") != "$/cancel_request" or "id" in message:
        return ""
    params = message.get("params")
    return json.dumps(params["requestId"]) if isinstance(params, dict) and "requestId" in params else ""


def _prompt(call: Mapping[str, Any], is_newest: bool, folder: str, options: list[tuple[str, str, str]]) -> Prompt:
    """`is_newest`: these are all arguments: the request itself has them, or the agent named them while the call ran.
    Others can be a beginning, so no rule can use them."""
    title = str(call.get("title") or call.get("kind") or "The agent asks for a permission")
    arguments = call.get("rawInput")
    content = [item for item in call.get("content") or () if isinstance(item, Mapping)]
    changes = [item for item in content if item.get("type") == "diff"]
    texts = [str(item["content"]["text"]) for item in content if item.get("content", {}).get("type") == "text"]
    known = _KINDS.get(str(call.get("kind")), SubjectKind.TOOL)
    if isinstance(arguments, Mapping) and arguments:
        kind, about, target = about_tool(arguments, known)
        others = {name: value for name, value in arguments.items() if (name, value) != ("cwd", folder)}
        beside = [beside_command(kind, others), *([] if is_newest else [*map(_change, changes), *texts])]
    elif len(changes) == 1:
        kind, about, target = SubjectKind.EDIT, _change(changes[0]), str(changes[0]["path"])
        beside, is_newest = texts, True
    else:
        kind, about, target = SubjectKind.QUESTION, "\n".join([title, *texts, *map(_change, changes)]), ""
        beside, is_newest = [], True
    said = about if about.startswith(title) else f"{title}\n{about}"
    more = "\n\n".join(filter(None, beside))
    question = Question(
        text=_cut(f"{said}\n\n{more}" if more else said),
        choices=_labels([name for _, name, _ in options]),
        about=_cut(about),
        target=target,
        folder=folder,
        complete=is_newest and not more and len(said) <= MAX_QUESTION,
        kind=kind,
    )
    prompt = prompt_of(question)
    return replace(prompt, choices=tuple(map(_of_kind, prompt.choices, (kind for _, _, kind in options))))


def _change(diff: Mapping[str, Any]) -> str:
    """A change of a file, as the agent describes it: the lines that differ, or all new ones where that takes long."""
    before, after, path = str(diff.get("oldText") or ""), str(diff["newText"]), str(diff["path"])
    if len(before) + len(after) > LONGEST_DIFF:
        return f"{path}\n{after}"
    from difflib import unified_diff

    lines = unified_diff(before.split("\n") if before else [], after.split("\n"), path, path, lineterm="")
    return "\n".join(lines)


def _cut(text: str) -> str:
    """A question that is too long is asked all the same, and says what is missing."""
    if len(text) <= MAX_QUESTION:
        return text
    kept = text[: MAX_QUESTION - 100]
    return f"{kept}\n… {len(text) - len(kept):,} more characters are not shown here: look at them in your editor."


def _labels(names: list[str]) -> tuple[str, ...]:
    """Make the names unique, as choices need it."""
    return tuple(name if names.count(name) == 1 else f"{name} ({at})" for at, name in enumerate(names, 1))


def _of_kind(choice: Choice, kind: str) -> Choice:
    """The protocol says what an option does, even if its label does not."""
    if not kind:
        return choice
    return replace(choice, refuses=kind.startswith("reject"), always=kind.endswith("always"))


def _line(message: dict[str, Any]) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


ASKS = b"session/request_permission"
CANCELS = b"cancel_request"
TOOL_CALL = b'"tool_call'
OPENS = b'"cwd"'
FORWARDED = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGINT") if hasattr(signal, name))

NewQuestion = Callable[[Origin], OpenQuestion]


class _Side:
    """An output side: writes whole lines, one at a time, from any thread."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def write(self, line: bytes) -> None:
        try:
            with self._lock:
                self._stream.write(line)
                self._stream.flush()
        except (OSError, ValueError):
            pass  # that side is gone; its own pump ends the proxy


class AcpProxy:
    def __init__(self, to_editor: IO[bytes], to_agent: IO[bytes], origin: Origin, new_question: NewQuestion) -> None:
        self._to_editor = _Side(to_editor)
        self._to_agent = _Side(to_agent)
        self._origin = origin
        self._new_question = new_question
        # one winner; never held while writing, because a side that does not read would block both
        self._lock = threading.Lock()
        self._pending: dict[str, OpenQuestion] = {}
        self._sessions = AcpSessions()
        self._asking: list[threading.Thread] = []
        self._settled: set[str] = set()  # answered by the hub: the editor's answer is too late

    def from_agent(self, line: bytes) -> None:
        """Pass a line of the agent on, and also ask the hub about a permission request."""
        if CANCELS in line:
            self._take_back(canceled_key(line))
        self._sessions.hear_agent(line)
        permission = read_permission(line, self._sessions) if ASKS in line else None
        if permission is None:
            self._to_editor.write(line)
            return
        open_question = self._new_question(self._origin)
        with self._lock:
            before = self._pending.get(permission.key)
            self._pending[permission.key] = open_question
        if before is not None:
            before.withdraw()
        self._to_editor.write(line)
        asking = threading.Thread(target=self._ask, args=(permission, open_question), name="permission", daemon=True)
        self._asking = [*(other for other in self._asking if other.is_alive()), asking]
        asking.start()

    def _take_back(self, key: str) -> None:
        """The agent has cancelled its request, so the question is withdrawn."""
        with self._lock:
            pending = self._pending.pop(key, None)
        if pending is not None:
            pending.withdraw()

    def from_editor(self, line: bytes) -> None:
        """Pass a line of the editor on, unless the hub has already answered that request."""
        if OPENS in line:
            self._sessions.hear_editor(line)
        with self._lock:
            key = _answered_key(line) if self._pending or self._settled else ""
            if key in self._settled:
                self._settled.discard(key)
                return
            pending = self._pending.pop(key, None)
        self._to_agent.write(line)
        if pending is not None:
            pending.withdraw()

    def withdraw_all(self) -> None:
        """The agent has ended: withdraw all open questions."""
        with self._lock:
            left, self._pending = list(self._pending.values()), {}
        for pending in left:
            pending.withdraw()

    def wait_for_integrations(self) -> None:
        """Wait until the hub has received every withdrawal."""
        for asking in self._asking:
            asking.join()

    def _ask(self, permission: Permission, open_question: OpenQuestion) -> None:
        try:
            handed = open_question.ask(permission.prompt)
        except AtlasBridgeError:
            return  # no hub is available; the editor has the question
        with self._lock:
            if handed.answer is None or self._pending.get(permission.key) is not open_question:
                return  # no answer, the editor was first, or the agent asked again with the same id
            del self._pending[permission.key]
            self._settled.add(permission.key)
        self._to_agent.write(permission.answer_line(handed.answer))
        self._to_editor.write(permission.cancel_line())


def _answered_key(line: bytes) -> str:
    """The id of the request that this line answers; "" if it is not an answer."""
    message = read_message(line)
    if not isinstance(message, dict) or "method" in message or "id" not in message:
        return ""
    return json.dumps(message["id"])


def _mark_agent() -> Callable[[], None] | None:
    """What the agent leaves behind stays known as the program that asks."""
    limits = session_limits()
    if not limits:
        return None
    import resource

    def mark() -> None:
        for number, value in limits:
            resource.setrlimit(number, (value, value))

    return mark


def serve(home: Home, command: list[str], editor_in: IO[bytes], editor_out: IO[bytes], label: str = "") -> int:
    """Run the agent until it ends; returns its exit status."""
    try:
        agent: subprocess.Popen[bytes] = subprocess.Popen(  # there is no other thread yet
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, preexec_fn=_mark_agent()
        )
    except OSError as error:
        raise AtlasBridgeError(f"cannot start {command[0]}: {error.strerror}", "is it installed and on the PATH?")
    assert agent.stdin is not None and agent.stdout is not None
    origin = Origin("acp", label or os.path.basename(command[0]), tuple(command), os.getcwd())
    proxy = AcpProxy(editor_out, agent.stdin, origin, lambda asker: OpenQuestion(home, asker))
    for number in FORWARDED:
        signal.signal(number, lambda received, _: agent.send_signal(received))
    editor = threading.Thread(target=_pump_editor, args=(editor_in, agent.stdin, proxy), name="editor", daemon=True)
    editor.start()
    with os.fdopen(os.dup(agent.stdout.fileno()), "rb") as lines:
        for line in lines:
            proxy.from_agent(line)
    proxy.withdraw_all()
    proxy.wait_for_integrations()
    status = agent.wait()
    return status if status >= 0 else 128 - status


def _pump_editor(editor_in: IO[bytes], to_agent: IO[bytes], proxy: AcpProxy) -> None:
    for line in editor_in:
        proxy.from_editor(line)
    try:
        to_agent.close()  # the editor is gone: close the agent's input, as without the proxy
    except OSError:
        pass
