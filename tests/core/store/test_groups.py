"""Several decisions in one commit: each whole or not at all, nothing told before all are on disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.ledgers import ME, NO, YES, ask, commits, open_ledger

from atlasbridge.core.errors import StoreError
from atlasbridge.core.prompt.model import PromptRecord, PromptState, Refusal, Reject
from atlasbridge.core.store.journal import MOST_UNSYNCED
from atlasbridge.core.store.ledger import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = open_ledger(tmp_path)
    yield ledger
    ledger.close()


def state_on_disk(home: Path, prompt_id: str) -> str:
    other = sqlite3.connect(home / "atlasbridge.db")
    try:
        return str(other.execute("SELECT status FROM prompts WHERE id = ?", (prompt_id,)).fetchone()[0])
    finally:
        other.close()


def break_the_commit(ledger: Ledger) -> None:
    """A row that refers to nothing, which SQLite is told to look at only when it commits."""
    with ledger.journal.write() as work:
        work.connection.execute("PRAGMA defer_foreign_keys = ON")
        work.connection.execute("INSERT INTO votes VALUES ('nobody asked', 'ada', 'x', 'y', '')")


def test_decisions_that_come_together_share_a_commit_and_the_copy_of_their_entries(
    ledger: Ledger, tmp_path: Path
) -> None:
    asked = [ask(ledger) for _ in range(5)]
    seen = commits(ledger)
    with ledger.batch():
        for record in asked:
            assert isinstance(ledger.claim(record.prompt_id, record.session_id, None, YES, ME), PromptRecord)
            assert state_on_disk(tmp_path, record.prompt_id) == "awaiting_reply"
    assert seen == ["COMMIT"]
    assert {state_on_disk(tmp_path, record.prompt_id) for record in asked} == {"reply_received"}
    assert (tmp_path / "audit.log").read_text().count("REPLY_RECEIVED") == 5
    assert ledger.prepare_verify()().ok


def test_what_follows_waits_for_the_disk_and_comes_in_order(ledger: Ledger, tmp_path: Path) -> None:
    first, second = ask(ledger), ask(ledger)
    told: list[tuple[str, str]] = []

    def tell(record: PromptRecord) -> None:
        told.append((record.prompt_id, state_on_disk(tmp_path, record.prompt_id)))

    with ledger.batch():
        for record in (first, second):
            ledger.claim(record.prompt_id, record.session_id, None, YES, ME)
            ledger.when_durable(lambda record=record: tell(record))  # type: ignore[misc]
        assert told == []
    assert told == [(first.prompt_id, "reply_received"), (second.prompt_id, "reply_received")]
    ledger.when_durable(lambda: told.clear())
    assert told == []


def test_what_fails_afterwards_keeps_nobody_else_from_hearing(ledger: Ledger) -> None:
    record, told = ask(ledger), []

    def stumble() -> None:
        raise StoreError("the disk is full")

    with ledger.batch():
        assert isinstance(ledger.claim(record.prompt_id, record.session_id, None, YES, ME), PromptRecord)
        ledger.when_durable(stumble)
        ledger.when_durable(lambda: told.append("type it"))
    assert told == ["type it"]


def test_of_two_answers_in_one_group_the_first_wins(ledger: Ledger) -> None:
    record = ask(ledger)
    with ledger.batch():
        won = ledger.claim(record.prompt_id, record.session_id, None, YES, ME)
        lost = ledger.claim(record.prompt_id, record.session_id, None, NO, "telegram:2")
    assert isinstance(won, PromptRecord) and isinstance(lost, Reject)
    assert lost.reason is Refusal.NOT_OPEN
    assert [entry["decided_by"] for entry in ledger.audit_entries(event="REPLY_RECEIVED")] == [ME]


def test_a_commit_that_fails_leaves_everything_as_it_was_and_nobody_hears_of_it(ledger: Ledger, tmp_path: Path) -> None:
    record = ask(ledger)
    before, told = ledger.audit_head(), []
    with pytest.raises(StoreError), ledger.batch():
        assert isinstance(ledger.claim(record.prompt_id, record.session_id, None, YES, ME), PromptRecord)
        ledger.when_durable(lambda: told.append("typed"))
        break_the_commit(ledger)
    assert told == [] and ledger.audit_head() == before and ledger.alarm
    assert state_on_disk(tmp_path, record.prompt_id) == "awaiting_reply"
    assert isinstance(ledger.claim(record.prompt_id, record.session_id, None, NO, ME), PromptRecord)
    assert ledger.alarm == "" and ledger.prepare_verify()().ok and ledger.check() == []


def test_a_write_that_fails_takes_back_itself_alone(ledger: Ledger) -> None:
    first, second = ask(ledger), ask(ledger)
    with ledger.batch():
        ledger.claim(first.prompt_id, first.session_id, None, YES, ME)
        with pytest.raises(StoreError), ledger.journal.write() as work:
            work.audit("NEVER_HAPPENED")
            work.connection.execute("INSERT INTO replies (id) VALUES (NULL)")
        with pytest.raises(KeyError), ledger.journal.write() as work:
            work.audit("NEVER_HAPPENED")
            raise KeyError
        ledger.claim(second.prompt_id, second.session_id, None, YES, ME)
    states = [found.state for one in (first, second) if (found := ledger.prompt(one.prompt_id))]
    assert states == [PromptState.REPLY_RECEIVED] * 2
    assert ledger.audit_entries(event="NEVER_HAPPENED") == [] and ledger.prepare_verify()().ok


def test_when_sqlite_gives_the_whole_transaction_up_nothing_after_it_is_committed_either(ledger: Ledger) -> None:
    first, second = ask(ledger), ask(ledger)
    with pytest.raises(StoreError), ledger.batch():
        ledger.claim(first.prompt_id, first.session_id, None, YES, ME)
        with pytest.raises(StoreError), ledger.journal.write() as work:
            work.connection.execute("ROLLBACK")  # as SQLite does by itself when the disk is full at a bad moment
            raise sqlite3.OperationalError("database or disk is full")
        with pytest.raises(StoreError):
            ledger.claim(second.prompt_id, second.session_id, None, YES, ME)
    states = [found.state for one in (first, second) if (found := ledger.prompt(one.prompt_id))]
    assert states == [PromptState.AWAITING_REPLY] * 2
    assert ledger.prepare_verify()().ok and isinstance(
        ledger.claim(first.prompt_id, first.session_id, None, YES, ME), PromptRecord
    )


def test_a_group_that_wrote_nothing_commits_nothing(ledger: Ledger) -> None:
    seen, told = commits(ledger), []
    with ledger.batch():
        ledger.when_durable(lambda: told.append("said"))
    assert seen == [] and told == ["said"]


def test_copies_are_brought_to_disk_with_the_last_of_many_that_come_at_once(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr("atlasbridge.core.audit.log.os.fsync", synced.append)
    ask(ledger)
    before = len(synced)
    for _ in range(MOST_UNSYNCED):
        with ledger.batch(hurry=True):
            ask(ledger)
    assert len(synced) == before
    assert (tmp_path / "audit.log").read_text().count("PROMPT_DETECTED") == MOST_UNSYNCED + 1
    with ledger.batch(hurry=True):
        ask(ledger)
    assert len(synced) == before + 1  # nobody can put it off for ever
    with ledger.batch(hurry=True):
        ask(ledger)
    ask(ledger)
    assert len(synced) > before + 1  # the last one brings all of them
    with ledger.batch(hurry=True):
        ask(ledger)
    before = len(synced)
    with ledger.batch():
        pass
    assert len(synced) > before  # also where the last one has nothing to write
    assert ledger.prepare_verify()().ok


def test_what_was_left_to_the_next_is_written_again_when_that_cannot_be_brought_to_disk(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    with ledger.batch(hurry=True):
        ask(ledger)
    with monkeypatch.context() as broken:
        broken.setattr("atlasbridge.core.audit.log.os.fsync", fail)
        ask(ledger)
        assert "Input/output error" in ledger.alarm
    ask(ledger)
    assert ledger.alarm == "" and ledger.prepare_verify()().ok
    assert (tmp_path / "audit.log").read_text().count("PROMPT_DETECTED") == 3
