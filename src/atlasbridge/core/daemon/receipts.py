"""What people are told of a decision: which answer, by whom, from where, when, and where the audit log stood.

One place for the words, so that chat, page, terminal and event stream say the same.  It decides nothing.
"""

from __future__ import annotations

from typing import Any

from atlasbridge.core.ids import short_id
from atlasbridge.core.prompt.model import PromptRecord
from atlasbridge.core.prompt.reply import Receipt
from atlasbridge.core.prompt.spoken import TIMER, call_person, quote_answer
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.session.naming import DOORS
from atlasbridge.core.store.ledger import Ledger
from atlasbridge.core.visible import visible

SHORT_HASH = 12


class Receipts:
    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

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
        """Count and the beginning of the hash: enough to notice that the log was cut or written anew."""
        count, head = self._ledger.audit_head()
        return f"{count}:{head.rpartition(':')[2][:SHORT_HASH]}"

    def received(self, record: PromptRecord) -> Receipt:
        return self.make("received", f"Answered with {_answer(record)} by {self._who(record)}.", record)

    def typed(self, record: PromptRecord) -> Receipt:
        session = self._ledger.session(record.session_id)
        did, into = ("gave", "to") if session and session.tool in DOORS else ("typed", "into")
        where = f"{into} {self._name(record)}"
        if record.decided_by == TIMER:
            sentence = f"Nobody answered in time: {did} the safe default {_answer(record)} {where}."
            return self.make("default_typed", sentence, record)
        sentence = f"{did.capitalize()} {_answer(record)} {where}, the answer of {self._who(record)}."
        return self.make("typed", sentence, record)

    def taken(self, record: PromptRecord) -> Receipt:
        if record.decided_by == TIMER:
            sentence = f"Nobody answered in time; the tool took the safe default {_answer(record)}."
            return self.make("taken", sentence, record)
        return self.make("taken", f"The tool took {_answer(record)}, the answer of {self._who(record)}.", record)

    def expired(self, record: PromptRecord) -> Receipt:
        default = f"the safe default {_answer(record)} is typed" if record.decided_value else "nothing was typed"
        return self.make("expired", f"Nobody answered in time; {default}.", record)

    def canceled(self, record: PromptRecord) -> Receipt:
        return self.make("canceled", f"Left as it is by {self._who(record)}; nothing was typed.", record)

    def _who(self, record: PromptRecord) -> str:
        return call_person(record.decided_by, record.decided_from, self._ledger.name_of(record.decided_by) or "")

    def _name(self, record: PromptRecord) -> str:
        session = self._ledger.session(record.session_id)
        return visible(session.label or session.tool, keep_lines=False) if session else short_id(record.session_id)


def _answer(record: PromptRecord) -> str:
    return quote_answer(record.decided_value) if record.decided_value else "an answer"


def decision_of(record: PromptRecord) -> dict[str, Any]:
    """The decision as events carry it."""
    return {
        "by": record.decided_by,
        "answer": record.decided_value,
        "from": record.decided_from,
        "decided_at": record.decided_at,
    }


def describe_raised(record: PromptRecord, session: SessionRecord | None) -> dict[str, Any]:
    """A prompt as `prompt.raised` and every list of prompts show it: with its session's tool, label and folder."""
    names = ("tool", "label", "cwd")
    return {**record.to_json(), **{name: getattr(session, name) if session else "" for name in names}}
