"""The settings that the hub uses, as plain values. `bootstrap` fills them in."""

from __future__ import annotations

from atlasbridge.core.routing.channel_worker import WorkerSettings
from atlasbridge.core.routing.policy import PolicySettings
from atlasbridge.core.values import field, frozen


@frozen
class Retention:
    """How long ended items are kept."""

    prompts_s: float = 90 * 86_400.0
    sessions_s: float = 90 * 86_400.0
    inbox_s: float = 14 * 86_400.0
    session_logs_s: float = 14 * 86_400.0
    listed_s: float = 7 * 86_400.0  # how long an ended session is listed


@frozen
class HubSettings:
    policy: PolicySettings = field(default_factory=PolicySettings)
    worker: WorkerSettings = field(default_factory=WorkerSettings)
    rate_limit_per_minute: int = 10
    type_timeout_s: float = 30.0  # how long a reply waits for the host to report that it was typed
    capture_timeout_s: float = 3.0
    host_patience_s: float = 10.0  # how long a reply waits for a host to reconnect, such as after a start of the hub
    host_lost_s: float = 60.0  # a host that is alive reconnects much earlier
    graceful_timeout_s: float = 5.0
    cleanup_every_s: float = 3600.0
    heads_to: tuple[str, ...] = ()  # channels that receive the audit log's head once a day
    # other users who decide like the hub's own user, when no session is among their ancestors
    members: frozenset[int] = frozenset()
    guests: frozenset[int] = frozenset()  # other users whose sessions can ask here; they can read, but never decide
    transport: str = "auto"  # how peers connect; see `core.hub_connection`. Only read at the start
    retention: Retention = field(default_factory=Retention)
