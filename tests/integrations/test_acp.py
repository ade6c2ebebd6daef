"""The proxy between an editor and its agent: everything passes unchanged; a permission has two askers, one winner."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.integrations.conftest import HubApi
from tests.support.acp_lines import pass_lines
from tests.support.waiting import wait_for

from atlasbridge.core.prompt.answer import decide_answer
from atlasbridge.core.prompt.model import Answer, Prompt, SubjectKind
from atlasbridge.integrations.acp import AcpSessions, read_permission

# asks for one permission, tells on a line what it was answered, then what else it got
AGENT = """
import json, sys
request = json.loads(sys.argv[1])
sys.stdout.write(json.dumps(request) + "\\n"); sys.stdout.flush()
for line in sys.stdin:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "method": "got", "params": json.loads(line)}) + "\\n")
    sys.stdout.flush()
"""
REQUEST: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 7,
    "method": "session/request_permission",
    "params": {
        "sessionId": "s1",
        "toolCall": {
            "toolCallId": "c1",
            "title": "Run a command",
            "kind": "execute",
            "rawInput": {"command": "rm -rf /tmp/x | cat"},
        },
        "options": [
            {"optionId": "go", "name": "Allow", "kind": "allow_once"},
            {"optionId": "ever", "name": "Allow for ever", "kind": "allow_always"},
            {"optionId": "stop", "name": "Nope", "kind": "reject_once"},
        ],
    },
}


class Editor:
    """Reads what the proxy writes, in a thread, so that nothing blocks."""

    def __init__(self, proxy: subprocess.Popen[bytes]) -> None:
        self.proxy = proxy
        self.lines: list[bytes] = []
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self.proxy.stdout is not None
        for line in self.proxy.stdout:
            self.lines.append(line)

    def say(self, message: Any) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def write(self, data: bytes) -> None:
        assert self.proxy.stdin is not None
        self.proxy.stdin.write(data)
        self.proxy.stdin.flush()

    def heard(self, method: str) -> list[Any]:
        found = [json.loads(line) for line in list(self.lines)]
        return [message["params"] for message in found if message.get("method") == method]

    def end(self) -> int:
        assert self.proxy.stdin is not None
        self.proxy.stdin.close()
        status = self.proxy.wait()
        self._reading.join()
        return status


@contextmanager
def editor_of(hub_api: HubApi, *agent: str) -> Iterator[Editor]:
    command = hub_api.hub.command("acp", "--", sys.executable, "-c", *agent)
    with subprocess.Popen(command, env=hub_api.hub.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as proxy:
        try:
            yield Editor(proxy)
        finally:
            proxy.kill()


def test_everything_passes_byte_for_byte(hub_api: HubApi) -> None:
    assert pass_lines(hub_api.hub, 2000, random.Random(20)) > 10_000_000


def test_the_hub_api_answers_first_and_the_editor_is_told(hub_api: HubApi) -> None:
    with editor_of(hub_api, AGENT, json.dumps(REQUEST)) as editor:
        prompt = hub_api.answer("n")
        wait_for(lambda: bool(editor.heard("got")))
        assert prompt["subject"]["text"] == "rm -rf /tmp/x | cat"
        assert [choice.get("refuses", False) for choice in prompt["choices"]] == [False, False, True]
        answered = {"jsonrpc": "2.0", "id": 7, "result": {"outcome": {"outcome": "selected", "optionId": "stop"}}}
        assert editor.heard("got") == [answered]
        wait_for(lambda: editor.heard("$/cancel_request") == [{"requestId": 7}])
        editor.say({"jsonrpc": "2.0", "id": 7, "result": {"outcome": {"outcome": "selected", "optionId": "go"}}})
        editor.say({"jsonrpc": "2.0", "method": "later"})
        wait_for(lambda: len(editor.heard("got")) == 2)
        assert editor.heard("got")[1]["method"] == "later"  # the editor's own word came too late and went no further


def test_yes_takes_the_option_for_once_only(hub_api: HubApi) -> None:
    with editor_of(hub_api, AGENT, json.dumps(REQUEST)) as editor:
        hub_api.answer("y")
        wait_for(lambda: bool(editor.heard("got")))
        assert editor.heard("got")[0]["result"]["outcome"]["optionId"] == "go"


def test_the_editor_answers_first_and_the_hub_api_is_withdrawn(hub_api: HubApi) -> None:
    with editor_of(hub_api, AGENT, json.dumps(REQUEST)) as editor:
        hub_api.next()
        editor.say({"jsonrpc": "2.0", "id": 7, "result": {"outcome": {"outcome": "selected", "optionId": "go"}}})
        hub_api.wait_quiet()
        wait_for(lambda: bool(editor.heard("got")))
        assert editor.heard("got")[0]["result"]["outcome"]["optionId"] == "go"
        assert editor.end() == 0
    assert not any(entry["event"] == "REPLY_RECEIVED" for entry in hub_api.audit())


def test_an_agent_that_takes_its_request_back_withdraws_its_question(hub_api: HubApi) -> None:
    taking_back = AGENT.replace(
        "for line in sys.stdin:",
        "sys.stdin.readline()\n"
        'back = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": request["id"]}}\n'
        'sys.stdout.write(json.dumps(back) + "\\n"); sys.stdout.flush()\n'
        "for line in sys.stdin:",
    )
    with editor_of(hub_api, taking_back, json.dumps(REQUEST)) as editor:
        hub_api.next()
        editor.say({"jsonrpc": "2.0", "method": "session/cancel"})
        hub_api.wait_quiet()
        assert editor.heard("$/cancel_request") == [{"requestId": 7}]  # and it passed, as everything does
        assert editor.end() == 0


def test_an_agent_that_dies_withdraws_its_question_and_its_status_is_ours(hub_api: HubApi) -> None:
    dying = AGENT.replace("for line in sys.stdin:", "sys.stdin.readline()\nsys.exit(7)\nfor line in sys.stdin:")
    with editor_of(hub_api, dying, json.dumps(REQUEST)) as editor:
        hub_api.next()
        editor.say({"jsonrpc": "2.0", "method": "die"})
        assert editor.proxy.wait() == 7
    hub_api.wait_quiet()


def test_a_proxy_that_is_killed_withdraws_its_question(hub_api: HubApi) -> None:
    with editor_of(hub_api, AGENT, json.dumps(REQUEST)) as editor:
        hub_api.next()
        editor.proxy.kill()
        editor.proxy.wait()
        hub_api.wait_quiet()


def test_an_agent_that_is_not_there_is_said_in_two_lines(hub_api: HubApi) -> None:
    done = hub_api.hub.cli("acp", "--", "no-such-agent-here")
    assert done.returncode == 1 and "cannot start no-such-agent-here" in done.stderr


def told(sessions: AcpSessions, name: str, **fields: Any) -> None:
    update = {"sessionUpdate": name, "toolCallId": "c1", **fields}
    params = {"sessionId": "s1", "update": update}
    sessions.hear_agent(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}).encode())


def asked(sessions: AcpSessions, *names: str, **call: Any) -> Prompt:
    """A request that names its tool call, and of it only these fields."""
    options = REQUEST["params"]["options"]
    if names:
        options = [{"optionId": name, "name": name, "kind": name} for name in names]
    params = {"sessionId": "s1", "toolCall": {"toolCallId": "c1", **call}, "options": options}
    found = read_permission(json.dumps({**REQUEST, "params": params}).encode(), sessions)
    assert found is not None
    return found.prompt


def text(words: str) -> dict[str, Any]:
    return {"type": "content", "content": {"type": "text", "text": words}}


def test_what_a_request_says_in_its_content_is_asked() -> None:
    """As Kimi does: the title is a tool's name, and the command is in the content."""
    sessions = AcpSessions()
    told(sessions, "tool_call", title="Bash", kind="execute", content=[text("")])
    told(sessions, "tool_call_update", content=[text('{"command": "rm -rf')])
    prompt = asked(sessions, title="Bash", content=[text("Requesting approval to Running: rm -rf ~")])
    assert "Bash" in prompt.asked and "Running: rm -rf ~" in prompt.asked
    assert prompt.subject is not None and "rm -rf ~" in prompt.subject.text


def test_what_was_said_of_a_tool_call_earlier_is_asked_and_no_rule_takes_it_for_all() -> None:
    """Arguments come while a model still writes them."""
    sessions = AcpSessions()
    told(sessions, "tool_call", title="Run", kind="execute", rawInput={"command": "git status"})
    prompt = asked(sessions, content=[text("and then rm -rf ~")])
    assert "git status" in prompt.asked and "rm -rf ~" in prompt.asked
    assert prompt.subject is not None and not prompt.subject.complete
    newest = asked(sessions, rawInput={"command": "git status --short"})
    assert newest.subject is not None and newest.subject.complete and newest.subject.text == "git status --short"


def test_arguments_of_a_call_that_runs_are_all_of_them() -> None:
    """As Vibe 3.0.2 sends them: by the protocol, arguments that are still being written are `pending`."""
    sessions, command = AcpSessions(), {"command": "touch a.txt"}
    told(sessions, "tool_call", title="bash: touch a.txt", kind="execute", status="in_progress", rawInput=command)
    subject = asked(sessions).subject
    assert subject is not None and subject.complete and subject.text == "touch a.txt"
    beside = asked(sessions, content=[text("and then rm -rf ~")])
    assert beside.subject is not None and not beside.subject.complete and "rm -rf ~" in beside.asked
    told(sessions, "tool_call_update", title="Run")  # says nothing about them
    subject = asked(sessions).subject
    assert subject is not None and subject.complete
    told(sessions, "tool_call_update", status="pending", rawInput={"command": "rm"})
    subject = asked(sessions).subject
    assert subject is not None and not subject.complete and subject.text == "rm"
    told(sessions, "tool_call_update", status="in_progress")  # without the rest of them
    subject = asked(sessions).subject
    assert subject is not None and not subject.complete


def test_a_list_that_only_repeats_the_command_is_nothing_beside_it() -> None:
    """As Copilot 1.0.102 sends it, also for commands that are joined by an operator."""
    command = "sleep 8 && touch a.txt"
    raw: dict[str, Any] = {"command": command, "commands": [command]}
    subject = asked(AcpSessions(), kind="execute", rawInput=raw).subject
    assert subject is not None and subject.complete and subject.text == command
    for more in (["touch a.txt"], [command, "rm -rf ~"], "rm -rf ~", [], [[command]]):
        subject = asked(AcpSessions(), kind="execute", rawInput={**raw, "commands": more}).subject
        assert subject is not None and not subject.complete, more


def test_a_tool_call_that_is_over_is_forgotten_and_so_are_the_oldest() -> None:
    sessions = AcpSessions()
    told(sessions, "tool_call", title="Run", rawInput={"command": "ls"})
    told(sessions, "tool_call_update", status="completed")
    assert "ls" not in asked(sessions, title="Again").asked
    told(sessions, "tool_call", title="Run", rawInput={"command": "ls"})
    for number in range(60):
        told(sessions, "tool_call", toolCallId=f"other{number}", title="x")
    assert "ls" not in asked(sessions, title="Again").asked


def test_a_change_of_a_file_is_shown_as_its_lines() -> None:
    """As Gemini does: the whole file before and after."""
    before = "".join(f"line {number}\n" for number in range(200))
    change = {"type": "diff", "path": "/src/a.py", "oldText": before, "newText": before.replace("line 7\n", "seven\n")}
    prompt = asked(AcpSessions(), title="Writing to a.py", kind="edit", content=[change])
    assert prompt.subject is not None and prompt.subject.kind is SubjectKind.EDIT
    assert prompt.subject.target == "/src/a.py" and prompt.subject.complete
    lines = prompt.asked.splitlines()
    assert "-line 7" in lines and "+seven" in lines and "line 100" not in prompt.asked
    fresh = asked(
        AcpSessions(), kind="edit", content=[{"type": "diff", "path": "/b", "oldText": None, "newText": "x\n"}]
    )
    assert "+x" in fresh.asked.splitlines()
    several = asked(AcpSessions(), title="Edit", content=[change, {**change, "path": "/src/b.py"}])
    assert "/src/a.py" in several.asked and "/src/b.py" in several.asked


def test_a_request_that_is_too_long_is_asked_and_says_what_is_missing() -> None:
    prompt = asked(AcpSessions(), kind="execute", rawInput={"command": "echo " + "x" * 50_000})
    assert prompt.subject is not None and not prompt.subject.complete
    assert "more characters are not shown" in prompt.asked


def test_options_that_have_the_protocols_words_alone_are_labels_for_people() -> None:
    """As goose has them."""
    prompt = asked(AcpSessions(), "allow_always", "allow_once", "reject_once", title="Run")
    assert [choice.label for choice in prompt.choices] == ["Allow always", "Allow once", "Reject once"]
    found = decide_answer(prompt, "y")
    assert isinstance(found, Answer) and found.value == "2"


@pytest.mark.parametrize(
    "content", ["x", [None, 1, "x"], [{"type": "diff"}], [{"type": "content", "content": None}], {}]
)
def test_content_that_makes_no_sense_is_no_fault(content: Any) -> None:
    sessions = AcpSessions()
    told(sessions, "tool_call", content=content)
    for line in (b'{"method":"session/update","params":{"update":[]}}', b'"tool_call"', b"[[[", b'{"params":7}'):
        sessions.hear_agent(line)
    params = {**REQUEST["params"], "toolCall": {"title": "Run", "content": content}}
    read_permission(json.dumps({**REQUEST, "params": params}).encode(), sessions)


@pytest.mark.parametrize("method", ["session/new", "session/load"])
def test_a_permission_names_the_folder_of_its_session_and_not_that_of_the_proxy(method: str) -> None:
    """A rule for a folder judges what the agent does there."""
    sessions = AcpSessions()
    opens = {"jsonrpc": "2.0", "id": 3, "method": method, "params": {"cwd": "/srv/shop", "mcpServers": []}}
    if method == "session/load":
        opens["params"] = {**REQUEST["params"], "cwd": "/srv/shop"}
    sessions.hear_editor(json.dumps(opens).encode())
    if method == "session/new":
        sessions.hear_agent(b'{"jsonrpc": "2.0", "id": 4, "result": {"sessionId": "another"}}')
        sessions.hear_agent(b'{"jsonrpc": "2.0", "id": 3, "result": {"sessionId": "s1"}}')
    subject = asked(sessions, kind="execute", rawInput={"command": "make", "cwd": "/srv/shop"}).subject
    assert subject is not None and subject.folder == "/srv/shop" and subject.complete
    subject = asked(sessions, kind="execute", rawInput={"command": "make", "cwd": "/etc"}).subject
    assert subject is not None and not subject.complete


def test_the_proxy_learns_the_folder_of_a_session(hub_api: HubApi) -> None:
    agent = AGENT.replace(
        'sys.stdout.write(json.dumps(request) + "\\n"); sys.stdout.flush()\n',
        "opened = json.loads(sys.stdin.readline())\n"
        'for message in ({"jsonrpc": "2.0", "id": opened["id"], "result": {"sessionId": "s1"}}, request):\n'
        '    sys.stdout.write(json.dumps(message) + "\\n"); sys.stdout.flush()\n',
    )
    assert agent != AGENT
    with editor_of(hub_api, agent, json.dumps(REQUEST)) as editor:
        editor.say({"jsonrpc": "2.0", "id": 0, "method": "session/new", "params": {"cwd": "/srv/shop"}})
        prompt = hub_api.answer("n")
        assert prompt["subject"]["folder"] == "/srv/shop"


@pytest.mark.parametrize("params", [None, 1, {}, {"cwd": 1}, {"cwd": "relative"}, {"cwd": "/x", "sessionId": []}])
def test_an_opening_that_makes_no_sense_is_no_fault(params: Any) -> None:
    sessions = AcpSessions()
    sessions.hear_editor(json.dumps({"id": 1, "method": "session/new", "params": params}).encode())
    for line in (
        b'{"id": 1, "result": 7, "sessionId": 0}',
        b'["sessionId"]',
        b"sessionId",
        b'{"result": {"sessionId": 1}}',
    ):
        sessions.hear_agent(line)
