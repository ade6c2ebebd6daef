"""What the link to a fleet server can ask of the hub: the changes to send, in a form that is allowed to leave the
machine.

A secret's question is sent without its text. A session that excludes the server is not sent at all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atlasbridge.core.audit.chain import Head
from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.clock import Clock
from atlasbridge.core.daemon.receipts import describe_raised
from atlasbridge.core.fleet_wire import digest_open
from atlasbridge.core.policy.escalation import Route
from atlasbridge.core.prompt.model import PromptRecord
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.system import OWN_FILE

if TYPE_CHECKING:
    from atlasbridge.core.store.ledger import Ledger


CHANNEL = "server"
SECRET_THERE = "A secret is asked for. It is answered at that machine, never here."


class FleetOutbox:
    ledger: Ledger
    clock: Clock
    read_rules: Callable[[], None]  # reads the rules again from their files; set by `service`

    def key_age_s(self, session_id: str) -> float | None:
        """How long ago a person typed there; overridden in `hub_api`."""
        return None

    def join(self, machine_id: str) -> str:
        return self.ledger.membership.begin(machine_id)

    def meeting(self) -> dict[str, Any]:
        """Returns the data by which the server detects that its store, or this one, was restored from a backup."""
        told_until, newest = self.ledger.membership.reach()
        sessions = [one for one in self.ledger.sessions() if _goes_there(one)]
        known = {one.session_id for one in sessions}
        prompts = [one.prompt_id for one in self.ledger.open_prompts() if one.session_id in known]
        digest = digest_open(prompts, known)
        token = self.ledger.membership.token()
        return {"token": token, "digest": digest, "told_until": told_until, "newest": newest}

    def meet(self, token: str) -> None:
        self.ledger.membership.meet(token)

    def tell_again(self, epoch: str, notice: str, known: Iterable[str]) -> int:
        return self.ledger.membership.tell_again(epoch, notice, known)

    def to_tell(self, after: int, limit: int) -> list[dict[str, Any]]:
        """Returns the items that the server has not acknowledged, oldest first, each in its current state."""
        items = []
        for seq, kind, name in self.ledger.membership.pending(after, limit):
            told = self._prompt_item(name) if kind == "prompt" else self._session_item(name)
            items.append({"seq": seq, "kind": kind, "id": name, **told})
        return items

    def acknowledge(self, seq: int) -> None:
        self.ledger.membership.acknowledge(seq)

    def backlog(self) -> int:
        return self.ledger.membership.backlog()

    def audit_head(self) -> Head:
        return self.ledger.audit_head()

    def audit_lines(self, after: int, limit: int) -> list[str]:
        return self.ledger.membership.audit_lines(after, limit)

    def told(self, prompt_id: str) -> bool:
        """Whether the server is allowed to know of this prompt and to decide it."""
        record = self.ledger.prompt(prompt_id)
        return record is not None and not record.prompt.secret and self.shows(record.session_id)

    def shows(self, session_id: str) -> bool:
        session = self.ledger.session(session_id)
        return session is not None and _goes_there(session)

    def use_rules(self, path: Path, text: str, digest: str) -> None:
        """Records the server's rules, writes them to `path` and applies them from now on."""
        self.ledger.note(AuditEvent.POLICY_TRUSTED, path=path.name, rule_digest=digest, decided_by=CHANNEL)
        draft = path.with_name(f".{path.name}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | OWN_FILE, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(draft, path)
        self.read_rules()

    def _session_item(self, session_id: str) -> dict[str, Any]:
        session = self.ledger.session(session_id)
        return {"body": None} if session is None or not _goes_there(session) else {"body": session.to_json()}

    def _prompt_item(self, prompt_id: str) -> dict[str, Any]:
        record = self.ledger.prompt(prompt_id)
        session = self.ledger.session(record.session_id) if record else None
        if record is None or session is None or not _goes_there(session):
            return {"body": None}
        told = describe_raised(record, session)
        if record.prompt.secret:
            told = _without_words(told)
        if "quorum" in record.prompt.constraints:
            told["agreed"] = self.ledger.voters(prompt_id)
        age_s = self.key_age_s(session.session_id) if session.attached else None
        typed = {} if age_s is None else {"key_age_s": round(age_s, 1)}
        return {"body": told, "ttl_s": self._left_s(record), **typed}

    def _left_s(self, record: PromptRecord) -> float:
        """The remaining time. A duration works even if the clocks of the two machines differ."""
        return round(max(0.0, record.deadline - self.clock.now()), 1)


def _goes_there(session: SessionRecord) -> bool:
    return session.channels is None or CHANNEL in session.channels


def _without_words(told: dict[str, Any]) -> dict[str, Any]:
    empty: dict[str, Any] = {"excerpt": SECRET_THERE, "question": SECRET_THERE, "screen": "", "says": "", "choices": []}
    return {**told, **empty, "subject": None, "evidence": [], "decided_value": ""}


# If a fleet server notifies people in its chats, this hub's own chats stay silent.
#
# That requires that the server is connected, has chats at all, and confirms for each prompt that it notifies somebody.
# Otherwise this hub runs its own escalation policy. The page, the terminal and local notifications never wait.

SILENT_S = 60.0  # after this time without a message from the server, this hub uses its own chats again
WORD_S = 10.0  # how long a new prompt waits for the server's confirmation
LOOK_S = 5.0  # how often such a prompt is checked again


class Delegation:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heard_at = float("-inf")
        self._carries = False
        self._asked: set[str] = set()

    def heard(self, carries: bool | None = None) -> bool:
        """Records a message from the server. `carries`: whether it has chats. Returns True if it has just stopped
        having them."""
        self._heard_at = self._clock.now()
        ended = self._carries and carries is False
        self._carries = self._carries if carries is None else carries
        return ended

    def asks(self, prompt_ids: Iterable[str]) -> None:
        self._asked.update(prompt_ids)

    def forget(self, prompt_id: str) -> None:
        self._asked.discard(prompt_id)

    def holds(self, prompt_id: str, asked_at: float, session: SessionRecord) -> bool:
        """Whether this hub's own chats stay silent about the prompt for now."""
        if not self._carries or self._clock.now() - self._heard_at > SILENT_S:
            return False
        if session.channels is not None and CHANNEL not in session.channels:
            return False  # the server does not know this session
        return prompt_id in self._asked or self._clock.now() - asked_at < WORD_S


def without_chats(chat_routes: tuple[Route, ...]) -> tuple[Route, ...]:
    return tuple(chat_route for chat_route in chat_routes if not chat_route.remote or chat_route.name == CHANNEL)
