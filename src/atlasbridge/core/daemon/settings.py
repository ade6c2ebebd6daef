"""What the hub needs to know of the configuration, as plain values.  `bootstrap` fills it in."""

from __future__ import annotations

from atlasbridge.core.routing.channel_worker import WorkerSettings
from atlasbridge.core.routing.policy import PolicySettings
from atlasbridge.core.values import field, frozen


@frozen
class Retention:
    """How long what has ended is kept."""

    prompts_s: float = 90 * 86_400.0
    sessions_s: float = 90 * 86_400.0
    inbox_s: float = 14 * 86_400.0
    session_logs_s: float = 14 * 86_400.0
    listed_s: float = 7 * 86_400.0  # an ended session is listed for so long


@frozen
class HubSettings:
    policy: PolicySettings = field(default_factory=PolicySettings)
    worker: WorkerSettings = field(default_factory=WorkerSettings)
    rate_limit_per_minute: int = 10
    type_timeout_s: float = 30.0  # how long a reply waits for the host's word that it was typed
    capture_timeout_s: float = 3.0
    host_patience_s: float = 10.0  # how long a reply waits for a host that is expected, as after a start of the hub
    host_lost_s: float = 60.0  # a host that lives reconnects long before
    graceful_timeout_s: float = 5.0
    cleanup_every_s: float = 3600.0
    heads_to: tuple[str, ...] = ()  # channels that keep the audit log's head, once a day
    members: frozenset[int] = frozenset()  # other users who decide as the hub's own does, where no session is behind it
    guests: frozenset[int] = frozenset()  # other users whose sessions may ask here; they may look, never decide
    transport: str = "auto"  # how peers come in: `core.hub_line` says what it means; taken at the start
    retention: Retention = field(default_factory=Retention)
