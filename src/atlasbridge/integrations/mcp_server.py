"""`atlasbridge mcp`: an MCP server through which agents ask people.  stdio only; each question is a door of its own.

The few messages of the protocol are spoken here directly: a client does not wait long for a server, and importing the
protocol's own package costs more than a second of processor time.  That package's client judges this file in the tests.
`approve` answers in the form that Claude Code's --permission-prompt-tool wants.  Whatever goes wrong is a denial.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from typing import IO, TYPE_CHECKING, Any

from atlasbridge import __version__
from atlasbridge.core.errors import AtlasBridgeError

if TYPE_CHECKING:
    from atlasbridge.core.home import Home
    from atlasbridge.core.prompt.model import Prompt
    from atlasbridge.core.prompt.question import Handed, Question
    from atlasbridge.integrations.open_question import OpenQuestion

PROGRESS_S = 5.0  # clients give up on a call that says nothing for a minute or less
MAX_TTL_S = 86_400.0
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")  # the client says `initialize` first
ENVELOPE_VERSIONS = (
    "2026-07-28",
)  # each request carries its version, and `server/discover` takes the greeting's place
_META = "io.modelcontextprotocol/"
PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, BAD_PARAMS, BAD_VERSION = -32700, -32600, -32601, -32602, -32022
INSTRUCTIONS = (
    "Ask the person who runs this agent. Use ask_human when you need a decision or information that only a person has, "
    "and notify_human to tell them something without waiting."
)
NOT_A_YES = "Do not take this for a yes."

Json = dict[str, Any]


class BadArguments(ValueError):
    """The client called a tool with something that it does not take."""


class RpcError(Exception):
    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.body: Json = {"code": code, "message": message} | ({"data": data} if data is not None else {})


def _tool(name: str, about: str, properties: Json, required: tuple[str, ...]) -> Json:
    # asking changes nothing: clients that ask before each tool that might change something need not ask before asking
    hints = {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": False}
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"name": name, "description": about, "inputSchema": schema, "annotations": hints}


_TTL = {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_TTL_S, "description": "How many seconds to wait"}
TOOLS: tuple[Json, ...] = (
    _tool(
        "ask_human",
        "Ask a person and wait for the answer. Without choices and free_text it is a yes-or-no question.",
        {
            "question": {"type": "string", "description": "The question, with all that is needed to answer it"},
            "choices": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Two or more answers to choose from",
            },
            "free_text": {"type": "boolean", "default": False, "description": "Whether own words are an answer"},
            "ttl_s": _TTL,
        },
        ("question",),
    ),
    _tool(
        "notify_human",
        "Tell the person something without waiting for an answer.",
        {"message": {"type": "string", "description": "What to tell them"}},
        ("message",),
    ),
    _tool(
        "approve",
        "Whether the agent may use a tool: for --permission-prompt-tool mcp__atlasbridge__approve.",
        {
            "tool_name": {"type": "string"},
            "input": {"type": "object"},
            "tool_use_id": {"type": "string"},
            "ttl_s": _TTL,
        },
        ("tool_name", "input"),
    ),
)


class Arguments:
    """What a tool was called with; a value of another kind is named in the error."""

    def __init__(self, given: Any) -> None:
        if not isinstance(given, dict):
            raise BadArguments("the arguments must be an object")
        self._given: Json = {name: value for name, value in given.items() if value is not None}

    def get(self, name: str, kind: type, what: str, default: Any = None) -> Any:
        if name not in self._given:
            if default is None:
                raise BadArguments(f"{name!r} is missing")
            return default
        value = self._given[name]
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            raise BadArguments(f"{name!r} must be {what}")
        return value

    def text(self, name: str) -> str:
        return str(self.get(name, str, "a text"))

    def texts(self, name: str) -> tuple[str, ...]:
        found = self.get(name, list, "a list of texts", [])
        if not all(isinstance(one, str) for one in found):
            raise BadArguments(f"{name!r} must be a list of texts")
        return tuple(found)

    def ttl_s(self) -> float | None:
        if "ttl_s" not in self._given:
            return None
        value = self._given["ttl_s"]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_TTL_S:
            raise BadArguments(f"'ttl_s' must be a number of seconds, more than 0 and at most {MAX_TTL_S:.0f}")
        return float(value)


class Call:
    """One call of a tool, under way in a thread of its own."""

    def __init__(self, server: McpServer, request_id: Any, params: Json, label: str, elicits: bool) -> None:
        self._server = server
        self.key = json.dumps(request_id)
        self.request_id = request_id
        self._params = params
        self.label = label
        self.elicits = elicits  # the client can show a form of its own to its person
        meta = params.get("_meta")
        self.progress_token = meta.get("progressToken") if isinstance(meta, dict) else None
        self.is_modern = _version_of(params) in ENVELOPE_VERSIONS
        self._lock = threading.Lock()
        self._open_question: OpenQuestion | None = None
        self.canceled = False
        self._elicited = ""

    def cancel(self) -> None:
        """The client does not want to know any more: the question goes, and no answer is sent."""
        with self._lock:
            self.canceled = True
            open_question = self._open_question
        if open_question is not None:
            open_question.withdraw()

    def run(self) -> None:
        told, is_error = "It failed for a reason that this server wrote to its standard error.", True
        try:
            told, is_error = self._work(), False
        except BadArguments as error:
            told = f"{error}."
        except AtlasBridgeError as error:
            told = _sentence(error)
        except OSError as error:
            told = f"{error}."
        finally:  # whatever happened, the client hears something: otherwise it would wait for ever
            self._server.finish(self, {"content": [{"type": "text", "text": told}], "isError": is_error})

    def _work(self) -> str:
        given = Arguments(self._params.get("arguments") or {})
        match self._params.get("name"):
            case "ask_human":
                return self._ask_human(given)
            case "notify_human":
                return self._notify(given.text("message"))
        return self._approve(given)

    def _ask_human(self, given: Arguments) -> str:
        from atlasbridge.core.prompt.question import Question

        choices, free_text = given.texts("choices"), bool(given.get("free_text", bool, "true or false", False))
        asked = Question(given.text("question"), choices, free_text, folder=os.getcwd())
        handed, words = self._ask(asked, given.ttl_s(), self._form(asked) if self.elicits else None)
        if self._elicited:
            return self._elicited
        if timed_out(handed):
            return f"Nobody answered in time. {NOT_A_YES}"
        return words if handed.outcome == "answered" else f"The question was withdrawn. {NOT_A_YES}"

    def _approve(self, given: Arguments) -> str:
        from atlasbridge.integrations.tool_use import question_of

        try:
            arguments: Json = given.get("input", dict, "an object")
            asked = question_of(given.text("tool_name"), arguments, os.getcwd())
            handed, words = self._ask(asked, given.ttl_s())
        except AtlasBridgeError as error:
            return deny(f"Nobody could be asked: {_sentence(error)}")
        except (BadArguments, OSError) as error:
            return deny(f"Nobody could be asked: {error}.")
        return verdict(handed, words, asked, arguments)

    def _notify(self, message: str) -> str:
        from atlasbridge.core.daemon.request import HubClient
        from atlasbridge.core.daemon.starter import ensure_hub

        ensure_hub(self._server.home)
        with HubClient(self._server.home) as hub:
            hub.ask("notify", message=message, label=self.label)
        return "Told."

    def _ask(self, question: Question, ttl_s: float | None, form: Json | None = None) -> tuple[Handed, str]:
        """With a sign of life now and then; a cancelled call withdraws its question."""
        from atlasbridge.core.prompt.question import Handed, prompt_of, words_of
        from atlasbridge.core.system import own_parent
        from atlasbridge.integrations.caller_label import Origin
        from atlasbridge.integrations.open_question import OpenQuestion

        prompt: Prompt = prompt_of(question)
        origin = Origin("mcp", self.label, ("atlasbridge", "mcp"), os.getcwd(), asker=own_parent())
        open_question = OpenQuestion(self._server.home, origin)
        with self._lock:
            if self.canceled:
                return Handed("withdrawn"), ""
            self._open_question = open_question
        over = threading.Event()
        threading.Thread(target=self._show_life, args=(over, ttl_s), name="progress", daemon=True).start()
        form_key = self._server.elicit(form, self._take_form) if form else ""
        try:
            handed = open_question.ask(prompt, ttl_s)
        finally:
            over.set()
            if form_key:
                self._server.forget_form(form_key)
        return handed, words_of(prompt, handed.answer) if handed.answer is not None else ""

    def _show_life(self, over: threading.Event, ttl_s: float | None) -> None:
        waited_s = 0.0
        while self.progress_token is not None and not over.wait(PROGRESS_S):
            waited_s += PROGRESS_S
            params: Json = {"progressToken": self.progress_token, "progress": waited_s}
            params |= {"message": "waiting for a person"} | ({"total": ttl_s} if ttl_s else {})
            self._server.notify("notifications/progress", params)

    def _form(self, asked: Question) -> Json:
        """The same question as a form of the client, where it has forms: the person may sit right there."""
        field: Json = {"type": "string", "title": "Answer"}
        if not asked.takes_text:
            field["enum"] = list(asked.choices or ("yes", "no"))
        elif asked.choices:
            field["description"] = "One of these, or your own words: " + ", ".join(asked.choices)
        schema = {"type": "object", "properties": {"answer": field}, "required": ["answer"]}
        return {"message": asked.text, "requestedSchema": schema}

    def _take_form(self, result: Json) -> None:
        """Only a form that was filled in is an answer; one that was closed leaves the question open elsewhere."""
        content = result.get("content")
        answer = content.get("answer") if result.get("action") == "accept" and isinstance(content, dict) else None
        with self._lock:
            open_question = self._open_question
            if isinstance(answer, str) and answer and open_question is not None:
                self._elicited = answer
        if self._elicited and open_question is not None:
            open_question.withdraw()


def timed_out(handed: Handed) -> bool:
    """Also where the timer handed over the refusing choice: nobody has said no."""
    from atlasbridge.core.prompt.answer_text import TIMER

    return handed.outcome == "expired" or handed.by == TIMER


def verdict(handed: Handed, words: str, asked: Question, arguments: Mapping[str, Any]) -> str:
    """Only the choice that allows allows; own words deny and say why."""
    if timed_out(handed):
        return deny("Nobody answered in time, so this was not allowed. You can ask again.")
    if handed.answer is None:
        return deny("The question was withdrawn before anybody answered.")
    if words == asked.choices[0]:
        return json.dumps({"behavior": "allow", "updatedInput": arguments})
    if words not in asked.choices:
        return deny(words)
    if handed.by.startswith("rule:"):
        return deny(f"The rule {handed.by.removeprefix('rule:')!r} does not allow this.")
    return deny("The person said no.")


def deny(message: str) -> str:
    return json.dumps({"behavior": "deny", "message": message})


def _sentence(error: AtlasBridgeError) -> str:
    return f"{error}." + (f" {error.hint}" if error.hint else "")


def _version_of(params: Mapping[str, Any]) -> str:
    meta = params.get("_meta")
    return str(meta.get(f"{_META}protocolVersion", "")) if isinstance(meta, dict) else ""


class McpServer:
    """Reads requests from one stream and answers on another, until the first one ends."""

    def __init__(self, home: Home, out: IO[bytes], label: str = "") -> None:
        self.home = home
        self._out = out
        self._label = label
        self._client = ""
        self._elicits = False
        self._writing = threading.Lock()
        self._lock = threading.Lock()
        self._calls: dict[str, Call] = {}
        self._threads: list[threading.Thread] = []
        self._forms: dict[str, Callable[[Json], None]] = {}
        self._form_count = 0

    def run(self, source: IO[bytes]) -> None:
        for line in source:
            if line.strip():
                self._hear(line)
        with self._lock:
            left = list(self._calls.values())
        for call in left:  # the client is gone: its questions go with it
            call.cancel()
        for thread in self._threads:
            thread.join()

    def _hear(self, line: bytes) -> None:
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            return self._send({"id": None, "error": {"code": PARSE_ERROR, "message": "this is no JSON"}})
        for message in said if isinstance(said, list) else [said]:  # the version of 2025-03-26 has batches
            self._take(message)
        return None

    def _take(self, message: Any) -> None:
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return self._send({"id": None, "error": {"code": INVALID_REQUEST, "message": "this is no JSON-RPC 2.0"}})
        method, params = message.get("method"), message.get("params") or {}
        if method is None:
            return self._take_answer(message)
        if "id" not in message:
            return self._take_notice(str(method), params)
        try:
            if not isinstance(params, dict):
                raise RpcError(BAD_PARAMS, "the parameters must be an object")
            result = self._perform(str(method), params, message["id"])
        except RpcError as error:
            return self._send({"id": message["id"], "error": error.body})
        if result is not None:
            self._send({"id": message["id"], "result": result})
        return None

    def _perform(self, method: str, params: Json, request_id: Any) -> Json | None:
        """The result; None: it comes later, from a thread."""
        version = _version_of(params)
        if version and version not in ENVELOPE_VERSIONS:
            known = [*HANDSHAKE_VERSIONS, *ENVELOPE_VERSIONS]
            raise RpcError(BAD_VERSION, f"version {version} is not known", {"supported": known, "requested": version})
        match method:
            case "initialize":
                return self._initialize(params)
            case "server/discover":
                about = {"capabilities": {"tools": {}}, "instructions": INSTRUCTIONS}
                return _stamped(about | {"supportedVersions": list(ENVELOPE_VERSIONS)})
            case "ping":
                return {}
            case "tools/list":
                return _stamped({"tools": list(TOOLS)}) if version else {"tools": list(TOOLS)}
            case "tools/call":
                self._call(params, request_id)
                return None
        raise RpcError(UNKNOWN_METHOD, f"{method} is not offered here")

    def _initialize(self, params: Json) -> Json:
        wanted = params.get("protocolVersion")
        self._client = _name_of(params.get("clientInfo"))
        capabilities = params.get("capabilities")
        self._elicits = isinstance(capabilities, dict) and isinstance(capabilities.get("elicitation"), dict)
        return {
            "protocolVersion": wanted if wanted in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
            "capabilities": {"tools": {}},
            "serverInfo": _own_name(),
            "instructions": INSTRUCTIONS,
        }

    def _call(self, params: Json, request_id: Any) -> None:
        if params.get("name") not in {tool["name"] for tool in TOOLS}:
            raise RpcError(BAD_PARAMS, f"there is no tool {params.get('name')!r}")
        meta = params.get("_meta")
        client = _name_of(meta.get(f"{_META}clientInfo")) if isinstance(meta, dict) else ""
        label = self._label or client or self._client or "an MCP client"
        call = Call(self, request_id, params, label, self._elicits)
        with self._lock:
            if call.key in self._calls:
                raise RpcError(INVALID_REQUEST, "this id is in use")
            self._calls[call.key] = call
        thread = threading.Thread(target=call.run, name="call", daemon=True)
        self._threads = [*(one for one in self._threads if one.is_alive()), thread]
        thread.start()

    def finish(self, call: Call, result: Json) -> None:
        with self._lock:
            self._calls.pop(call.key, None)
        if not call.canceled:
            self._send({"id": call.request_id, "result": _stamped(result, cached=False) if call.is_modern else result})

    def _take_notice(self, method: str, params: Any) -> None:
        if method == "notifications/initialized":
            threading.Thread(target=_warm_up, name="warm-up", daemon=True).start()
        if method == "notifications/cancelled" and isinstance(params, dict):
            with self._lock:
                call = self._calls.get(json.dumps(params.get("requestId")))
            if call is not None:
                call.cancel()

    def _take_answer(self, message: Json) -> None:
        with self._lock:
            take = self._forms.pop(str(message.get("id")), None)
        if take is not None and isinstance(message.get("result"), dict):
            take(message["result"])

    def elicit(self, form: Json, take: Callable[[Json], None]) -> str:
        with self._lock:
            self._form_count += 1
            key = f"form-{self._form_count}"
            self._forms[key] = take
        self._send({"id": key, "method": "elicitation/create", "params": form})
        return key

    def forget_form(self, key: str) -> None:
        """It was answered elsewhere: the client may close its form."""
        with self._lock:
            is_open = self._forms.pop(key, None) is not None
        if is_open:
            self.notify("notifications/cancelled", {"requestId": key, "reason": "answered elsewhere"})

    def notify(self, method: str, params: Json) -> None:
        self._send({"method": method, "params": params})

    def _send(self, message: Json) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False, separators=(",", ":"))
        try:
            with self._writing:
                self._out.write(line.encode("utf-8", "replace") + b"\n")
                self._out.flush()
        except (OSError, ValueError):
            pass  # the client is gone: its input ends as well


def _stamped(result: Json, cached: bool = True) -> Json:
    """As the version with an envelope for each request wants its results."""
    keeping = {"ttlMs": 3_600_000, "cacheScope": "public"} if cached else {}
    return {**result, **keeping, "resultType": "complete", "_meta": {f"{_META}serverInfo": _own_name()}}


def _own_name() -> Json:
    return {"name": "atlasbridge", "version": __version__}


def _name_of(info: Any) -> str:
    """The client's own name for itself; it is shown, never believed."""
    return f"{info.get('name', '')} {info.get('version', '')}".strip() if isinstance(info, dict) else ""


def _warm_up() -> None:
    """While the client thinks: the first question need not wait for imports."""
    import atlasbridge.core.prompt.question
    import atlasbridge.integrations.open_question  # noqa: F401
