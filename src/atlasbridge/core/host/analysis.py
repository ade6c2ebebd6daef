"""Builds the analysis of a session: the watchdog with its detector, the typist, and the connection to the hub.

It is the same for a session in its own host and for one on a Windows console. The differences (where output comes from,
how keys are written) are parameters.
"""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING

from atlasbridge.core.clock import Clock, iso
from atlasbridge.core.host.hub.connection import HubSide
from atlasbridge.core.host.ports import HostParts
from atlasbridge.core.host.terminal.input_writer import InputWriter
from atlasbridge.core.host.terminal.ring import Ring
from atlasbridge.core.host.typing.hook_connection import HookConnection
from atlasbridge.core.host.typing.steps import Walk
from atlasbridge.core.host.typing.typed import AdapterConnection
from atlasbridge.core.host.typing.typist import Typist
from atlasbridge.core.host.watchdog import StallWatchdog
from atlasbridge.core.prompt.redact import redact_text
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.session.settings import Plan, SessionSettings
from atlasbridge.core.tty import Pty, Size

if TYPE_CHECKING:
    from atlasbridge.core.detection.events import Event
    from atlasbridge.core.host.ports import Outflow


def build_slow_half(
    plan: Plan,
    pty: Pty,
    size: Size,
    parts: HostParts,
    settings: SessionSettings,
    clock: Clock,
    started_at: float,
    output: Outflow,
    ring: Ring,
    input_writer: InputWriter,
    events: deque[Event | bytes],
    adapter: AdapterConnection | None = None,
) -> tuple[StallWatchdog, HubSide, HookConnection]:
    detector, probe = parts.judge(plan, pty, size)
    watch = StallWatchdog(detector, probe, output, ring, input_writer, clock, settings, events, pty.unread)
    record = SessionRecord(
        session_id=plan.session_id,
        tool=plan.tool,
        command=redact_text(plan.command, detector.secrets),
        cwd=plan.cwd,
        pid=pty.pid,
        host_pid=os.getpid(),
        started_at=iso(started_at),
        rows=size.rows,
        cols=size.cols,
        label=plan.label,
        channels=plan.channels,
    )
    hook = HookConnection()
    watch.when_gone = hook.over
    typist = Typist(Walk(watch, input_writer, pty, clock, settings), parts.encode, hook, adapter)
    hub = HubSide(record, parts.hub_path, plan.ttl_s, watch, typist, clock, settings, parts.start_hub, plan.keep)
    return watch, hub, hook
