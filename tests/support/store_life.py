"""A short life of the store, told to a `CrashDisk`, and what must be true of any store that is found after it."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import NamedTuple, TypeVar
from unittest.mock import patch

from tests.support.crash_disk import CrashDisk, RecordedOs, Wreck
from tests.support.ledgers import ME, YES_NO, make_session
from tests.support.recorded_vfs import RecordedVfs

from atlasbridge.core.audit import log
from atlasbridge.core.clock import ManualClock
from atlasbridge.core.errors import StoreError
from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.model import Answer, AnswerKind, PromptRecord, PromptState
from atlasbridge.core.store.ledger import Ledger

T = TypeVar("T")

# A prompt whose claim failed is withdrawn when the next one comes: further than shown, not as far as answered.
ORDER = ("created", "routed", "awaiting_reply", "withdrawn", "reply_received", "injected", "resolved")


class Fact(NamedTuple):
    """What the ledger has told its caller: how far a prompt has come, with which answer, after so many entries."""

    prompt_id: str
    state: str
    answer: str
    entries: int


class StoreLife:
    """Prompts come, are answered and typed; now and then the ledger is closed and opened again.

    Every call that returns is acknowledged to the disk.  A call that raises StoreError is tried again later.
    """

    def __init__(self, home: Path, disk: CrashDisk, synchronous: str = "FULL") -> None:
        self.home = home
        self.disk = disk
        self.clock = ManualClock()
        self.errors: Counter[str] = Counter()
        self.typed: Counter[str] = Counter()
        self._synchronous = synchronous
        self._ledger: Ledger | None = None

    def ledger(self) -> Ledger:
        if self._ledger is None:
            self._ledger = Ledger.open(self.home, self.clock, "boot-1")
            connection = self._ledger.journal.database.connection
            connection.execute("PRAGMA wal_autocheckpoint = 30")  # often enough to be part of a short life
            connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        return self._ledger

    def close(self) -> None:
        if self._ledger is not None:
            ledger, self._ledger = self._ledger, None
            ledger.close()

    def run(self, prompts: int) -> None:
        session = make_session()
        self._attempt(lambda: self.ledger().start_session(session))
        for number in range(prompts):
            if number % 3 == 2:
                self.close()
            self._one_prompt(session.session_id, Answer(AnswerKind.TEXT, f"answer {number}"))
        self.close()

    def _one_prompt(self, session_id: str, answer: Answer) -> None:
        prompt_id = new_id()
        raised = self._attempt(lambda: self.ledger().raise_prompt(session_id, prompt_id, YES_NO, 3600.0))
        if raised is None:
            return
        self._acknowledge(raised, "")
        for step in (
            lambda: self.ledger().tell(prompt_id, ()),
            lambda: self.ledger().deliver_prompt(prompt_id, "memory", prompt_id[:8]),
        ):
            self._acknowledge(self._attempt(step), "")
        won = self._attempt(lambda: self.ledger().claim(prompt_id, session_id, None, answer, ME))
        if not isinstance(won, PromptRecord):
            return
        self._acknowledge(won, answer.value)
        self.typed[prompt_id] += 1
        for step in (lambda: self.ledger().inject(prompt_id), lambda: self.ledger().resolve(prompt_id)):
            self._acknowledge(self._attempt(step), answer.value)

    def _attempt(self, step: Callable[[], T]) -> T | None:
        try:
            return step()
        except StoreError as error:
            self.errors[str(error)] += 1
            return None

    def _acknowledge(self, record: PromptRecord | None, answer: str) -> None:
        if record is not None:
            entries = self.ledger().audit_head().entries
            self.disk.acknowledge(Fact(record.prompt_id, record.state.value, answer, entries))


def live(disk: CrashDisk, prompts: int, synchronous: str = "FULL") -> StoreLife:
    """Run a whole life on the recording disk."""
    life = StoreLife(disk.home, disk, synchronous)
    with patch.object(log, "os", RecordedOs(disk)), RecordedVfs(disk):
        life.run(prompts)
    return life


def examine(disk: CrashDisk, cut: int, random: Random, style: str) -> str:
    """Open the disk as it may be found after the first `cut` operations; what is wrong with it, or ""."""
    wreck = Wreck(disk.ops[:cut])
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        wreck.build(home, random, style)
        try:
            ledger = Ledger.open(home, ManualClock(), "boot-1")
        except StoreError as error:
            return f"the store cannot be opened: {error}"
        try:
            return find_fault(ledger, [fact for fact in wreck.facts if isinstance(fact, Fact)])
        finally:
            ledger.close()


def find_fault(ledger: Ledger, facts: list[Fact]) -> str:
    if broken := ledger.check():
        return f"the database is damaged: {broken}"
    verdict = ledger.prepare_verify()()
    if not verdict.ok:
        return verdict.sentence
    for fact in facts:
        if ledger.audit_head().entries < fact.entries:
            return "an acknowledged audit entry is lost"
        record, reply = ledger.prompt(fact.prompt_id), ledger.reply(fact.prompt_id)
        if record is None or ORDER.index(record.state.value) < ORDER.index(fact.state):
            return f"an acknowledged {fact.state} is lost: {record and record.state}"
        if fact.answer and (reply is None or reply.value != fact.answer):
            return "an acknowledged answer is lost"
    return find_half(ledger)


def find_half(ledger: Ledger) -> str:
    """A decision is there with all its parts, or not at all."""
    received = {entry["prompt_id"] for entry in ledger.audit_entries(event="REPLY_RECEIVED", limit=10**6)}
    injected = {entry["prompt_id"] for entry in ledger.audit_entries(event="REPLY_INJECTED", limit=10**6)}
    typed_states = (PromptState.INJECTED, PromptState.RESOLVED)
    for record in ledger.history(limit=10**6):
        decided = record.state in (*typed_states, PromptState.REPLY_RECEIVED)
        parts = {decided, record.nonce_used, ledger.reply(record.prompt_id) is not None, record.prompt_id in received}
        if len(parts) != 1 or (record.state in typed_states) != (record.prompt_id in injected):
            return f"half a decision: {record.state.value}, {parts}"
    return ""
