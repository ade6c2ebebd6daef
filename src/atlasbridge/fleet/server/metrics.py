"""Figures for Prometheus.  Counts and durations only: no name, no question, no answer.

Counters and histograms are this process's own; what stands in the database is read when somebody asks.
"""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from atlasbridge.fleet.server.database import Database

NAMESPACE = "atlasbridge_fleet"
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)
_QUERY = """
SELECT (SELECT count(*) FROM machines WHERE gone_at IS NULL) AS machines,
       (SELECT count(*) FROM machines WHERE gone_at IS NULL AND connected_to <> '') AS machines_connected,
       (SELECT count(*) FROM machines WHERE gone_at IS NULL AND log_fault <> '') AS machines_with_log_fault,
       (SELECT count(*) FROM machines WHERE gone_at IS NULL AND held <> '') AS machines_held,
       (SELECT count(*) FROM prompts WHERE is_open) AS open_prompts,
       (SELECT count(*) FROM decisions WHERE settled_at IS NULL) AS decisions_under_way,
       (SELECT count(*) FROM audit_pending) AS audit_unsealed,
       (SELECT count FROM audit_head) AS audit_entries,
       (SELECT coalesce(extract(epoch FROM %s - min(made_at)), 0) FROM decisions WHERE settled_at IS NULL)
           AS oldest_decision_seconds
"""
_TOLD = {
    "machines": "Machines of the fleet",
    "machines_connected": "Machines with a link to any server",
    "machines_with_log_fault": "Machines whose audit log is not what it was",
    "machines_held": "Machines that wait for a person to accept a restore or split a clone",
    "open_prompts": "Prompts that wait for an answer",
    "decisions_under_way": "Decisions of which their machine has not said anything yet",
    "audit_unsealed": "Entries that are not in the hash chain yet",
    "audit_entries": "Entries of the hash chain",
    "oldest_decision_seconds": "Age of the oldest decision under way",
    "links_here": "Links of machines to this server",
    "pages_here": "Pages that follow this server",
    "chats_carried_here": "1 if this server carries the chats",
}


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        made: dict[str, Any] = {"namespace": NAMESPACE, "registry": self.registry}
        self._gauges = {name: Gauge(name, about, **made) for name, about in _TOLD.items()}
        self.requests = Counter("http_requests", "HTTP requests by status", ["status"], **made)
        self.request_seconds = Histogram("http_request_seconds", "Duration of HTTP requests", buckets=_SECONDS, **made)
        self.decisions = Counter("decisions", "Decisions that were proposed here", **made)
        self.decision_seconds = Histogram(
            "decision_seconds", "From a person's decision to the machine's word", buckets=_SECONDS, **made
        )
        self.messages = Counter("machine_messages", "Messages of machines, by kind", ["kind"], **made)
        self.refused_logins = Counter("logins_refused", "Logins that were refused", **made)
        self.database_faults = Counter("database_faults", "Requests that PostgreSQL did not serve", **made)

    async def render(self, database: Database, **here: float) -> bytes:
        figures = (await database.rows(_QUERY, database.now()))[0]
        for name, value in {**figures, **here}.items():
            self._gauges[name].set(float(value))
        return bytes(generate_latest(self.registry))
