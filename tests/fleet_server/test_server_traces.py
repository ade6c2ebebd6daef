"""A prompt is one trace: the machine's hub and the server add to it, and neither says anything of what was asked."""

from __future__ import annotations

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.support.fake_host import FakeHost
from tests.support.fleet import HubApi, new_machine
from tests.support.hubs import hub_process
from tests.support.waiting import wait_for

from atlasbridge.os.tracing import PromptTracer, ids_of


async def test_a_prompt_is_one_trace_from_the_byte_to_the_keys(fleet_server: HubApi, root: Path) -> None:
    machine = await new_machine(fleet_server, root)
    alice = await fleet_server.person("alice", "admin")
    spans = {"hub": InMemorySpanExporter(), "server": InMemorySpanExporter()}
    tracers = {name: PromptTracer(name, exporter) for name, exporter in spans.items()}
    fleet_server.context.trace = tracers["server"].span
    following = asyncio.create_task(tracers["hub"].follow(machine.hub.stream.listen()))
    prompt_id = machine.sit().ask(detect_s=0.25)
    (shown,) = await alice.sees(1)
    assert (await alice.decide(shown, "y"))["accepted"]
    await machine.stop()  # the stream ends with the hub
    await following
    for tracer in tracers.values():
        tracer.close()
    found = {span.name: span for exporter in spans.values() for span in exporter.get_finished_spans()}
    assert set(found) >= {"prompt", "host.detect", "decide", "host.type", "host.effect", "fleet.decide"}
    trace_id, first_id = ids_of(prompt_id)
    assert {span.context.trace_id for span in found.values()} == {trace_id}
    assert found["prompt"].context.span_id == first_id and found["prompt"].parent is None
    assert {span.parent.span_id for name, span in found.items() if name != "prompt" and span.parent} == {first_id}
    detected = found["host.detect"]
    assert detected.start_time and detected.end_time
    assert round((detected.end_time - detected.start_time) / 1e6) == 250
    assert "Continue" not in str([span.to_json() for span in found.values()])


def test_a_hub_sends_its_traces_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """A real hub and a collector that keeps what it is sent."""
    sent: list[bytes] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        with hub_process() as hub, FakeHost(hub.home) as host:
            prompt_id = host.raise_prompt()
            wait_for(hub.is_asked)
            replying = hub.popen("reply", prompt_id, "y")
            host.answer_typing()
            replying.communicate()
        told = b"".join(sent)  # protobuf keeps texts as they are
        assert b"host.detect" in told and b"host.type" in told and prompt_id.encode() in told
    finally:
        server.shutdown()
        server.server_close()
