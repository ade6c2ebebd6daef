"""The objects that all parts of the hub share; created once by `service.Hub`."""

from __future__ import annotations

from atlasbridge.core.clock import Clock
from atlasbridge.core.daemon.hosts import HostBook
from atlasbridge.core.daemon.rules import RuleService
from atlasbridge.core.daemon.stream import EventStream
from atlasbridge.core.routing.router import PromptRouter
from atlasbridge.core.scheduler.service import Scheduler
from atlasbridge.core.store.ledger import Ledger
from atlasbridge.core.store.rounds import Rounds
from atlasbridge.core.values import frozen


@frozen
class HubParts:
    ledger: Ledger
    clock: Clock
    stream: EventStream
    hosts: HostBook
    router: PromptRouter
    scheduler: Scheduler
    rules: RuleService
    rounds: Rounds
