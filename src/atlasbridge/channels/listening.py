"""What every chat channel asks before it passes a reply on: who is it, was it here before, is it too much.

The answers are the channel's own politeness and thrift; whether a reply counts is decided by the gate alone.
"""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from typing import Any

from atlasbridge.core.ports import HubApi
from atlasbridge.core.rate import RateWindow
from atlasbridge.core.session.model import SessionRecord, SessionState

log = logging.getLogger(__name__)
KEPT_UPDATES = 20_000
KEPT_STRANGERS = 1000
WITHHELD = '{"kept": "ids only: a secret is being asked for"}'


class Strangers:
    """Unknown people are told nothing, and noted once each."""

    def __init__(self, hub_api: HubApi, channel: str) -> None:
        self._hub_api, self._channel = hub_api, channel
        self._seen: set[str] = set()

    def note(self, who: str) -> None:
        if who not in self._seen and len(self._seen) < KEPT_STRANGERS:
            self._seen.add(who)
            log.warning("a %s message from %s, who is not allowed, was dropped", self._channel, who)
            self._hub_api.note("CHANNEL_STRANGER", channel=self._channel, identity=f"{self._channel}:{who}")


class SeenUpdates:
    """Commits every update to the hub's inbox once, and recognises its copies."""

    def __init__(self, hub_api: HubApi, channel: str) -> None:
        self._hub_api, self._channel = hub_api, channel
        self._seen: OrderedDict[str, None] = OrderedDict()

    async def take(self, update_id: str, payload: str) -> str:
        """ "new"; "copy": this process has it already; "again": an earlier process received it, perhaps in vain."""
        if update_id in self._seen:
            return "copy"
        secret = any(record.prompt.secret for record in self._hub_api.open_prompts())
        fresh = await self._hub_api.accept_update(self._channel, update_id, WITHHELD if secret else payload)
        if update_id in self._seen:  # its copy came while we waited for the store
            return "copy"
        self._know(update_id)
        return "new" if fresh else "again"

    async def settle(self, update_id: str) -> None:
        """It has had its effect, whatever that was."""
        await self._hub_api.settle_update(self._channel, update_id)

    def left_over(self) -> list[tuple[str, Any]]:
        """What an earlier process had accepted when it died, with its payload; None where that was withheld."""
        found = self._hub_api.pending_updates(self._channel)
        for update_id, _ in found:
            self._know(update_id)
        return [(update_id, None if payload == WITHHELD else json.loads(payload)) for update_id, payload in found]

    def _know(self, update_id: str) -> None:
        self._seen[update_id] = None
        while len(self._seen) > KEPT_UPDATES:
            self._seen.popitem(last=False)


class Throttle:
    """The inbound limit of each session, with one warning for each pause.

    An answer that was accepted does not count, nor do words that did not fit: only one reply to a prompt is ever
    accepted, and who mistypes is no attacker.  All a person says together has a wider limit of its own.
    """

    def __init__(self, replies_per_minute: int) -> None:
        self._window = RateWindow(replies_per_minute)
        self._everything = RateWindow(replies_per_minute * 6)
        self._warned_until: dict[str, float] = {}

    def admit(self, session_id: str, now: float) -> tuple[str, bool]:
        """What to tell the sender ("" when the reply may pass), and whether the operators are to be warned."""
        wait_s = self._window.admit(session_id, now) or self._everything.admit(session_id, now)
        if wait_s <= 0:
            return "", False
        warn = self._warned_until.get(session_id, 0.0) <= now
        if warn:
            self._warned_until[session_id] = now + wait_s
        return f"Too many replies in a minute for this session. Wait {int(wait_s) + 1} seconds.", warn

    def forgive(self, session_id: str) -> None:
        """The reply that was admitted last was an honest one."""
        self._window.forget_last(session_id)


def active(sessions: list[SessionRecord]) -> list[SessionRecord]:
    return [session for session in sessions if session.state is SessionState.ACTIVE]
