"""Traces of prompts with OpenTelemetry. Imported only if the extra `tracing` is installed and an OTLP endpoint is
set.

A prompt is one trace. Its ids are derived from the prompt's id, so the hub and the fleet server add spans to the
same trace without any exchange. A span has ids, names and times, never the text of a question or an answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

from atlasbridge.core.clock import parse_iso

MOST_OPEN = 10_000
ENDS = ("resolved", "expired", "withdrawn", "canceled", "failed")


class _Ids(RandomIdGenerator):
    """Random ids, except for the first span of a prompt."""

    chosen: tuple[int, int] | None = None

    def generate_trace_id(self) -> int:
        return self.chosen[0] if self.chosen else super().generate_trace_id()

    def generate_span_id(self) -> int:
        return self.chosen[1] if self.chosen else super().generate_span_id()


def ids_of(prompt_id: str) -> tuple[int, int]:
    """The ids of a prompt's trace and of its first span."""
    digest = hashlib.sha256(prompt_id.encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:16]) or 1, int.from_bytes(digest[16:24]) or 1


class PromptTracer:
    def __init__(self, service: str, exporter: SpanExporter | None = None) -> None:
        if exporter is None:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

            exporter = OTLPSpanExporter()
        self._ids = _Ids()
        self._provider = TracerProvider(resource=Resource.create({"service.name": service}), id_generator=self._ids)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("atlasbridge")
        self._moments: dict[str, dict[str, float]] = {}  # for each prompt: the time of each event

    def close(self) -> None:
        self._provider.shutdown()

    def span(self, prompt_id: str, name: str, began: float, ended: float, /, **more: str) -> None:
        """Add a span to the trace of a prompt. Times are wall-clock times."""
        trace_id, first_id = ids_of(prompt_id)
        parent = trace.SpanContext(trace_id, first_id, is_remote=True, trace_flags=trace.TraceFlags(1))
        within = trace.set_span_in_context(trace.NonRecordingSpan(parent), Context())
        self._add(within, name, began, ended, {"prompt_id": prompt_id, **more})

    def _add(self, within: Context, name: str, began: float, ended: float, more: Mapping[str, str]) -> None:
        span = self._tracer.start_span(name, within, start_time=int(began * 1e9), attributes=dict(more))
        span.end(int(max(began, ended) * 1e9))

    async def follow(self, events: AsyncIterator[dict[str, Any]]) -> None:
        """Follow the events of a hub, from the last byte of a prompt's screen to the keys that answered it."""
        async for event in events:
            kind, _, what = str(event["event"]).partition(".")
            if kind in ("prompt", "reply") and event.get("prompt_id"):
                self._take(str(event["prompt_id"]), what, event)

    def _take(self, prompt_id: str, what: str, event: Mapping[str, Any]) -> None:
        at = parse_iso(str(event["at"]))
        if what == "raised":
            while len(self._moments) >= MOST_OPEN:
                del self._moments[next(iter(self._moments))]
            began = at - float(event.get("detect_s") or 0.0)
            self._moments[prompt_id] = {"began": began, "raised": at}
            return self.span(prompt_id, "host.detect", began, at)
        known = self._moments.get(prompt_id)
        if known is None:
            return None  # the prompt was raised before this hub started
        known.setdefault(what, at)
        channel = str(event.get("channel") or "")
        if what == "routed":
            self.span(prompt_id, f"channel.{channel}", known["raised"], at)
        elif what == "received":
            self.span(prompt_id, "decide", known["raised"], at, channel=channel)
        elif what == "injected":
            self.span(prompt_id, "host.type", known.get("received", at), at, way=str(event.get("way") or "keys"))
        elif what in ENDS:
            if "injected" in known:
                self.span(prompt_id, "host.effect", known["injected"], at)
            self._end(prompt_id, what, known, at)
            del self._moments[prompt_id]
        return None

    def _end(self, prompt_id: str, state: str, known: Mapping[str, float], at: float) -> None:
        self._ids.chosen = ids_of(prompt_id)
        try:
            self._add(Context(), "prompt", known["began"], at, {"prompt_id": prompt_id, "state": state})
        finally:
            self._ids.chosen = None
