"""The mock model plays the same scene over every wire format."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.real_tools.mockmodel import MockModel, Request, play

ASK = {"role": "user", "content": "please lab:bash now"}


@pytest.fixture
def model(tmp_path: Path) -> Iterator[MockModel]:
    with MockModel(str(tmp_path)).serving() as served:
        yield served


def events(response: httpx.Response) -> list[dict[str, Any]]:
    lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def test_messages_stream_calls_the_tool_once(model: MockModel) -> None:
    body = {"stream": True, "messages": [ASK], "tools": [{"name": "Bash"}]}
    got = events(httpx.post(f"{model.address}/v1/messages", json=body))
    starts = [e["content_block"] for e in got if e["type"] == "content_block_start"]
    assert [block["type"] for block in starts] == ["text", "tool_use"]
    assert starts[1]["name"] == "Bash"
    assert got[-2]["delta"]["stop_reason"] == "tool_use"
    answered = [ASK, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x"}]}]
    got = httpx.post(f"{model.address}/v1/messages", json={"messages": answered, "tools": [{"name": "Bash"}]}).json()
    assert got["stop_reason"] == "end_turn"
    assert [r[1:] for r in model.requests] == [("bash", 0, "Bash"), ("bash", 1, "")]


def test_a_search_for_a_tool_is_not_a_move_of_the_scene(model: MockModel) -> None:
    search = {"role": "assistant", "content": [{"type": "tool_use", "id": "s1", "name": "ToolSearch", "input": {}}]}
    found = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "s1"}]}
    body = {"messages": [ASK, search, found], "tools": [{"name": "Bash"}, {"name": "ToolSearch"}]}
    got = httpx.post(f"{model.address}/v1/messages", json=body).json()
    assert got["content"][1]["name"] == "Bash"


def test_responses_asks_to_leave_the_sandbox(model: MockModel) -> None:
    body = {"stream": True, "input": [ASK], "tools": [{"type": "function", "name": "exec_command"}]}
    got = events(httpx.post(f"{model.address}/v1/responses", json=body))
    call = got[-1]["response"]["output"][1]
    assert json.loads(call["arguments"])["sandbox_permissions"] == "require_escalated"


def test_chat_without_tools_speaks_the_edit(model: MockModel) -> None:
    body = {
        "messages": [
            {"role": "system", "content": "Answer with SEARCH/REPLACE blocks"},
            {"role": "user", "content": "lab:write"},
        ]
    }
    got = httpx.post(f"{model.address}/v1/chat/completions", json=body).json()
    assert "<<<<<<< SEARCH" in got["choices"][0]["message"]["content"]


def test_chat_stream_ends_with_the_tool_call(model: MockModel) -> None:
    body = {"stream": True, "messages": [ASK], "tools": [{"function": {"name": "bash"}}]}
    got = events(httpx.post(f"{model.address}/v1/chat/completions", json=body))
    assert got[-1]["choices"][0]["finish_reason"] == "tool_calls"
    parts = [part for event in got for part in event["choices"][0]["delta"].get("tool_calls", ())]
    assert parts[0]["function"]["name"] == "bash"
    assert "touch made-by-bash.txt" in json.loads("".join(part["function"]["arguments"] for part in parts))["command"]


def test_gemini_fills_a_wanted_shape(model: MockModel) -> None:
    body = {"generationConfig": {"responseJsonSchema": {"properties": {"n": {"type": "number"}, "e": {"enum": ["a"]}}}}}
    got = httpx.post(f"{model.address}/v1beta/models/m:generateContent", json=body).json()
    assert json.loads(got["candidates"][0]["content"]["parts"][0]["text"]) == {"n": 1, "e": "a"}


def test_gemini_stream_calls_the_function(model: MockModel) -> None:
    body = {
        "contents": [{"role": "user", "parts": [{"text": "lab:bash"}]}],
        "tools": [{"functionDeclarations": [{"name": "run_shell_command"}]}],
    }
    got = events(httpx.post(f"{model.address}/v1beta/models/m:streamGenerateContent?alt=sse", json=body))
    assert got[-1]["candidates"][0]["content"]["parts"][0]["functionCall"]["name"] == "run_shell_command"


def test_a_body_that_is_not_json_is_refused(model: MockModel) -> None:
    assert httpx.post(f"{model.address}/v1/messages", content=b"{").status_code == 400


def test_side_requests_are_never_delayed() -> None:
    slow = Request("lab:slow=9", 0)
    assert play(slow, "f", "a").delay_s == 0
    assert play(Request("lab:slow=9", 0, {"Bash": "function"}), "f", "a").delay_s == 9


def test_a_service_that_is_overloaded_serves_after_the_asked_number_of_refusals(model: MockModel) -> None:
    body = {"messages": [{"role": "user", "content": "please lab:fail=2 now"}], "tools": [{"name": "Bash"}]}
    got = [httpx.post(f"{model.address}/v1/messages", json=body).status_code for _ in range(4)]
    assert got == [503, 503, 200, 503]


def test_several_calls_come_in_one_turn_with_the_arguments_that_are_offered(model: MockModel) -> None:
    schema = {"properties": {"command": {"type": "string"}}}
    tools = [{"function": {"name": "bash", "parameters": schema}}]
    ask = {"role": "user", "content": "please lab:bashboth now"}
    got = httpx.post(f"{model.address}/v1/chat/completions", json={"messages": [ask], "tools": tools}).json()
    calls = got["choices"][0]["message"]["tool_calls"]
    assert [call["index"] for call in calls] == [0, 1]
    assert [set(json.loads(call["function"]["arguments"])) for call in calls] == [{"command"}, {"command"}]


@pytest.mark.parametrize(("scene", "status"), [("limit", 429), ("error", 400), ("fail", 503)])
def test_the_service_refuses_as_often_as_it_is_told_to(model: MockModel, scene: str, status: int) -> None:
    ask = {"role": "user", "content": f"please lab:{scene}=1 now"}
    body = {"messages": [ask], "tools": [{"function": {"name": "bash"}}]}
    got = [httpx.post(f"{model.address}/v1/chat/completions", json=body).status_code for _ in range(2)]
    assert got == [status, 200]
