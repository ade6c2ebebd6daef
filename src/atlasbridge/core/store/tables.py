"""The smaller tables: deliveries, grants, inbox, later, notes, notices, outbox, requests and votes.

First the table `deliveries`: the message in a channel under which a prompt was shown.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from typing import Final

from atlasbridge.core.policy.escalation import Later
from atlasbridge.core.policy.pattern import Shape
from atlasbridge.core.policy.rule import Grant, GrantShape
from atlasbridge.core.prompt.model import Refusal, Reject
from atlasbridge.core.values import frozen


def insert_delivery(
    connection: sqlite3.Connection, prompt_id: str, channel: str, message_id: str, recipient: str, at: str
) -> bool:
    """Returns False if this delivery is already stored."""
    cursor = connection.execute(
        "INSERT INTO deliveries (prompt_id, channel, message_id, recipient, sent_at) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        (prompt_id, channel, message_id, recipient, at),
    )
    return cursor.rowcount == 1


def delivered_messages(connection: sqlite3.Connection, prompt_id: str, channel: str) -> list[str]:
    rows = connection.execute(
        "SELECT message_id FROM deliveries WHERE prompt_id = ? AND channel = ? ORDER BY rowid", (prompt_id, channel)
    )
    return [row[0] for row in rows]


def delivered_prompt(connection: sqlite3.Connection, channel: str, message_id: str) -> str | None:
    """The newest prompt shown under that message."""
    row = connection.execute(
        "SELECT prompt_id FROM deliveries WHERE channel = ? AND message_id = ? ORDER BY rowid DESC LIMIT 1",
        (channel, message_id),
    ).fetchone()
    return row[0] if row else None


# The table `grants`: temporary permissions. A use is deducted in the transaction that claims the prompt.

_COLUMNS = "id, shape, tool, session_id, folder, deadline, uses_left, by, created_at"


def insert_grant(connection: sqlite3.Connection, grant: Grant, boot_id: str, prompt_id: str) -> None:
    shape = {
        "commands": [list(item.words) for item in grant.shape.commands],
        "path": grant.shape.path,
        "host": grant.shape.host,
    }
    connection.execute(
        f"INSERT INTO grants ({_COLUMNS}, boot_id, prompt_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            grant.grant_id,
            json.dumps(shape),
            grant.tool,
            grant.session_id,
            grant.folder,
            grant.deadline,
            grant.uses_left,
            grant.by,
            grant.created_at,
            boot_id,
            prompt_id,
        ),
    )


def live_grants(connection: sqlite3.Connection, boot_id: str, now: float) -> list[Grant]:
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM grants WHERE revoked_at IS NULL AND boot_id = ?"
        " AND (deadline IS NULL OR deadline > ?) AND (uses_left IS NULL OR uses_left > 0) ORDER BY rowid",
        (boot_id, now),
    )
    return [_grant(row) for row in rows]


def has_grant(connection: sqlite3.Connection, short_id: str, boot_id: str, now: float) -> bool:
    """Whether the grant still has a use left and has not ended."""
    return any(grant.grant_id.startswith(short_id) for grant in live_grants(connection, boot_id, now))


def use_grant(connection: sqlite3.Connection, short_id: str) -> None:
    connection.execute("UPDATE grants SET uses_left = uses_left - 1 WHERE substr(id, 1, 8) = ?", (short_id,))


def revoke_grants(connection: sqlite3.Connection, beginning: str, at: str) -> list[str]:
    """Returns the ids of the ended grants; `beginning=""` means all."""
    rows = connection.execute(
        "UPDATE grants SET revoked_at = ? WHERE revoked_at IS NULL AND substr(id, 1, ?) = ? RETURNING id",
        (at, len(beginning), beginning),
    )
    return [str(row[0]) for row in rows]


def _grant(row: tuple[object, ...]) -> Grant:
    data = json.loads(str(row[1]))
    shape = GrantShape(tuple(Shape(tuple(words)) for words in data["commands"]), data["path"], data["host"])
    return Grant(str(row[0]), shape, *row[2:])  # type: ignore[arg-type]


# The table `inbox`: updates that a channel received, stored before they are acknowledged to the service.


def insert_update(connection: sqlite3.Connection, channel: str, update_id: str, payload: str, at: str) -> bool:
    """Returns False if this update was stored before."""
    cursor = connection.execute(
        "INSERT INTO inbox (channel, update_id, payload, received_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (channel, update_id, payload, at),
    )
    return cursor.rowcount == 1


def settle_update(connection: sqlite3.Connection, channel: str, update_id: str) -> None:
    """The update has been processed: its number is kept, to recognise a duplicate, and its payload is deleted."""
    connection.execute("UPDATE inbox SET payload = '' WHERE channel = ? AND update_id = ?", (channel, update_id))


def pending_updates(connection: sqlite3.Connection, channel: str) -> list[tuple[str, str]]:
    """Returns ids and payloads of updates that were never settled, oldest first."""
    rows = connection.execute(
        "SELECT update_id, payload FROM inbox WHERE channel = ? AND payload != '' ORDER BY received_at, rowid",
        (channel,),
    )
    return [(str(row[0]), str(row[1])) for row in rows]


def delete_updates_before(connection: sqlite3.Connection, moment: str) -> int:
    return connection.execute("DELETE FROM inbox WHERE received_at < ?", (moment,)).rowcount


# The table `later`: scheduled answers and snoozes.

_LATER_COLUMNS = "id, prompt_id, kind, due_at, channel, identity, value, as_text, place, created_at, ended_at, outcome"


def insert_scheduled(connection: sqlite3.Connection, later: Later) -> None:
    connection.execute(
        f"INSERT INTO later ({_LATER_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, '')",
        (
            later.later_id,
            later.prompt_id,
            later.kind,
            later.due_at,
            later.channel,
            later.identity,
            later.value,
            int(later.as_text),
            later.place,
            later.created_at,
        ),
    )


def select_scheduled(connection: sqlite3.Connection, where: str, parameters: tuple[str, ...] = ()) -> list[Later]:
    rows = connection.execute(f"SELECT {_LATER_COLUMNS} FROM later WHERE {where} ORDER BY due_at, rowid", parameters)
    return [_later(row) for row in rows]


def end_scheduled(connection: sqlite3.Connection, later_id: str, at: str, outcome: str) -> Later | None:
    """Returns None if it has already ended."""
    row = connection.execute(
        f"UPDATE later SET ended_at = ?, outcome = ? WHERE id = ? AND ended_at IS NULL RETURNING {_LATER_COLUMNS}",
        (at, outcome, later_id),
    ).fetchone()
    return _later(row) if row else None


def _later(row: tuple[object, ...]) -> Later:
    names = ("later_id", "prompt_id", "kind", "due_at", "channel", "identity", "value", "as_text", "place")
    values = dict(zip((*names, "created_at", "ended_at", "outcome"), (value or "" for value in row), strict=True))
    return Later(**{**values, "as_text": bool(values["as_text"])})  # type: ignore[arg-type]


# The table `notes`: small durable values, such as a poll offset or a chat's default session.


def put_note(connection: sqlite3.Connection, key: str, value: str, at: str) -> None:
    connection.execute(
        "INSERT INTO notes (key, value, updated_at) VALUES (?, ?, ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at",
        (key, value, at),
    )


def get_note(connection: sqlite3.Connection, key: str, default: str) -> str:
    row = connection.execute("SELECT value FROM notes WHERE key = ?", (key,)).fetchone()
    return row[0] if row else default


# The table `notices`: which step of a prompt's escalation policy was sent to which channel, and for whom it made a
# sound.


def insert_notice(
    connection: sqlite3.Connection, prompt_id: str, channel: str, steps: Iterable[int], heard: Iterable[str], at: str
) -> bool:
    """Returns False if all of these steps were already recorded. The people who hear it are stored once, with the first
    step."""
    names, fresh = json.dumps(sorted(heard), ensure_ascii=False), False
    for step in sorted(steps):
        cursor = connection.execute(
            "INSERT INTO notices (prompt_id, channel, step, heard, at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (prompt_id, channel, step, names, at),
        )
        if cursor.rowcount == 1:
            fresh, names = True, "[]"
    return fresh


def sent_notices(connection: sqlite3.Connection, prompt_id: str) -> frozenset[tuple[int, str]]:
    rows = connection.execute("SELECT step, channel FROM notices WHERE prompt_id = ?", (prompt_id,))
    return frozenset((int(step), str(channel)) for step, channel in rows)


def forget_notices(connection: sqlite3.Connection, prompt_id: str, channel: str) -> None:
    """The prompt was never shown in that channel: its steps will be repeated."""
    connection.execute("DELETE FROM notices WHERE prompt_id = ? AND channel = ?", (prompt_id, channel))


def notified_since(connection: sqlite3.Connection, at: str) -> list[tuple[str, str]]:
    """Returns (person, time), oldest first."""
    rows = connection.execute("SELECT heard, at FROM notices WHERE at >= ? AND heard <> '[]' ORDER BY at", (at,))
    return [(str(name), str(moment)) for heard, moment in rows for name in json.loads(heard)]


# The table `outbox`: changes that a fleet server has not acknowledged yet. Triggers fill it in the transaction of the
# change, and only while this machine is a member of a fleet. The content is read when it is sent.

EPOCH: Final = "desk.epoch"  # the note that names this membership; if it is empty or missing, nothing is collected
ACKNOWLEDGED: Final = "hub.acknowledged"  # the note with the last number that the server has in this epoch
MEETING_TOKEN: Final = "hub.token"  # the note with the token of the last connection: a restored store has an older one


def pending_fleet_events(connection: sqlite3.Connection, after: int, limit: int) -> list[tuple[int, str, str]]:
    """Returns (number, kind, id), oldest first."""
    rows = connection.execute(
        "SELECT seq, kind, id FROM outbox WHERE seq > ? ORDER BY seq LIMIT ?", (after, limit)
    ).fetchall()
    return [(int(seq), str(kind), str(name)) for seq, kind, name in rows]


def count_fleet_events(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM outbox").fetchone()[0])


def newest_number(connection: sqlite3.Connection) -> int:
    """The highest number ever assigned."""
    found = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'outbox'").fetchone()
    return int(found[0]) if found else 0


def acknowledge_fleet_events(connection: sqlite3.Connection, seq: int) -> None:
    connection.execute("DELETE FROM outbox WHERE seq <= ?", (seq,))


def fill_fleet_events(connection: sqlite3.Connection, known: Iterable[str] = ()) -> None:
    """Adds all active sessions and undecided prompts, and the prompts that are `known` at the server. Pending items
    stay."""
    put = "INSERT OR IGNORE INTO outbox (kind, id)"
    connection.execute(f"{put} SELECT 'session', id FROM sessions WHERE status = 'active'")
    connection.execute(
        f"{put} SELECT 'prompt', id FROM prompts"
        " WHERE status IN ('created', 'routed', 'awaiting_reply', 'reply_received', 'injected')"
    )
    connection.executemany(f"{put} SELECT 'prompt', id FROM prompts WHERE id = ?", [(one,) for one in known])


def clear_fleet_events(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM outbox")


# The table `requests`: the outcome of a request with a key, so that repeating it changes nothing.


@frozen
class RequestRecord:
    """`refusal` is None if the request decided its prompt; the prompt itself then has the outcome."""

    prompt_id: str
    refusal: Reject | None


def insert_request(
    connection: sqlite3.Connection, key: str, prompt_id: str, at: str, refusal: Reject | None = None
) -> None:
    """The first outcome of a key is kept."""
    reason, sentence = (refusal.reason.value, refusal.sentence) if refusal else (None, "")
    connection.execute(
        "INSERT INTO requests (key, prompt_id, reason, sentence, at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (key, prompt_id, reason, sentence, at),
    )


def get_request(connection: sqlite3.Connection, key: str) -> RequestRecord | None:
    row = connection.execute("SELECT prompt_id, reason, sentence FROM requests WHERE key = ?", (key,)).fetchone()
    return RequestRecord(row[0], Reject(Refusal(row[1]), row[2]) if row[1] else None) if row else None


def delete_requests_before(connection: sqlite3.Connection, moment: str) -> int:
    return connection.execute("DELETE FROM requests WHERE at < ?", (moment,)).rowcount


# The table `votes`: who approved a prompt that several people must approve.


def insert_vote(
    connection: sqlite3.Connection, prompt_id: str, person: str, identity: str, answer: str, at: str
) -> bool:
    """A person's last vote counts. Returns False if it is unchanged."""
    same = connection.execute(
        "SELECT 1 FROM votes WHERE prompt_id = ? AND person = ? AND answer = ?", (prompt_id, person, answer)
    ).fetchone()
    if same:
        return False
    connection.execute(
        "INSERT INTO votes (prompt_id, person, identity, answer, at) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT (prompt_id, person) DO UPDATE SET answer = excluded.answer, identity = excluded.identity,"
        " at = excluded.at",
        (prompt_id, person, identity, answer, at),
    )
    return True


def voters(connection: sqlite3.Connection, prompt_id: str) -> list[str]:
    """Returns everybody who voted, whatever they approved."""
    rows = connection.execute("SELECT person FROM votes WHERE prompt_id = ? ORDER BY at, person", (prompt_id,))
    return [str(row[0]) for row in rows]


def cast_votes(connection: sqlite3.Connection, prompt_id: str) -> list[tuple[str, str]]:
    """Returns (identity, answer), the latest last. Identities are returned because a person's name can change after a
    vote."""
    rows = connection.execute("SELECT identity, answer FROM votes WHERE prompt_id = ? ORDER BY at, rowid", (prompt_id,))
    return [(str(row[0]), str(row[1])) for row in rows]


def open_votes(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Returns (prompt, identity) of votes on undecided prompts."""
    rows = connection.execute(
        "SELECT v.prompt_id, v.identity FROM votes v JOIN prompts p ON p.id = v.prompt_id WHERE p.nonce_used = 0"
    )
    return [(str(row[0]), str(row[1])) for row in rows]


def delete_vote(connection: sqlite3.Connection, prompt_id: str, identity: str) -> None:
    connection.execute("DELETE FROM votes WHERE prompt_id = ? AND identity = ?", (prompt_id, identity))
