"""The messages of the Model Context Protocol that AtlasBridge supports: its tools, their arguments and their results.

It imports little and does no I/O: `atlasbridge mcp` uses it on standard input and output, the page over HTTP. `approve`
answers in the format of Claude Code's --permission-prompt-tool. Every error is a denial.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from atlasbridge import __version__

if TYPE_CHECKING:
    from atlasbridge.core.prompt.question import Handed, Question

PROGRESS_S = 5.0  # clients give up on a call without progress after a minute or less
MAX_TTL_S = 86_400.0
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")  # the client sends `initialize` first
ENVELOPE_VERSIONS = ("2026-07-28",)  # each request contains its version; `server/discover` replaces the handshake
_META = "io.modelcontextprotocol/"
PARSE_ERROR, INVALID_REQUEST, UNKNOWN_METHOD, BAD_PARAMS, BAD_VERSION = -32700, -32600, -32601, -32602, -32022
INSTRUCTIONS = (
    "Ask the person who runs this agent. Use ask_human when you need a decision or information that only a person has, "
    "and notify_human to tell them something without waiting."
)
NOT_A_YES = "Do not take this for a yes."

Json = dict[str, Any]


class BadArguments(ValueError):
    """The client called a tool with invalid arguments."""


class RpcError(Exception):
    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.body: Json = {"code": code, "message": message} | ({"data": data} if data is not None else {})


def _tool(name: str, about: str, properties: Json, required: tuple[str, ...]) -> Json:
    # A question changes nothing. The hint tells clients that they need no confirmation before they ask one.
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
    """The arguments of a tool call. An error names the argument with the wrong type."""

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


def timed_out(handed: Handed) -> bool:
    """Also true if the timer chose the denial: then nobody said no."""
    from atlasbridge.core.prompt.answer import TIMER

    return handed.outcome == "expired" or handed.by == TIMER


def verdict(handed: Handed, words: str, asked: Question, arguments: Mapping[str, Any]) -> str:
    """Only the first choice allows. A reply in the person's own words denies and gives the reason."""
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


class ToolCall:
    """One call of a tool: what people are asked or told, and what the client is told of their answer."""

    def __init__(self, params: Mapping[str, Any], folder: str = "") -> None:
        from atlasbridge.core.prompt.question import Question, question_of

        self.tool, given = params.get("name"), Arguments(params.get("arguments") or {})
        self.message = ""
        self.question: Question | None = None  # None: a message, which nobody answers
        self.arguments: Json = {}
        if self.tool == "notify_human":
            self.message = given.text("message")
            return
        if self.tool == "approve":
            self.arguments = given.get("input", dict, "an object")
            self.question = question_of(given.text("tool_name"), self.arguments, folder)
        else:
            free_text = bool(given.get("free_text", bool, "true or false", False))
            self.question = Question(given.text("question"), given.texts("choices"), free_text, folder=folder)
        self.ttl_s = given.ttl_s()

    @property
    def form(self) -> Json | None:
        """The question as a form of the client. A permission is never asked for in one."""
        return form_of(self.question) if self.question and self.tool == "ask_human" else None

    def told(self, handed: Handed, words: str) -> str:
        if self.question and self.tool == "approve":
            return verdict(handed, words, self.question, self.arguments)
        return said(handed, words)


def failed(params: Mapping[str, Any], error: Exception) -> Json:
    """The result of a call that failed. For `approve` it is a denial."""
    hint = getattr(error, "hint", "")
    text = f"{error}." + (f" {hint}" if hint else "")
    if params.get("name") == "approve":
        return result_of(params, deny(f"Nobody could be asked: {text}"))
    return result_of(params, text, is_error=True)


def result_of(params: Mapping[str, Any], text: str, is_error: bool = False) -> Json:
    result: Json = {"content": [{"type": "text", "text": text}], "isError": is_error}
    return stamped(result, cached=False) if version_of(params) in ENVELOPE_VERSIONS else result


def progress_of(params: Mapping[str, Any], waited_s: float) -> Json | None:
    """The message that shows a client that its call is alive, if it wants any."""
    token = _meta(params).get("progressToken")
    told = {"progressToken": token, "progress": waited_s, "message": "waiting for a person"}
    return None if token is None else {"method": "notifications/progress", "params": told}


def deny(message: str) -> str:
    return json.dumps({"behavior": "deny", "message": message})


def version_of(params: Mapping[str, Any]) -> str:
    return str(_meta(params).get(f"{_META}protocolVersion", ""))


def _meta(params: Mapping[str, Any]) -> Json:
    meta = params.get("_meta")
    return meta if isinstance(meta, dict) else {}


def stamped(result: Json, cached: bool = True) -> Json:
    """The result format of the version with an envelope for each request."""
    keeping = {"ttlMs": 3_600_000, "cacheScope": "public"} if cached else {}
    return {**result, **keeping, "resultType": "complete", "_meta": {f"{_META}serverInfo": own_name()}}


def own_name() -> Json:
    return {"name": "atlasbridge", "version": __version__}


def name_of(info: Any) -> str:
    """The name that the client gives itself. It is only shown, never trusted."""
    return f"{info.get('name', '')} {info.get('version', '')}".strip() if isinstance(info, dict) else ""


def greet(params: Json) -> Json:
    """The answer to `initialize`."""
    wanted = params.get("protocolVersion")
    return {
        "protocolVersion": wanted if wanted in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
        "capabilities": {"tools": {}},
        "serverInfo": own_name(),
        "instructions": INSTRUCTIONS,
    }


def elicits(params: Json) -> bool:
    """Whether the client that sends `initialize` can show a form to its person."""
    capabilities = params.get("capabilities")
    return isinstance(capabilities, dict) and isinstance(capabilities.get("elicitation"), dict)


def answer_at_once(method: str, params: Json) -> Json:
    """Answers requests that need no person: everything except `initialize` and `tools/call`."""
    version = check_version(params)
    match method:
        case "server/discover":
            about = {"capabilities": {"tools": {}}, "instructions": INSTRUCTIONS}
            return stamped(about | {"supportedVersions": list(ENVELOPE_VERSIONS)})
        case "ping":
            return {}
        case "tools/list":
            return stamped({"tools": list(TOOLS)}) if version else {"tools": list(TOOLS)}
    raise RpcError(UNKNOWN_METHOD, f"{method} is not offered here")


def check_version(params: Json) -> str:
    version = version_of(params)
    if version and version not in ENVELOPE_VERSIONS:
        known = [*HANDSHAKE_VERSIONS, *ENVELOPE_VERSIONS]
        raise RpcError(BAD_VERSION, f"version {version} is not known", {"supported": known, "requested": version})
    return version


def check_tool(params: Json) -> str:
    name = params.get("name")
    if name not in [tool["name"] for tool in TOOLS]:
        raise RpcError(BAD_PARAMS, f"there is no tool {name!r}")
    return str(name)


def label_of(params: Json) -> str:
    """The client's name for itself in this request, in versions that send it with each one."""
    return name_of(_meta(params).get(f"{_META}clientInfo"))


def form_of(asked: Question) -> Json:
    """The question as a form of the client, if it has forms: the person can be in front of it."""
    field: Json = {"type": "string", "title": "Answer"}
    if not asked.takes_text:
        field["enum"] = list(asked.choices or ("yes", "no"))
    elif asked.choices:
        field["description"] = "One of these, or your own words: " + ", ".join(asked.choices)
    schema = {"type": "object", "properties": {"answer": field}, "required": ["answer"]}
    return {"message": asked.text, "requestedSchema": schema}


def answer_in(result: Json) -> str:
    """Returns the answer from a submitted form; "" if it was closed."""
    content = result.get("content")
    answer = content.get("answer") if result.get("action") == "accept" and isinstance(content, dict) else None
    return answer if isinstance(answer, str) else ""


def said(handed: Handed, words: str) -> str:
    """The text that `ask_human` returns to the agent."""
    if timed_out(handed):
        return f"Nobody answered in time. {NOT_A_YES}"
    return words if handed.outcome == "answered" else f"The question was withdrawn. {NOT_A_YES}"
