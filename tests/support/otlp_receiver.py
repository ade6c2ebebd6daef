"""A collector of OpenTelemetry that keeps the spans that it is sent, each with the program that sent it."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True, slots=True)
class Sent:
    program: str
    name: str
    trace_id: bytes
    span_id: bytes
    parent_id: bytes
    began_ns: int
    ended_ns: int


@dataclass
class Receiver:
    url: str = ""
    raw: list[bytes] = field(default_factory=list)

    def spans(self) -> list[Sent]:
        found = []
        for body in self.raw:
            for one in ExportTraceServiceRequest.FromString(body).resource_spans:
                told = {given.key: given.value.string_value for given in one.resource.attributes}
                found += [
                    Sent(
                        told["service.name"],
                        span.name,
                        span.trace_id,
                        span.span_id,
                        span.parent_span_id,
                        span.start_time_unix_nano,
                        span.end_time_unix_nano,
                    )
                    for scope in one.scope_spans
                    for span in scope.spans
                ]
        return found


@contextmanager
def otlp_receiver() -> Iterator[Receiver]:
    made = Receiver()

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            made.raw.append(gzip.decompress(body) if self.headers["content-encoding"] == "gzip" else body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    made.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
