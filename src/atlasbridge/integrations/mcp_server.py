"""`atlasbridge mcp`: an MCP server on stdio through which agents ask people. Each call is a separate question.

It implements the protocol's few messages itself, because clients have short timeouts and importing the official package
takes more than a second of processor time. The tests check it with that package's client. `approve` answers in the
format of Claude Code's --permission-prompt-tool. Every error is a denial.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.prompt import mcp_messages as mcp
from atlasbridge.core.prompt.mcp_messages import Json

if TYPE_CHECKING:
    from atlasbridge.core.home import Home
    from atlasbridge.core.prompt.model import Prompt
    from atlasbridge.core.prompt.question import Handed, Question
    from atlasbridge.integrations.open_question import OpenQuestion


class Call:
    """One tool call, running in its own thread."""

    def __init__(self, server: McpServer, request_id: Any, params: Json, label: str, elicits: bool) -> None:
        self._server = server
        self.key = json.dumps(request_id)
        self.request_id = request_id
        self._params = params
        self.label = label
        self.elicits = elicits  # the client can show its own form to its user
        self._lock = threading.Lock()
        self._open_question: OpenQuestion | None = None
        self.canceled = False
        self._elicited = ""

    def cancel(self) -> None:
        """The client has cancelled the call: withdraw the question and send no answer."""
        with self._lock:
            self.canceled = True
            open_question = self._open_question
        if open_question is not None:
            open_question.withdraw()

    def run(self) -> None:
        result = mcp.failed(
            self._params, RuntimeError("It failed for a reason that this server wrote to its standard error")
        )
        try:
            result = mcp.result_of(self._params, self._work(mcp.ToolCall(self._params, os.getcwd())))
        except (mcp.BadArguments, AtlasBridgeError, OSError) as error:
            result = mcp.failed(self._params, error)
        finally:  # the client must always get a response, otherwise it would wait for ever
            self._server.finish(self, result)

    def _work(self, call: mcp.ToolCall) -> str:
        if call.question is None:
            return self._notify(call.message)
        handed, words = self._ask(call, call.question)
        return self._elicited or call.told(handed, words)

    def _notify(self, message: str) -> str:
        from atlasbridge.core.daemon.request import HubClient, ensure_hub

        ensure_hub(self._server.home)
        with HubClient(self._server.home) as hub:
            hub.ask("notify", message=message, label=self.label)
        return "Told."

    def _ask(self, call: mcp.ToolCall, question: Question) -> tuple[Handed, str]:
        """Ask with regular progress messages; a cancelled call withdraws its question."""
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
        threading.Thread(target=self._show_life, args=(over,), name="progress", daemon=True).start()
        form_key = self._server.elicit(call.form, self._take_form) if self.elicits and call.form else ""
        try:
            handed = open_question.ask(prompt, call.ttl_s)
        finally:
            over.set()
            if form_key:
                self._server.forget_form(form_key)
        return handed, words_of(prompt, handed.answer) if handed.answer is not None else ""

    def _show_life(self, over: threading.Event) -> None:
        waited_s = 0.0
        while not over.wait(mcp.PROGRESS_S):
            waited_s += mcp.PROGRESS_S
            if (told := mcp.progress_of(self._params, waited_s)) is None:
                return
            self._server.send(told)

    def _take_form(self, result: Json) -> None:
        answer = mcp.answer_in(result)
        with self._lock:
            open_question = self._open_question
            if answer and open_question is not None:
                self._elicited = answer
        if self._elicited and open_question is not None:
            open_question.withdraw()


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
        for call in left:  # the client is gone: withdraw its questions
            call.cancel()
        for thread in self._threads:
            thread.join()

    def _hear(self, line: bytes) -> None:
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            return self.send({"id": None, "error": {"code": mcp.PARSE_ERROR, "message": "this is no JSON"}})
        for message in said if isinstance(said, list) else [said]:  # protocol version 2025-03-26 has batches
            self._take(message)
        return None

    def _take(self, message: Any) -> None:
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return self.send({"id": None, "error": {"code": mcp.INVALID_REQUEST, "message": "this is no JSON-RPC 2.0"}})
        method, params = message.get("method"), message.get("params") or {}
        if method is None:
            return self._take_answer(message)
        if "id" not in message:
            return self._take_notice(str(method), params)
        try:
            if not isinstance(params, dict):
                raise mcp.RpcError(mcp.BAD_PARAMS, "the parameters must be an object")
            result = self._perform(str(method), params, message["id"])
        except mcp.RpcError as error:
            return self.send({"id": message["id"], "error": error.body})
        if result is not None:
            self.send({"id": message["id"], "result": result})
        return None

    def _perform(self, method: str, params: Json, request_id: Any) -> Json | None:
        """Return the result, or None if a thread sends it later."""
        mcp.check_version(params)
        match method:
            case "initialize":
                self._client, self._elicits = mcp.name_of(params.get("clientInfo")), mcp.elicits(params)
                return mcp.greet(params)
            case "tools/call":
                self._call(params, request_id)
                return None
        return mcp.answer_at_once(method, params)

    def _call(self, params: Json, request_id: Any) -> None:
        mcp.check_tool(params)
        label = self._label or mcp.label_of(params) or self._client or "an MCP client"
        call = Call(self, request_id, params, label, self._elicits)
        with self._lock:
            if call.key in self._calls:
                raise mcp.RpcError(mcp.INVALID_REQUEST, "this id is in use")
            self._calls[call.key] = call
        thread = threading.Thread(target=call.run, name="call", daemon=True)
        self._threads = [*(one for one in self._threads if one.is_alive()), thread]
        thread.start()

    def finish(self, call: Call, result: Json) -> None:
        with self._lock:
            self._calls.pop(call.key, None)
        if not call.canceled:
            self.send({"id": call.request_id, "result": result})

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
        self.send({"id": key, "method": "elicitation/create", "params": form})
        return key

    def forget_form(self, key: str) -> None:
        """The question was answered elsewhere: let the client close its form."""
        with self._lock:
            is_open = self._forms.pop(key, None) is not None
        if is_open:
            told = {"requestId": key, "reason": "answered elsewhere"}
            self.send({"method": "notifications/cancelled", "params": told})

    def send(self, message: Json) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False, separators=(",", ":"))
        try:
            with self._writing:
                self._out.write(line.encode("utf-8", "replace") + b"\n")
                self._out.flush()
        except (OSError, ValueError):
            pass  # the client is gone, and its input ends as well


def _warm_up() -> None:
    """Import in the background, so that the first question does not wait for it."""
    import atlasbridge.core.prompt.question
    import atlasbridge.integrations.open_question  # noqa: F401
