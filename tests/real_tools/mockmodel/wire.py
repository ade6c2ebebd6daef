"""Four wire formats of model services: `parse_*` reads a request body, `whole_*` and `stream_*` write a `Turn`.

A stream is a list of parts; a part is an event ready to send, or a number of seconds to wait before the next.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from atlasbridge.core.ids import new_id
from tests.real_tools.mockmodel.scene import DIRECTIVE, LONG_LINES, Call, Request, Turn

Body = Mapping[str, Any]
Part = bytes | float
FILLERS: dict[str, Any] = {"string": "lab", "number": 1, "integer": 1, "boolean": False, "array": [], "object": {}}


def event(data: Body | str, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


def text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or [] if isinstance(part, dict))


def _as_json(heard: Any) -> str:
    return json.dumps(heard, ensure_ascii=False)


def fresh(prefix: str) -> str:
    return prefix + new_id().replace("-", "")[:20]


def pieces(turn: Turn) -> Iterator[tuple[float, str]]:
    """The text as it is streamed: each piece, and how long to wait before it."""
    if not turn.drip_s:
        yield 0.0, turn.text
        return
    for word in turn.text.split(" "):
        yield turn.drip_s, word + " "


# Anthropic Messages (Claude Code)


def parse_messages(body: Body) -> Request:
    words, results, searches = "", 0, set()
    heard: Any = ""
    for message in body.get("messages", []):
        content = message["content"]
        parts = content if isinstance(content, list) else []
        if message["role"] != "user":
            searches |= {part["id"] for part in parts if part.get("name") == "ToolSearch"}
            continue
        if DIRECTIVE.search(text_of(content)):
            words, results = text_of(content), 0
            heard = answers_in(parts)
            continue  # results in the same message belong to the scene before, which was broken off
        answers = answers_in(parts)
        results += sum(part.get("tool_use_id") not in searches for part in answers)
        heard = answers or heard
    offered = {tool.get("name", ""): "function" for tool in body.get("tools", [])}
    takes = {tool.get("name", ""): arguments_of(tool.get("input_schema")) for tool in body.get("tools", [])}
    return Request(words, results, offered, heard=_as_json(heard), takes=takes)


def answers_in(parts: list[Any]) -> list[Any]:
    return [part for part in parts if part.get("type") == "tool_result"]


def messages_blocks(turn: Turn) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": turn.text}]
    for call in turn.calls:
        use = {"id": fresh("toolu_"), "name": call.name, "input": call.arguments}
        blocks.append({"type": "tool_use", **use})
    return blocks


def whole_messages(body: Body, turn: Turn) -> dict[str, Any]:
    usage = {"input_tokens": 10, "output_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    return {
        "id": fresh("msg_"),
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "lab"),
        "content": messages_blocks(turn),
        "stop_reason": "tool_use" if turn.call else "end_turn",
        "stop_sequence": None,
        "usage": usage,
    }


def stream_messages(body: Body, turn: Turn) -> Iterator[Part]:
    def say(kind: str, **fields: Any) -> bytes:
        return event({"type": kind, **fields}, kind)

    whole = whole_messages(body, turn)
    yield say("message_start", message={**whole, "content": [], "stop_reason": None})
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            yield say("content_block_start", index=index, content_block={"type": "text", "text": ""})
            for wait, piece in pieces(turn):
                yield wait
                yield say("content_block_delta", index=index, delta={"type": "text_delta", "text": piece})
        else:
            yield say("content_block_start", index=index, content_block={**block, "input": {}})
            arguments = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            yield say("content_block_delta", index=index, delta=arguments)
        yield say("content_block_stop", index=index)
    ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield say("message_delta", delta=ending, usage=whole["usage"])
    yield say("message_stop")


# OpenAI Responses (Codex)


def parse_responses(body: Body) -> Request:
    words, results = "", 0
    heard: Any = ""
    items = body.get("input", [])
    for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
        if item.get("role") == "user" and DIRECTIVE.search(text_of(item.get("content"))):
            words, results = text_of(item.get("content")), 0
        elif str(item.get("type", "")).endswith("_output"):
            results, heard = results + 1, item
    tools: dict[str, str] = {}
    spaces: dict[str, str] = {}
    for tool in body.get("tools", []):
        for offered in (tool, *tool.get("tools", [])):  # namespaces hold tools of their own
            tools[offered.get("name") or offered.get("type", "")] = offered.get("type", "")
        spaces |= {held.get("name", ""): tool.get("name", "") for held in tool.get("tools", [])}
    return Request(words, results, tools, heard=_as_json(heard), spaces=spaces)


def responses_call(request: Request, call: Call) -> dict[str, Any]:
    name, arguments = call.name, call.arguments
    ids = {"id": fresh("fc_"), "call_id": fresh("call_"), "name": name, "status": "completed"}
    if isinstance(arguments, str) or request.tools.get(name) == "custom":
        return {"type": "custom_tool_call", "input": arguments, **ids}
    if name in ("exec_command", "shell_command") and "apply_patch" not in json.dumps(arguments):
        # Leaving the sandbox is what needs a person's approval.
        reason = "Do you want me to do this outside the sandbox?"
        arguments = {**arguments, "sandbox_permissions": "require_escalated", "justification": reason}
    held = {"namespace": request.spaces[name]} if name in request.spaces else {}
    return {"type": "function_call", "arguments": json.dumps(arguments), **held, **ids}


def whole_responses(body: Body, request: Request, turn: Turn) -> dict[str, Any]:
    content = [{"type": "output_text", "text": turn.text, "annotations": []}]
    message = {"type": "message", "id": fresh("msg_"), "role": "assistant", "status": "completed", "content": content}
    usage = {
        "input_tokens": 10,
        "output_tokens": 10,
        "total_tokens": 20,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    return {
        "id": fresh("resp_"),
        "object": "response",
        "model": body.get("model", "lab"),
        "status": "completed",
        "output": [message, *(responses_call(request, call) for call in turn.calls)],
        "usage": usage,
    }


def stream_responses(body: Body, request: Request, turn: Turn) -> Iterator[Part]:
    def say(kind: str, **fields: Any) -> bytes:
        return event({"type": kind, **fields}, kind)

    whole = whole_responses(body, request, turn)
    yield say("response.created", response={**whole, "status": "in_progress", "output": [], "usage": None})
    for index, item in enumerate(whole["output"]):
        message = item["type"] == "message"
        yield say("response.output_item.added", output_index=index, item={**item, "content": []} if message else item)
        for wait, piece in pieces(turn) if message else ():
            yield wait
            where = {"item_id": item["id"], "output_index": index, "content_index": 0}
            yield say("response.output_text.delta", delta=piece, **where)
        yield say("response.output_item.done", output_index=index, item=item)
    yield say("response.completed", response=whole)


# OpenAI Chat Completions (OpenCode, aider)


def parse_chat(body: Body) -> Request:
    words, results = "", 0
    heard: Any = ""
    for message in body.get("messages", []):
        if message["role"] == "user" and DIRECTIVE.search(text_of(message["content"])):
            words, results = text_of(message["content"]), 0
        elif message["role"] == "tool":
            results, heard = results + 1, message
    functions = [tool.get("function", {}) for tool in body.get("tools") or []]
    offered = {function.get("name", ""): "function" for function in functions}
    takes = {function.get("name", ""): arguments_of(function.get("parameters")) for function in functions}
    speaks = any("SEARCH/REPLACE" in text_of(message.get("content")) for message in body.get("messages", []))
    return Request(words, results, offered, heard=_as_json(heard), speaks=speaks and not offered, takes=takes)


def arguments_of(schema: Any) -> Body:
    return schema if isinstance(schema, dict) else {}


def spoken_edit(turn: Turn) -> str:
    """aider takes edits and commands from the text itself."""
    edits = {
        "write": ("written.txt", "", "written by the lab\n"),
        "longwrite": ("written.txt", "", "\n".join(LONG_LINES) + "\n"),
        "edit": ("seed.txt", "colour = red\n", "colour = blue\n"),
    }
    if turn.scene in edits:
        name, old, new = edits[turn.scene]
        return f"{name}\n```\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n```\n"
    return "Run this:\n\n```bash\ntouch made-by-bash.txt\n```\n" if turn.scene == "bash" else turn.text


def chat_calls(turn: Turn) -> list[dict[str, Any]]:
    return [
        {
            "index": index,
            "id": fresh("call_"),
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
        }
        for index, call in enumerate(turn.calls)
    ]


def whole_chat(body: Body, turn: Turn) -> dict[str, Any]:
    calls = chat_calls(turn)
    message = {"role": "assistant", "content": turn.text, **({"tool_calls": calls} if calls else {})}
    return {
        "id": fresh("chatcmpl-"),
        "object": "chat.completion",
        "created": 0,
        "model": body.get("model", "lab"),
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
    }


def call_parts(call: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A call as services stream it: its name first, then its arguments in two pieces."""
    arguments = call["function"]["arguments"]
    middle = len(arguments) // 2
    yield {**call, "function": {**call["function"], "arguments": ""}}
    for piece in (arguments[:middle], arguments[middle:]):
        yield {"index": call["index"], "function": {"arguments": piece}}


def stream_chat(body: Body, turn: Turn) -> Iterator[Part]:
    whole = whole_chat(body, turn)
    choice = whole["choices"][0]
    head = {key: whole[key] for key in ("id", "created", "model")}

    def chunk(delta: Body, finish: str | None = None, **fields: Any) -> bytes:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        return event({**head, "object": "chat.completion.chunk", "choices": choices, **fields})

    yield chunk({"role": "assistant", "content": ""})
    for wait, piece in pieces(turn):
        yield wait
        yield chunk({"content": piece})
    for call in choice["message"].get("tool_calls", ()):
        yield from (chunk({"tool_calls": [part]}) for part in call_parts(call))
    yield chunk({}, choice["finish_reason"], usage=whole["usage"])
    yield event("[DONE]")


# Gemini generateContent (Gemini CLI)


def parse_gemini(body: Body) -> Request:
    words, results = "", 0
    heard: Any = ""
    for message in body.get("contents", []):
        parts = message.get("parts", [])
        if message.get("role") == "user" and DIRECTIVE.search(text_of(parts)):
            words, results = text_of(parts), 0
        answers = [part for part in parts if "functionResponse" in part]
        results, heard = results + len(answers), answers or heard
    declared = [f for tool in body.get("tools") or [] for f in tool.get("functionDeclarations") or []]
    takes = {f["name"]: arguments_of(f.get("parametersJsonSchema") or f.get("parameters")) for f in declared}
    return Request(words, results, {f["name"]: "function" for f in declared}, heard=_as_json(heard), takes=takes)


def gemini_schema_answer(body: Body) -> str:
    """Some side requests want JSON of a given shape: fill it with anything that fits."""
    config = body.get("generationConfig") or {}
    schema = config.get("responseJsonSchema") or config.get("responseSchema") or {}
    filled = {
        k: (v.get("enum") or [FILLERS.get(v.get("type", "").lower(), {})])[0]
        for k, v in schema.get("properties", {}).items()
    }
    return json.dumps(filled) if schema else ""


def gemini_reply(parts: list[dict[str, Any]], finish: str = "") -> dict[str, Any]:
    candidate = {
        "content": {"role": "model", "parts": parts},
        "index": 0,
        **({"finishReason": finish} if finish else {}),
    }
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "lab", "responseId": fresh("")}


def gemini_last(turn: Turn) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = [{"functionCall": {"name": call.name, "args": call.arguments}} for call in turn.calls]
    return calls or [{"text": ""}]


def whole_gemini(turn: Turn) -> dict[str, Any]:
    return gemini_reply([{"text": turn.text}, *(gemini_last(turn) if turn.call else [])], "STOP")


def stream_gemini(turn: Turn) -> Iterator[Part]:
    for wait, piece in pieces(turn):
        yield wait
        yield event(gemini_reply([{"text": piece}]))
    yield event(gemini_reply(gemini_last(turn), "STOP"))
