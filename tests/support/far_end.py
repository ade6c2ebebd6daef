"""What each channel shows of a prompt that has been through the wire and the store: the one place that knows how."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.fake_push import as_shown

from atlasbridge.channels import matrix as matrix_looks
from atlasbridge.channels import ntfy as ntfy_looks
from atlasbridge.channels.slack import blocks
from atlasbridge.channels.telegram import messages
from atlasbridge.channels.templates import Role
from atlasbridge.core.clock import iso
from atlasbridge.core.prompt.codec import decode_prompt, encode_prompt
from atlasbridge.core.prompt.model import Prompt, PromptRecord, PromptState
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.store import prompts
from atlasbridge.core.store.database import Database, migrate
from atlasbridge.core.store.ledger import insert_session
from atlasbridge.web import push, view

MOMENT = iso(1_800_000_000.0)
SESSION = SessionRecord("5e55", "claude", ("claude",), "/home/me", 1, 1, "")


def recorded(prompt: Prompt) -> PromptRecord:
    """Over the wire and out of the store again, as another process would find it there."""
    sent = decode_prompt(json.loads(json.dumps(encode_prompt(prompt))))
    record = PromptRecord(
        "a1b2c3d4e5f6", SESSION.session_id, sent, PromptState.CREATED, "ab" * 16, MOMENT, MOMENT, 600.0
    )
    connection = _store().connection
    connection.execute("BEGIN")
    prompts.insert(connection, record, keep_raw=False)
    found = prompts.get(connection, record.prompt_id)
    connection.execute("ROLLBACK")
    assert found is not None
    return found


@cache
def _store() -> Database:
    """A real store in a file, with this one session; it goes when the process does."""
    folder = TemporaryDirectory(prefix="shown")
    _KEPT.append(folder)
    database = Database.open(Path(folder.name) / "store.db")
    migrate(database, MOMENT)
    with database.transaction() as connection:
        insert_session(connection, SESSION, "this boot")
    return database


_KEPT: list[TemporaryDirectory[str]] = []


def shown_by_each(record: PromptRecord) -> Iterator[tuple[str, str]]:
    yield "telegram", messages.render(messages.question(record, SESSION, "host"))["text"]
    yield "slack", "\n".join(_texts(blocks.render(blocks.question(record, SESSION, "host"))))
    yield "ntfy", ntfy_looks.render_prompt(record, SESSION, "host", shows_text=True, loud=True)["message"]
    yield "matrix", matrix_looks.render(matrix_looks.question(record, SESSION, "host"))["body"]
    yield "push", as_shown(push.render_ask(record, SESSION, 0.0).body)["body"]
    page = json.loads(json.dumps(view.render_prompt(record, SESSION)))
    yield "page", "\n".join((page["asked"], page["warning"]))


def agreed_by_a_tap(record: PromptRecord) -> Iterator[tuple[str, str]]:
    """Where one tap on a message agrees, and with what."""
    buttons = ntfy_looks.choose_buttons(record, shows_text=True)
    yield from (("ntfy", one.label) for one in buttons if one.role is not Role.REFUSE)
    offered = matrix_looks.reactions(record.prompt).values()
    yield from (("matrix", one.label) for one in offered if one.role is not Role.REFUSE)
    pushed = push.render_ask(record, SESSION, 0.0).body["actions"]
    yield from (("push", one["title"]) for one in pushed if one["action"] != "refuse")


def _texts(value: object) -> Iterator[str]:
    """Every text in Slack's blocks, in reading order, as Slack shows it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "text" and isinstance(inner, str):
                yield inner.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
            else:
                yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
