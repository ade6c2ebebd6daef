"""State changes of a prompt inside one transaction: the guarded update, its reply row and its audit entry together.

`ledger.py` opens the transactions; nothing here commits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atlasbridge.core.audit.events import EVENT_OF_MOVE, AuditEvent
from atlasbridge.core.prompt.answer import TIMER, label_answer
from atlasbridge.core.prompt.machine import OPEN, PromptMoved
from atlasbridge.core.prompt.model import Answer, PromptRecord, PromptState
from atlasbridge.core.prompt.timer import timer_may_say
from atlasbridge.core.store import prompts, tables
from atlasbridge.core.store.journal import Work
from atlasbridge.core.values import field, frozen


@frozen
class Decider:
    """Who decides: an identity, its location, its name in the records, and the key of its request."""

    identity: str
    place: str = ""
    source: str = "operator"
    request: str = ""
    grants: tuple[str, ...] = ()  # the first eight characters of each grant that allows it
    noted: Mapping[str, Any] = field(default_factory=dict)  # for the audit log: the rule, or a passkey's signature


def audit_prompt(work: Work, event: AuditEvent, record: PromptRecord, **fields: Any) -> None:
    work.audit(event, session_id=record.session_id, prompt_id=record.prompt_id, **fields)


def move(work: Work, prompt_id: str, event: PromptMoved, **fields: Any) -> PromptRecord | None:
    """A plain state change. `fields` go to the audit entry, `reason` also to the row."""
    values = {"reason": fields["reason"]} if fields.get("reason") else {}
    record = prompts.move(work.connection, prompt_id, event, work.at, **values)
    if record is not None:
        audit_prompt(work, EVENT_OF_MOVE[event], record, **fields)
    return record


def accept(
    work: Work, prompt_id: str, session_id: str, nonce: str, answer: Answer, decider: Decider, boot_id: str
) -> PromptRecord | None:
    """The specification's decide_prompt: checks session, nonce, first use, deadline and state in one UPDATE."""
    known = prompts.get(work.connection, prompt_id)
    record = prompts.move(
        work.connection,
        prompt_id,
        PromptMoved.ACCEPT,
        work.at,
        "session_id = :session_id AND nonce_used = 0 AND boot_id = :boot_id AND deadline > :now"
        " AND (:nonce = '' OR (length(:nonce) >= 16 AND substr(nonce, 1, length(:nonce)) = :nonce))",
        session_id=session_id,
        boot_id=boot_id,
        nonce=nonce,
        now=work.now,
        nonce_used=1,
        decided_by=decider.identity,
        decided_at=work.at,
        decided_value=label_answer(known.prompt, answer) if known else "",
        decided_from=decider.place,
    )
    if record is not None:
        _keep(work, record, answer, decider, AuditEvent.REPLY_RECEIVED)
        if decider.request:
            tables.insert_request(work.connection, decider.request, record.prompt_id, work.at)
    return record


def expire(work: Work, prompt_id: str, default: Answer | None, boot_id: str) -> PromptRecord | None:
    """The time is over, or the machine was rebooted. A default is used only where a timer is allowed to answer."""
    known = prompts.get(work.connection, prompt_id)
    if known is None or known.boot_id != boot_id or not timer_may_answer(known):
        default = None
    record = prompts.move(
        work.connection,
        prompt_id,
        PromptMoved.EXPIRE,
        work.at,
        "deadline <= :now OR boot_id <> :boot_id",
        now=work.now,
        boot_id=boot_id,
        nonce_used=1,
        decided_by=TIMER,
        decided_at=work.at,
        decided_value=label_answer(known.prompt, default) if known and default else "",
    )
    if record is None:
        return None
    if default is not None:
        _keep(work, record, default, Decider(TIMER, source="timeout_default"), AuditEvent.PROMPT_EXPIRED)
    else:
        audit_prompt(work, AuditEvent.PROMPT_EXPIRED, record, decided_by=TIMER)
    return record


def timer_may_answer(record: PromptRecord) -> bool:
    return timer_may_say(record.prompt)


def _keep(work: Work, record: PromptRecord, answer: Answer, decider: Decider, event: AuditEvent) -> None:
    prompts.insert_reply(work.connection, record, answer, decider.source, decider.identity, work.at)
    shown = prompts.shown(record, answer)
    fields = _answer_fields(record, answer.kind, shown, decider.source, decider.identity)
    audit_prompt(work, event, record, **fields, **decider.noted)


def inject(work: Work, prompt_id: str, way: str = "keys") -> PromptRecord | None:
    """The keys were typed, or (`way`) a hook of the tool took the answer. Without a recorded answer, nothing could have
    been typed."""
    reply = prompts.get_reply(work.connection, prompt_id)
    if reply is None:
        return None
    record = prompts.move(work.connection, prompt_id, PromptMoved.INJECT, work.at)
    if record is not None:
        prompts.mark_injected(work.connection, prompt_id, work.at)
        fields = _answer_fields(record, reply.kind, reply.value, reply.source, reply.identity)
        audit_prompt(work, AuditEvent.REPLY_INJECTED, record, **fields, **({} if way == "keys" else {"way": way}))
    return record


def _answer_fields(record: PromptRecord, kind: str, value: str | None, source: str, identity: str) -> dict[str, Any]:
    fields: dict[str, Any] = {"kind": str(kind), "source": source, "decided_by": identity}
    fields |= {"label": record.decided_value} if record.decided_value and value is not None else {}
    fields |= {"decided_from": record.decided_from} if record.decided_from else {}
    return {**fields, "secret": True} if value is None else {**fields, "value": value}


def close_prompts(work: Work, where: str, parameters: tuple[Any, ...], reason: str) -> list[PromptRecord]:
    """Ends every prompt that `where` selects, each with the transition for its state, because its tool is gone."""
    live = "status IN ('created', 'routed', 'awaiting_reply', 'reply_received', 'injected', 'expired')"
    closed = []
    for record in prompts.select(work.connection, f"{live} AND {where}", parameters):
        event = _closing_move(record.state)
        moved = move(work, record.prompt_id, event, reason=reason)
        if moved is not None:
            closed.append(moved)
    return closed


def _closing_move(state: PromptState) -> PromptMoved:
    if state in OPEN or state is PromptState.EXPIRED:
        return PromptMoved.WITHDRAW
    return PromptMoved.RESOLVE if state is PromptState.INJECTED else PromptMoved.FAIL
