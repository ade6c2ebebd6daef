"""Checks of every chat channel before it passes a reply on: known sender, not a copy, not too many replies.

These checks keep a channel polite and cheap. Only the gate decides whether a reply is accepted.
"""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from typing import Any

from atlasbridge.channels.language import t
from atlasbridge.core.ports import HubApi
from atlasbridge.core.rate import RateWindow
from atlasbridge.core.session.model import SessionRecord, SessionState

log = logging.getLogger(__name__)
KEPT_UPDATES = 20_000
KEPT_STRANGERS = 1000
WITHHELD = '{"kept": "ids only: a secret is being asked for"}'


class Strangers:
    """Unknown senders get no answer and are logged once each."""

    def __init__(self, hub_api: HubApi, channel: str) -> None:
        self._hub_api, self._channel = hub_api, channel
        self._seen: set[str] = set()

    def note(self, who: str) -> None:
        if who not in self._seen and len(self._seen) < KEPT_STRANGERS:
            self._seen.add(who)
            log.warning("a %s message from %s, who is not allowed, was dropped", self._channel, who)
            self._hub_api.note("CHANNEL_STRANGER", channel=self._channel, identity=f"{self._channel}:{who}")


class SeenUpdates:
    """Stores every update in the hub's inbox once, and recognises copies."""

    def __init__(self, hub_api: HubApi, channel: str) -> None:
        self._hub_api, self._channel = hub_api, channel
        self._seen: OrderedDict[str, None] = OrderedDict()

    async def take(self, update_id: str, payload: str) -> str:
        """Return "new", "copy" (this process has it already) or "again" (an earlier process received it and perhaps
        lost it)."""
        if update_id in self._seen:
            return "copy"
        secret = any(record.prompt.secret for record in self._hub_api.open_prompts())
        fresh = await self._hub_api.accept_update(self._channel, update_id, WITHHELD if secret else payload)
        if update_id in self._seen:  # a copy arrived while we waited for the store
            return "copy"
        self._know(update_id)
        return "new" if fresh else "again"

    async def settle(self, update_id: str) -> None:
        """Mark the update as processed."""
        await self._hub_api.settle_update(self._channel, update_id)

    def left_over(self) -> list[tuple[str, Any]]:
        """Return updates that an earlier process accepted but did not finish. A withheld payload is None."""
        found = self._hub_api.pending_updates(self._channel)
        for update_id, _ in found:
            self._know(update_id)
        return [(update_id, None if payload == WITHHELD else json.loads(payload)) for update_id, payload in found]

    def _know(self, update_id: str) -> None:
        self._seen[update_id] = None
        while len(self._seen) > KEPT_UPDATES:
            self._seen.popitem(last=False)


class Throttle:
    """Limits the replies to each session, with one warning per pause.

    Accepted answers and invalid texts do not count: a prompt accepts only one reply, and a typo is not an attack. A
    second, wider limit counts everything.
    """

    def __init__(self, replies_per_minute: int) -> None:
        self._window = RateWindow(replies_per_minute)
        self._everything = RateWindow(replies_per_minute * 6)
        self._warned_until: dict[str, float] = {}

    def admit(self, session_id: str, now: float) -> tuple[str, bool]:
        """Return the text for the sender ("" if the reply is allowed), and whether to warn the operators."""
        wait_s = self._window.admit(session_id, now) or self._everything.admit(session_id, now)
        if wait_s <= 0:
            return "", False
        warn = self._warned_until.get(session_id, 0.0) <= now
        if warn:
            self._warned_until[session_id] = now + wait_s
        said = "Too many replies in a minute for this session. Wait {count} seconds."
        return t(said, count=int(wait_s) + 1), warn

    def forgive(self, session_id: str) -> None:
        """Do not count the last admitted reply, because it was legitimate."""
        self._window.forget_last(session_id)


def active(sessions: list[SessionRecord]) -> list[SessionRecord]:
    return [session for session in sessions if session.state is SessionState.ACTIVE]
