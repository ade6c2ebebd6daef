"""A prompt is one trace: the machine's hub and the server add to it, and neither says anything of what was asked."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.support.fake_host import FakeHost
from tests.support.fleet import HubApi, new_machine
from tests.support.hubs import hub_process
from tests.support.otlp_receiver import otlp_receiver
from tests.support.terminal import run_in
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
    with otlp_receiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
        with hub_process() as hub, FakeHost(hub.home) as host:
            prompt_id = host.raise_prompt()
            wait_for(hub.is_asked)
            replying = hub.popen("reply", prompt_id, "y")
            host.answer_typing()
            replying.communicate()
        told = b"".join(receiver.raw)  # protobuf keeps texts as they are
        assert b"host.detect" in told and b"host.type" in told and prompt_id.encode() in told


def test_processes_that_know_only_the_prompt_send_one_trace(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program in a real terminal, a hub, a fleet server and a person there, each a process of its own."""
    with otlp_receiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
        with hub_process(start=False) as hub, serving(database) as (url, atlasbridge):
            link = atlasbridge("people", "add", "alice", "--admin").split()[-1]
            (address,) = re.findall(r"'(http\S+)'", atlasbridge("invite"))
            joined = hub.cli("fleet", "join", address, "--name", "box")
            assert joined.returncode == 0, joined.stderr
            hub.start()
            asks = ("sh", "-c", "read -p 'Continue? (y/n) ' x; echo got $x; sleep 0.5")
            with run_in(hub.home.root, *asks, options=()) as terminal, httpx.Client(base_url=url, timeout=60) as alice:
                token = link.partition("#login=")[2]
                assert alice.post("/api/v1/login", json={"link": token}).status_code == 200
                (shown,) = wait_for(lambda: alice.get("/api/v1/prompts").json()["prompts"])
                told = alice.post(f"/api/v1/prompts/{shown['prompt_id']}/reply", json={"value": "y"}).json()
                assert told["stage"] == "typed", told
                terminal.wait_for("got y")
                assert terminal.wait_exit() == 0
            parts = {"host.detect", "channel.server", "decide", "host.type", "host.effect", "prompt", "fleet.decide"}
            wait_for(lambda: parts <= {one.name for one in receiver.spans()})
        prompt_id = shown["prompt_id"].partition(".")[2]
        spans = {one.name: one for one in receiver.spans()}
        assert {one.trace_id for one in spans.values()} == {ids_of(prompt_id)[0].to_bytes(16)}
        first = spans.pop("prompt")
        assert not first.parent_id and {one.parent_id for one in spans.values()} == {first.span_id}
        senders = {one.name: one.program for one in spans.values()}
        assert senders["host.type"] == "atlasbridge-hub" and senders["fleet.decide"] == "atlasbridge-fleet"
        order = [spans[name].ended_ns for name in ("host.detect", "channel.server", "decide", "host.type")]
        assert order == sorted(order) and all(one.began_ns >= first.began_ns for one in spans.values())
        assert b"Continue" not in b"".join(receiver.raw)


@contextmanager
def serving(database: str) -> Iterator[tuple[str, Callable[..., str]]]:
    """The address of a fleet server, and `atlasbridge fleet …` beside it."""
    fleet = [sys.executable, "-m", "atlasbridge", "fleet"]
    environ = {**os.environ, "ATLASBRIDGE_FLEET_DATABASE": database}

    def run(*words: str) -> str:
        done = subprocess.run([*fleet, *words], env=environ, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("migrate")
    with subprocess.Popen([*fleet, "serve", "--port", "0"], env=environ, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = environ["ATLASBRIDGE_FLEET_URL"] = server.stdout.readline().split()[-1]
        try:
            yield url, run
        finally:
            server.send_signal(signal.SIGTERM)
