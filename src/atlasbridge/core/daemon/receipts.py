"""The messages about a decision: which answer, by whom, from where, when, and the head of the audit log.

All texts are here, so that chat, page, terminal and event stream say the same. This module decides nothing.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any, Generic, Protocol, TypeVar

from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.clock import Clock
from atlasbridge.core.errors import StoreError
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import short_id
from atlasbridge.core.prompt.answer import HERE, TIMER, call_person, quote_answer
from atlasbridge.core.prompt.model import FIRST_KEY, PromptRecord, PromptState, Receipt, Refusal
from atlasbridge.core.scheduler.service import Scheduler
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.store.ledger import Ledger

SHORT_HASH = 12


class ReceiptStore(Protocol):
    """The data that receipts need: from a hub's ledger, or from a fleet server, which has no audit chain of its own to
    show."""

    def name_of(self, identity: str, /) -> str: ...
    def session(self, session_id: str, /) -> SessionRecord | None: ...
    def audit_head(self) -> tuple[int, str]: ...


class Receipts:
    def __init__(self, ledger: ReceiptStore) -> None:
        self._ledger = ledger

    def of(self, record: PromptRecord) -> Receipt:
        """The receipt for the state of a prompt that is no longer open."""
        match record.state:
            case PromptState.REPLY_RECEIVED:
                return self.received(record)
            case PromptState.INJECTED:
                return self.typed(record)
            case PromptState.RESOLVED:
                return self.taken(record)
            case PromptState.EXPIRED:
                return self.expired(record)
            case PromptState.CANCELED:
                return self.canceled(record)
            case PromptState.FAILED:
                return self.make("failed", "It could not be answered.", record)
        return self.make("withdrawn", "The question is no longer on that screen.", record)

    def make(self, stage: str, sentence: str, record: PromptRecord) -> Receipt:
        return Receipt(
            stage,
            sentence,
            record.decided_by,
            record.decided_value,
            record.decided_from,
            record.decided_at,
            self.audit_head(),
        )

    def audit_head(self) -> str:
        """The count and the beginning of the hash: enough to notice that the log was truncated or rewritten."""
        count, head = self._ledger.audit_head()
        return "" if not count else f"{count}:{head.rpartition(':')[2][:SHORT_HASH]}"

    def received(self, record: PromptRecord) -> Receipt:
        return self.make("received", f"Answered with {_answer(record)} by {self._who(record)}.", record)

    def typed(self, record: PromptRecord, way: str = "keys") -> Receipt:
        if way == FIRST_KEY:
            return self.make("typed", self._first_key(record), record)
        if record.decided_by == TIMER:
            sentence = (
                f"Nobody answered in time: a timer sent the safe default {_answer(record)} to {self._name(record)}."
            )
            return self.make("default_typed", sentence, record)
        return self.make("typed", f"Sent {_answer(record)} to {self._name(record)}{self._by(record)}.", record)

    def _by(self, record: PromptRecord) -> str:
        """The person who answered; empty for a local command, because that person reads this message."""
        elsewhere = record.decided_from not in ("", "this machine")
        known = record.decided_by != HERE or elsewhere or self._ledger.name_of(HERE)
        return f", answered by {self._who(record)}" if known else ""

    def _first_key(self, record: PromptRecord) -> str:
        return f"The tool took the first key of {_answer(record)}; the rest was not typed{self._by(record)}."

    def taken(self, record: PromptRecord, way: str = "keys") -> Receipt:
        if way == FIRST_KEY:
            return self.make("first_key", self._first_key(record), record)
        if record.decided_by == TIMER:
            sentence = f"Nobody answered in time; the tool took the timer's safe default {_answer(record)}."
            return self.make("taken", sentence, record)
        return self.make("taken", f"The tool took {_answer(record)}{self._by(record)}.", record)

    def expired(self, record: PromptRecord, in_use: bool = False) -> Receipt:
        default = f"a timer types the safe default {_answer(record)}" if record.decided_value else "nothing was typed"
        why = ", because its terminal is in use" if in_use else ""
        return self.make("expired", f"Nobody answered in time; {default}{why}.", record)

    def soon(self, record: PromptRecord, label: str, seconds: float) -> str:
        span = "one minute" if seconds >= 59 else f"{round(seconds)} seconds"
        return (
            f"In {span} a timer answers {quote_answer(label)} in {self._name(record)}, unless somebody answers first."
        )

    def canceled(self, record: PromptRecord) -> Receipt:
        return self.make("canceled", f"{self._who(record)} left it alone; nothing was typed.", record)

    def _who(self, record: PromptRecord) -> str:
        return call_person(record.decided_by, record.decided_from, self._ledger.name_of(record.decided_by) or "")

    def _name(self, record: PromptRecord) -> str:
        session = self._ledger.session(record.session_id)
        return (
            escape_controls(session.label or session.tool, keep_lines=False) if session else short_id(record.session_id)
        )


def _answer(record: PromptRecord) -> str:
    return quote_answer(record.decided_value) if record.decided_value else "an answer"


def decision_of(record: PromptRecord) -> dict[str, Any]:
    return {
        "by": record.decided_by,
        "answer": record.decided_value,
        "from": record.decided_from,
        "decided_at": record.decided_at,
    }


def describe_raised(record: PromptRecord, session: SessionRecord | None) -> dict[str, Any]:
    """A prompt in the format of `prompt.raised` and of all lists of prompts, with its session's tool, label and
    folder."""
    names = ("tool", "label", "cwd")
    return {**record.to_json(), **{name: getattr(session, name) if session else "" for name in names}}


# Records refused replies. Of a flood, the first ones get entries of their own, and one entry counts the rest.
#
# So a faulty loop or an attacker neither fills the disk nor goes unnoticed.

log = logging.getLogger(__name__)

WINDOW_S = 60.0
SINGLE = 20  # individual entries per window, person and reason
Kind = TypeVar("Kind")

_Key = tuple[AuditEvent, str, str, str]  # event, reason, identity, and the operation if it is not a reply


class Flood(Generic[Kind]):
    """Which events of a kind get an entry of their own. The others are counted until the window ends."""

    def __init__(self) -> None:
        self._seen: Counter[Kind] = Counter()

    def __bool__(self) -> bool:
        return bool(self._seen)

    def is_single(self, kind: Kind) -> bool:
        self._seen[kind] += 1
        return self._seen[kind] <= SINGLE

    def end_window(self) -> list[tuple[Kind, int]]:
        """The kinds of which some were only counted, and how many. A new window begins."""
        seen, self._seen = self._seen, Counter()
        return [(kind, count - SINGLE) for kind, count in seen.items() if count > SINGLE]


class RefusalLog:
    def __init__(self, ledger: Ledger, clock: Clock, scheduler: Scheduler) -> None:
        self._ledger = ledger
        self._clock = clock
        self._scheduler = scheduler
        self._flood: Flood[_Key] = Flood()

    def record(self, reason: Refusal, identity: str, session_id: str, prompt_id: str) -> None:
        """Does not record the value: it could be a secret that was meant for another prompt."""
        self._record(AuditEvent.REPLY_REFUSED, reason, identity, session_id=session_id, prompt_id=prompt_id)

    def record_attempt(self, identity: str, session_id: str, prompt_id: str, op: str, pid: int) -> None:
        """A program inside a session tried something that only a person is allowed to do."""
        ids = {"session_id": session_id, "prompt_id": prompt_id}
        self._record(AuditEvent.SELF_REFUSED, Refusal.SELF, identity, escape_controls(op[:40]), **ids, pid=pid)

    def _record(self, event: AuditEvent, reason: Refusal, identity: str, op: str = "", **fields: str | int) -> None:
        if not self._flood:
            self._scheduler.set("refusals", self._clock.now() + WINDOW_S, self.close_window)
        key = (event, reason.value, escape_controls(identity), op)
        if self._flood.is_single(key):
            self._note(key, **fields)

    def close_window(self) -> None:
        """Writes an entry for the refusals that were only counted."""
        for key, more in self._flood.end_window():
            self._note(key, more=more)

    def _note(self, key: _Key, **fields: str | int) -> None:
        event, reason, identity, op = key
        fields |= {"op": op} if op else {}
        try:
            self._ledger.note(event, **fields, reason=reason, decided_by=identity)
        except StoreError as error:
            log.error("a refusal could not be recorded: %s", error)
