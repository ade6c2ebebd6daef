"""The mock model's HTTP server on loopback: finds the wire format by path, plays the scene, streams the answer."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.real_tools.mockmodel import wire
from tests.real_tools.mockmodel.scene import Request, Turn, play

REFUSALS = {
    400: {"status": "INVALID_ARGUMENT", "type": "invalid_request_error", "message": "The lab does not like this"},
    429: {"status": "RESOURCE_EXHAUSTED", "type": "rate_limit_error", "message": "Rate limit reached: try again later"},
    503: {"status": "UNAVAILABLE", "type": "overloaded_error", "message": "Overloaded"},
}
PAGE = b"<html><body><h1>Lab page</h1><p>The answer is 42.</p></body></html>"


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A tool that is interrupted hangs up, which is nothing to tell."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class Refused(Exception):
    """The service refuses this request."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class MockModel:
    """A server for tools that work in `folder`.  `requests` keeps what was asked: (path, scene, result count, call)."""

    def __init__(self, folder: str, port: int = 0) -> None:
        self.folder = folder
        self.requests: list[tuple[str, str, int, str]] = []
        self.heard: list[str] = []  # the newest tool results of each request
        self.newest = ""  # all that the model was last told
        self.stopping = threading.Event()
        self._refused = 0
        handler = type("BoundHandler", (_Handler,), {"model": self})
        self._server = _Server(("127.0.0.1", port), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="mock-model", daemon=True)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @contextmanager
    def serving(self) -> Iterator[MockModel]:
        self.start()
        try:
            yield self
        finally:
            self.stop()

    def turn(self, path: str, request: Request) -> Turn:
        turn = play(request, self.folder, self.address)
        if not request.side and self._refused < turn.refusals:
            self._refused += 1
            raise Refused(turn.status)
        self._refused = 0
        self.heard.append(request.heard)
        self.newest = self.newest if request.side else request.body
        self.requests.append((path, turn.scene, request.results, turn.call.name if turn.call else ""))
        self.stopping.wait(turn.delay_s)
        return turn


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: MockModel

    def log_message(self, format: str, *args: Any) -> None:
        """The lab keeps its own list of requests."""

    def do_HEAD(self) -> None:
        self._send(b"", "text/plain")

    def do_GET(self) -> None:
        if self.path.startswith("/page"):
            self._send(PAGE, "text/html")
        elif "/models" in self.path:
            self._send_json({"object": "list", "data": [{"id": "lab-model", "object": "model"}], "models": []})
        else:
            self._send_json({"error": "not found"}, 404)

    def do_POST(self) -> None:
        raw = self._read_body()
        path = self.path.partition("?")[0]
        try:
            body = json.loads(raw or b"{}")
            self._answer(path, body, raw.decode(errors="replace"))
        except ValueError:
            self._send_json({"error": "the body is not JSON"}, 400)
        except Refused as refused:
            about = {"code": refused.status, **REFUSALS[refused.status]}
            self._send_json({"type": "error", "error": about}, refused.status)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the tool gave up: Esc, or its end

    def _answer(self, path: str, body: dict[str, Any], text: str) -> None:
        if path.endswith(("/count_tokens", ":countTokens")):
            self._send_json({"input_tokens": 100, "totalTokens": 100})
        elif path.endswith("/messages"):
            turn = self._turn(path, wire.parse_messages(body), text)
            self._reply(body, lambda: wire.whole_messages(body, turn), wire.stream_messages(body, turn))
        elif path.endswith("/responses"):
            request = wire.parse_responses(body)
            turn = self._turn(path, request, text)
            self._reply(
                body, lambda: wire.whole_responses(body, request, turn), wire.stream_responses(body, request, turn)
            )
        elif path.endswith("/chat/completions"):
            request = wire.parse_chat(body)
            turn = self._turn(path, request, text)
            turn = replace(turn, text=wire.spoken_edit(turn)) if request.speaks else turn
            self._reply(body, lambda: wire.whole_chat(body, turn), wire.stream_chat(body, turn))
        elif "enerateContent" in path:
            self._answer_gemini(path, body, text)
        else:
            self._send_json({"ok": True})

    def _answer_gemini(self, path: str, body: dict[str, Any], text: str) -> None:
        turn = self._turn(path, wire.parse_gemini(body), text)
        shaped = wire.gemini_schema_answer(body)
        turn = replace(turn, text=shaped, call=None) if shaped else turn
        self._reply({"stream": "stream" in path}, lambda: wire.whole_gemini(turn), wire.stream_gemini(turn))

    def _turn(self, path: str, request: Request, text: str) -> Turn:
        return self.model.turn(path, replace(request, body=text))

    def _reply(self, body: dict[str, Any], whole: Any, stream: Iterable[wire.Part]) -> None:
        if not body.get("stream"):
            self._send_json(whole())
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for part in stream:
            if isinstance(part, float):
                self.model.stopping.wait(part)
            else:
                self.wfile.write(part)
                self.wfile.flush()

    def _read_body(self) -> bytes:
        if "chunked" not in self.headers.get("transfer-encoding", "").lower():
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        parts = []
        while size := int(self.rfile.readline().strip() or b"0", 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _send_json(self, data: dict[str, Any], status: int = 200) -> None:
        self._send(json.dumps(data).encode(), "application/json", status)

    def _send(self, body: bytes, kind: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
