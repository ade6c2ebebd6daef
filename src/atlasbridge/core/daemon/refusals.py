"""The record of replies that were turned away.  Of a flood the first ones are entries, of the rest one says how many.

So a loop that goes wrong, or somebody who tries, neither fills the disk nor disappears.
"""

from __future__ import annotations

import logging

from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.clock import Clock
from atlasbridge.core.errors import StoreError
from atlasbridge.core.prompt.model import Refusal
from atlasbridge.core.scheduler.service import Scheduler
from atlasbridge.core.store.ledger import Ledger
from atlasbridge.core.values import mutable
from atlasbridge.core.visible import visible

log = logging.getLogger(__name__)

WINDOW_S = 60.0
SINGLE = 20  # entries of their own in each window, for each person and reason

_Key = tuple[AuditEvent, str, str, str]  # what is recorded, the reason, who, and the operation where it is no reply


@mutable
class _Window:
    recorded: int = 0
    more: int = 0


class RefusalLog:
    def __init__(self, ledger: Ledger, clock: Clock, scheduler: Scheduler) -> None:
        self._ledger = ledger
        self._clock = clock
        self._scheduler = scheduler
        self._windows: dict[_Key, _Window] = {}

    def record(self, reason: Refusal, identity: str, session_id: str, prompt_id: str) -> None:
        """Without the value: what was not accepted may be a secret that was meant for another prompt."""
        self._record(AuditEvent.REPLY_REFUSED, reason, identity, session_id=session_id, prompt_id=prompt_id)

    def record_attempt(self, identity: str, session_id: str, prompt_id: str, op: str, pid: int) -> None:
        """A session's own program tried to do what only a person may."""
        ids = {"session_id": session_id, "prompt_id": prompt_id}
        self._record(AuditEvent.SELF_REFUSED, Refusal.SELF, identity, visible(op[:40]), **ids, pid=pid)

    def _record(self, event: AuditEvent, reason: Refusal, identity: str, op: str = "", **fields: str | int) -> None:
        if not self._windows:
            self._scheduler.set("refusals", self._clock.now() + WINDOW_S, self.close_window)
        key = (event, reason.value, visible(identity), op)
        window = self._windows.setdefault(key, _Window())
        if window.recorded >= SINGLE:
            window.more += 1
            return
        window.recorded += 1
        self._note(key, **fields)

    def close_window(self) -> None:
        """Whatever was only counted becomes an entry."""
        windows, self._windows = self._windows, {}
        for key, window in windows.items():
            if window.more:
                self._note(key, more=window.more)

    def _note(self, key: _Key, **fields: str | int) -> None:
        event, reason, identity, op = key
        fields |= {"op": op} if op else {}
        try:
            self._ledger.note(event, **fields, reason=reason, decided_by=identity)
        except StoreError as error:
            log.error("a refusal could not be recorded: %s", error)
