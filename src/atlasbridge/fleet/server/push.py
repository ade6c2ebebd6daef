"""Push messages of a fleet server: the same messages as a hub's, to the browsers of everybody who is allowed to answer.

All servers look at the same rows. The server that inserts or deletes a row sends the message, so a prompt is told once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from psycopg.types.json import Jsonb

from atlasbridge.core.errors import StoreError
from atlasbridge.core.policy.escalation import parse_quiet
from atlasbridge.core.scheduler.times import minute_of_day
from atlasbridge.core.values import replace
from atlasbridge.fleet.server.database import BOARD, Database, Wakeups, called_within
from atlasbridge.fleet.server.lists import JOINED, SESSION, read_asked, read_session
from atlasbridge.fleet.server.people import ALLOWED, Caller
from atlasbridge.web.push import (
    Message,
    PushSender,
    hushed,
    is_available,
    is_known_service,
    new_key,
    render_ask,
    render_settled,
)
from atlasbridge.web.settings import PUSH_SERVICES, WebSettings

log = logging.getLogger(__name__)

LOOK_S = 5.0  # how often the rows are read without a notification
CALM_S = 0.2
LATEST_S = 600.0  # nothing that has waited for longer is told; the page and the chats show it
PRESENCE_S = 20.0  # a person who has just typed at that terminal is asked there first
SETTLED_S = 3600.0  # how long a sleeping phone can still be told that a prompt is settled
MOST_OF_A_LOGIN = 4
SETTLED = "No longer waiting."

_ALLOWED = ALLOWED.replace("%(person)s", "l.person").replace("%(may)s", "'answer'")
_CLAIM = f"""
INSERT INTO push_messages (endpoint, machine_id, prompt_id)
SELECT s.endpoint, p.machine_id, p.prompt_id FROM push_subscriptions s
JOIN logins l ON l.id = s.login_id AND l.expires_at > %(now)s
JOIN prompts p ON p.is_open AND p.raised_at >= greatest(s.made_at, %(since)s)
    AND (p.last_key_at IS NULL OR p.last_key_at < %(away)s)
JOIN machines m ON m.id = p.machine_id
WHERE {_ALLOWED} AND NOT EXISTS (
    SELECT 1 FROM push_messages t
    WHERE (t.endpoint, t.machine_id, t.prompt_id) = (s.endpoint, p.machine_id, p.prompt_id)
) ON CONFLICT DO NOTHING RETURNING endpoint, machine_id, prompt_id
"""
_RELEASE = """
DELETE FROM push_messages t USING prompts p
WHERE (p.machine_id, p.prompt_id) = (t.machine_id, t.prompt_id) AND NOT p.is_open
RETURNING t.endpoint, t.machine_id, t.prompt_id
"""
_SHOWN = f"""
WITH told AS ({{changed}})
SELECT told.endpoint, b.keys, who.quiet, who.zone, d.sentence, p.machine_id, m.name AS machine, p.prompt_id,
    p.session_id, p.body, p.folder, p.raised_at, p.expires_at, p.seq, p.state, p.last_key_at, s.body AS session,
    s.state AS session_state
{JOINED} {SESSION} JOIN told ON (told.machine_id, told.prompt_id) = (p.machine_id, p.prompt_id)
JOIN push_subscriptions b ON b.endpoint = told.endpoint JOIN logins l ON l.id = b.login_id
JOIN people who ON who.name = l.person ORDER BY p.raised_at
"""


class FleetPush:
    def __init__(self, database: Database, wakeups: Wakeups, url: str) -> None:
        self._database = database
        self._wakeups = wakeups
        self._url = url
        self.hosts: tuple[str, ...] = PUSH_SERVICES
        self._pem = ""
        self._gone: set[str] = set()
        self._is_wanted = False  # whether any browser has subscribed
        self._ask_at = 0.0
        contact = url if url.startswith("https:") else WebSettings().push_contact
        self._sender = PushSender(database.clock, lambda: self._pem.encode(), contact, self._gone.add)

    available = staticmethod(is_available)

    def allows(self, endpoint: str) -> bool:
        return is_known_service(endpoint, self.hosts)

    async def public_key(self) -> str:
        """The public key for PushManager.subscribe; "" without the extra."""
        if not self.available():
            return ""
        await self._load_key()
        return self._sender.public_key()

    async def _load_key(self) -> None:
        if not self._pem:
            await self._database.rows(
                "INSERT INTO push_key (pem) VALUES (%s) ON CONFLICT DO NOTHING", new_key().decode()
            )
            self._pem = (await self._database.rows("SELECT pem FROM push_key"))[0]["pem"]

    async def subscribe(self, caller: Caller, endpoint: str, keys: dict[str, str]) -> None:
        async with self._database.transaction() as connection:
            await connection.execute("DELETE FROM push_subscriptions WHERE endpoint = %s", (endpoint,))
            await connection.execute(
                "DELETE FROM push_subscriptions WHERE endpoint IN (SELECT endpoint FROM push_subscriptions"
                " WHERE login_id = %s ORDER BY made_at DESC OFFSET %s)",
                (caller.login_id, MOST_OF_A_LOGIN - 1),
            )
            await connection.execute(
                "INSERT INTO push_subscriptions (endpoint, login_id, keys, made_at) VALUES (%s, %s, %s, %s)",
                (endpoint, caller.login_id, Jsonb(keys), self._database.now()),
            )
        self._is_wanted = True

    async def unsubscribe(self, caller: Caller, endpoint: str) -> bool:
        gone = await self._database.rows(
            "DELETE FROM push_subscriptions WHERE endpoint = %s AND login_id = %s RETURNING 1 AS gone",
            endpoint,
            caller.login_id,
        )
        return bool(gone)

    async def run(self) -> None:
        if not self.available():
            return
        try:
            with self._wakeups.waiting(BOARD) as called:
                while True:
                    called.clear()
                    try:
                        await self.look()
                    except StoreError as error:
                        log.warning("push messages wait: %s", error)
                    await asyncio.sleep(CALM_S)
                    await called_within(called, LOOK_S)  # a person may have left a terminal
        finally:
            await self._sender.close()

    async def look(self) -> None:
        """Send what has not been sent, and withdraw what is settled. Without a subscription one small query every few
        seconds is enough.
        """
        if (asked_at := self._database.clock.now()) >= self._ask_at:
            self._ask_at = asked_at + LOOK_S
            self._is_wanted = bool(await self._database.rows("SELECT 1 FROM push_subscriptions LIMIT 1"))
        if not self._is_wanted:
            return
        for endpoint in tuple(self._gone):
            await self._database.rows("DELETE FROM push_subscriptions WHERE endpoint = %s", endpoint)
            self._gone.discard(endpoint)
        now = self._database.now()
        since, away = now - timedelta(seconds=LATEST_S), now - timedelta(seconds=PRESENCE_S)
        times = {"now": now, "since": since, "away": away}
        asked = await self._database.rows(_SHOWN.format(changed=_CLAIM), times)
        settled = await self._database.rows(_SHOWN.format(changed=_RELEASE))
        if asked or settled:
            await self._load_key()
        for row in asked:
            self._sender.put(_subscription(row), self._ask(row))
        until = self._database.clock.now() + SETTLED_S
        for row in settled:
            record = self._record(row)
            self._sender.settle(
                _subscription(row), render_settled(record, row["sentence"] or SETTLED, until), told=True
            )

    async def idle(self) -> None:
        await self._sender.idle()

    def _record(self, row: Mapping[str, Any]) -> Any:
        record = read_asked(row, "", self._database.clock, self._url).record
        ids = {name: f"{row['machine_id']}.{row[name]}" for name in ("prompt_id", "session_id")}
        return replace(record, **ids)

    def _ask(self, row: Mapping[str, Any]) -> Message:
        session = read_session({**row, "body": row["session"] or {}, "state": row["session_state"] or "ended"})
        named = replace(session, label=f"{row['machine']}: {session.label or session.tool}")
        record = self._record(row)
        message = render_ask(record, named, record.deadline)
        minute = minute_of_day(row["zone"], self._database.clock.wall())
        return hushed(message) if any(parse_quiet(one).covers(minute) for one in row["quiet"]) else message


def _subscription(row: Mapping[str, Any]) -> dict[str, Any]:
    return {"endpoint": row["endpoint"], "keys": row["keys"]}
