"""MCP over HTTP (`/mcp`, "streamable HTTP"): remote agents ask the people of this hub, with a token of scope `ask`.

Each tool call is a separate stream: keepalives, optionally a form for the client's user, then the result. If the agent
disconnects, its question is withdrawn.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Protocol

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import new_id
from atlasbridge.core.newest import Newest
from atlasbridge.core.ports import QuestionService
from atlasbridge.core.prompt import mcp_messages as mcp
from atlasbridge.core.prompt.mcp_messages import Json
from atlasbridge.core.prompt.model import Answer
from atlasbridge.core.prompt.question import Handed, Question, RemoteQuestion, prompt_of
from atlasbridge.core.prompt.redact import redact
from atlasbridge.core.schema import BadValue
from atlasbridge.web.access import Caller
from atlasbridge.web.api import caller_of, problem, read_body, session_of_peer
from atlasbridge.web.guard import Readers
from atlasbridge.web.stream import event_stream, until_cut

if TYPE_CHECKING:
    from atlasbridge.web.site import Site

PATH = "/mcp"
SESSION = "mcp-session-id"
MOST_SESSIONS = 1000
MOST_CALLS = 200  # waiting at once, each in a separate connection
METHODS = ["GET", "POST", "DELETE"]


class McpHost(Protocol):
    """What the endpoint needs of the server that it belongs to: a hub's page, or a fleet server."""

    readers: Readers
    cut: asyncio.Event

    @property
    def questions(self) -> QuestionService: ...
    async def caller_of(self, request: Request, /) -> Caller | Response: ...
    async def label(self, request: Request, label: str, /) -> str: ...
    async def tell(self, message: str, /) -> None: ...


class PageHost:
    def __init__(self, site: Site) -> None:
        self._site, self.readers, self.cut = site, site.readers, site.broadcast.cut

    @property
    def questions(self) -> QuestionService:
        return self._site.hub_api.questions

    async def caller_of(self, request: Request) -> Caller | Response:
        return caller_of(self._site, request)

    async def label(self, request: Request, label: str) -> str:
        return self._site.hub_api.mark_asker(label, await session_of_peer(self._site, request))

    async def tell(self, message: str) -> None:
        self._site.hub_api.tell(message)


class McpEndpoint:
    """A session stores only what its client said about itself. Without a session, everything except forms works."""

    def __init__(self, host: McpHost) -> None:
        self._host = host
        # by id: the client's name, and whether it shows forms
        self._sessions: Newest[str, tuple[str, bool]] = Newest(MOST_SESSIONS)
        self._forms: dict[str, asyncio.Future[Json]] = {}
        self._calls: dict[tuple[str, str], asyncio.Event] = {}  # by caller and request: set when the call is cancelled

    async def serve(self, request: Request) -> Response:
        caller = await self._host.caller_of(request)
        if isinstance(caller, Response):
            return caller
        if not caller.token or not caller.may("ask"):
            return problem(403, "wrong_scope", "this needs a token with the scope ask")
        version = request.headers.get("mcp-protocol-version", "")
        if version and version not in (*mcp.HANDSHAKE_VERSIONS, *mcp.ENVELOPE_VERSIONS):
            return problem(400, "bad_request", f"version {version[:40]} of the protocol is not known here")
        session = f"{caller.key}:{request.headers.get(SESSION, '')}"
        if request.method == "DELETE":
            return Response(status_code=204 if self._sessions.pop(session, None) else 404)
        if request.method != "POST":  # the server sends nothing outside of a response
            return problem(405, "wrong_method", "send messages with POST")
        try:
            message = await read_body(self._host.readers, request)
            json.dumps(message if isinstance(message, dict) else "", ensure_ascii=False).encode()
        except (BadValue, UnicodeEncodeError):  # half a character cannot be sent back
            return _error(None, mcp.PARSE_ERROR, "this is no JSON object")
        return message if isinstance(message, Response) else await self._take(request, caller, session, message)

    async def _take(self, request: Request, caller: Caller, session: str, message: Json) -> Response:
        params = message.get("params") or {}
        if message.get("jsonrpc") != "2.0" or not isinstance(params, dict):
            return _error(message.get("id"), mcp.INVALID_REQUEST, "this is no JSON-RPC 2.0")
        if "method" not in message:
            self._take_answer(caller, message)
            return Response(status_code=202)
        method = str(message["method"])
        if "id" not in message:
            self._take_notice(caller, method, params)
            return Response(status_code=202)
        try:
            mcp.check_version(params)
            if method == "initialize":
                return self._initialize(caller, message["id"], params)
            if method == "tools/call":
                return await self._call(request, caller, session, message["id"], params)
            return _result(message["id"], mcp.answer_at_once(method, params))
        except mcp.RpcError as error:
            return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "error": error.body})

    def _initialize(self, caller: Caller, request_id: Any, params: Json) -> Response:
        name = new_id()
        self._sessions[f"{caller.key}:{name}"] = (mcp.name_of(params.get("clientInfo")), mcp.elicits(params))
        answer = _result(request_id, mcp.greet(params))
        answer.headers[SESSION] = name
        return answer

    def _take_notice(self, caller: Caller, method: str, params: Json) -> None:
        if method == "notifications/cancelled":
            unwanted = self._calls.get((caller.key, json.dumps(params.get("requestId"))))
            if unwanted is not None:
                unwanted.set()

    def _take_answer(self, caller: Caller, message: Json) -> None:
        form = self._forms.get(f"{caller.key}:{message.get('id')}")
        if form is not None and not form.done() and isinstance(message.get("result"), dict):
            form.set_result(message["result"])

    async def _call(self, request: Request, caller: Caller, session: str, request_id: Any, params: Json) -> Response:
        mcp.check_tool(params)
        key = (caller.key, json.dumps(request_id))
        if key in self._calls:
            raise mcp.RpcError(mcp.INVALID_REQUEST, "this id is in use")
        if len(self._calls) >= MOST_CALLS:
            return problem(503, "unavailable", "too many questions are waiting")
        if not isinstance(params.get("arguments"), dict | None):
            raise mcp.RpcError(mcp.BAD_PARAMS, "the arguments must be an object")
        client, has_forms = self._sessions.get(session, ("", False))
        label = mcp.label_of(params) or client or caller.identity.partition(":")[2]
        label = await self._host.label(request, escape_controls(label, keep_lines=False))
        return event_stream(self.pour(_Call(self, caller, label, params, has_forms), key, request_id))

    async def pour(self, call: _Call, key: tuple[str, str], request_id: Any) -> AsyncIterator[bytes]:
        unwanted, waited_s = asyncio.Event(), 0.0
        self._calls[key] = unwanted
        working = asyncio.ensure_future(call.run())
        leaving = asyncio.ensure_future(unwanted.wait())
        try:
            while not working.done() and not unwanted.is_set():
                sending = asyncio.ensure_future(call.out.get())
                try:
                    await asyncio.wait(
                        {working, leaving, sending}, timeout=mcp.PROGRESS_S, return_when="FIRST_COMPLETED"
                    )
                finally:
                    sending.cancel()  # does nothing to what is done
                if sending.done():
                    yield _event(sending.result())
                    continue
                if not working.done() and not unwanted.is_set():
                    waited_s += mcp.PROGRESS_S
                    progress = mcp.progress_of(call.params, waited_s)
                    yield b": still here\n\n" if progress is None else _event(progress)
            if not unwanted.is_set():
                yield _event({"id": request_id, "result": working.result()})
        finally:
            del self._calls[key]
            leaving.cancel()
            working.cancel()
            await asyncio.gather(working, leaving, return_exceptions=True)


class _Call:
    """One tool call. `out` contains the requests to the client during the call."""

    def __init__(self, endpoint: McpEndpoint, caller: Caller, label: str, params: Json, has_forms: bool) -> None:
        self._endpoint = endpoint
        self._host = endpoint._host
        self._caller = caller
        self._label = label
        self.params = params
        self._has_forms = has_forms
        self.out: asyncio.Queue[Json] = asyncio.Queue()

    async def run(self) -> Json:
        try:
            call = mcp.ToolCall(self.params)
            asked = call.question
            told = await (self._notify(call.message) if asked is None else self._ask(call, asked))
            return mcp.result_of(self.params, told)
        except (mcp.BadArguments, AtlasBridgeError) as error:
            return mcp.failed(self.params, error)

    async def _notify(self, message: str) -> str:
        text = redact(escape_controls(message)).strip()
        if not text:
            raise mcp.BadArguments("there is nothing to report")
        await self._host.tell(f"{self._label}: {text}")
        return "Told."

    async def _ask(self, call: mcp.ToolCall, asked: Question) -> str:
        prompt_of(asked)  # raises an error for an invalid question before any person is asked
        question = RemoteQuestion(new_id(), self._caller.identity, asked, self._label, call.ttl_s)
        waiting = asyncio.ensure_future(self._wait(question))
        form = self._show_form(call.form) if self._has_forms and call.form else None
        try:
            await asyncio.wait({one for one in (waiting, form) if one is not None}, return_when="FIRST_COMPLETED")
            if form is not None and not waiting.done() and (words := mcp.answer_in(form.result())):
                return words
            return call.told(*await waiting)  # if the form was closed, the question stays open elsewhere
        finally:
            waiting.cancel()
            if form is not None:
                form.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            self._host.questions.withdraw(question.session_id)

    async def _wait(self, question: RemoteQuestion) -> tuple[Handed, str]:
        stream = until_cut(self._host.questions.ask(question), self._host.cut)
        try:
            every = [told async for told in stream]
        finally:
            await stream.aclose()
        told = every[-1] if every else {}
        outcome = str(told.get("outcome", "withdrawn"))
        if outcome != "answered":
            return Handed("expired" if outcome == "expired" else "withdrawn"), ""
        return Handed("answered", Answer.from_json(told["answer"]), str(told["by"])), str(told["words"])

    def _show_form(self, shown: Json) -> asyncio.Future[Json]:
        name = new_id()
        key = f"{self._caller.key}:{name}"
        form = self._endpoint._forms[key] = asyncio.get_running_loop().create_future()
        form.add_done_callback(lambda _: self._endpoint._forms.pop(key, None))
        self.out.put_nowait({"id": name, "method": "elicitation/create", "params": shown})
        return form


def _event(message: Json) -> bytes:
    return b"event: message\ndata: " + json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n\n"


def _result(request_id: Any, result: Json) -> JSONResponse:
    return JSONResponse({"jsonrpc": "2.0", "id": request_id, "result": result})


def _error(request_id: Any, code: int, message: str) -> Response:
    return JSONResponse({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}, 400)
