"""The ledger on a real SQLite file: who may move a prompt, and what is on disk afterwards."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.ledgers import ME, NO, SECRET, UNKNOWN, YES, YES_NO, ask, make_session, open_ledger

from atlasbridge.core.clock import ManualClock
from atlasbridge.core.errors import StoreError
from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.model import Answer, AnswerKind, Prompt, PromptRecord, PromptState, Refusal, Reject
from atlasbridge.core.session.model import SessionState
from atlasbridge.core.store.ledger import Ledger


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def ledger(tmp_path: Path, clock: ManualClock) -> Iterator[Ledger]:
    ledger = open_ledger(tmp_path, clock)
    yield ledger
    ledger.close()


def claim(ledger: Ledger, record: PromptRecord, **changes: str | None) -> PromptRecord | Reject:
    given = {"session_id": record.session_id, "nonce": record.nonce, "identity": ME, **changes}
    return ledger.claim(record.prompt_id, given["session_id"] or "", given["nonce"], YES, given["identity"] or "")


def events(ledger: Ledger, record: PromptRecord) -> list[str]:
    return [entry["event"] for entry in ledger.audit_entries(prompt_id=record.prompt_id)]


def test_a_prompt_lives_from_detection_to_resolution(ledger: Ledger) -> None:
    record = ask(ledger)
    won = claim(ledger, record)
    assert isinstance(won, PromptRecord)
    assert (won.state, won.decided_by, won.nonce_used) == (PromptState.REPLY_RECEIVED, ME, True)
    assert ledger.inject(record.prompt_id) is not None
    resolved = ledger.resolve(record.prompt_id)
    assert resolved is not None and resolved.state is PromptState.RESOLVED
    assert events(ledger, record) == [
        "PROMPT_DETECTED",
        "PROMPT_ROUTED",
        "PROMPT_DELIVERED",
        "REPLY_RECEIVED",
        "REPLY_INJECTED",
        "PROMPT_RESOLVED",
    ]


def test_a_prompt_comes_back_from_the_store_as_it_was(ledger: Ledger) -> None:
    record = ask(ledger)
    assert ledger.prompt(record.prompt_id) == record
    assert record.prompt == YES_NO


@pytest.mark.parametrize(
    ("answer", "written"),
    [
        (YES, "y"),
        (NO, "n"),
        (Answer(AnswerKind.ENTER), "enter"),
        (Answer(AnswerKind.CHOICE, "2"), "2"),
        (Answer(AnswerKind.TEXT, "orion"), "orion"),
        (Answer(AnswerKind.TEXT, ""), ""),
    ],
)
@pytest.mark.parametrize("of_earlier", [False, True])
def test_an_answer_is_written_down_as_it_is_spoken_and_typed_as_it_was_given(
    tmp_path: Path, ledger: Ledger, answer: Answer, written: str, of_earlier: bool
) -> None:
    """Earlier versions left the value of "yes" empty; what they left is read the same way."""
    record = ask(ledger)
    ledger.claim(record.prompt_id, record.session_id, record.nonce, answer, ME)
    with closing(sqlite3.connect(tmp_path / "atlasbridge.db")) as reader:
        assert reader.execute("SELECT value FROM replies").fetchall() == [(written,)]
        if of_earlier:
            reader.execute("UPDATE replies SET value = ?", (answer.value,))
    reader.close()
    reply = ledger.reply(record.prompt_id)
    assert reply is not None
    assert (reply.answer, reply.value) == (answer, written)


def test_of_two_claims_one_wins_and_the_other_is_told_who(ledger: Ledger) -> None:
    record = ask(ledger)
    assert isinstance(claim(ledger, record, identity="slack:T/U"), PromptRecord)
    second = claim(ledger, record, nonce=None)
    assert isinstance(second, Reject)
    assert second.reason is Refusal.NOT_OPEN
    assert "slack:T/U" in second.sentence


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"session_id": "another"}, Refusal.WRONG_SESSION),
        ({"nonce": "0" * 32}, Refusal.BAD_NONCE),
        ({"nonce": "short"}, Refusal.BAD_NONCE),
    ],
)
def test_a_claim_that_does_not_fit_is_refused(ledger: Ledger, changes: dict[str, str], reason: Refusal) -> None:
    record = ask(ledger)
    refused = claim(ledger, record, **changes)
    assert isinstance(refused, Reject) and refused.reason is reason
    assert ledger.prompt(record.prompt_id) == record
    assert "REPLY_RECEIVED" not in events(ledger, record)


def test_the_first_half_of_the_nonce_is_enough_and_less_is_not(ledger: Ledger) -> None:
    record = ask(ledger)
    refused = claim(ledger, record, nonce=record.nonce[:15])
    assert isinstance(refused, Reject) and refused.reason is Refusal.BAD_NONCE
    assert isinstance(claim(ledger, record, nonce=record.nonce[:16]), PromptRecord)


def test_a_claim_at_the_deadline_is_late(ledger: Ledger, clock: ManualClock) -> None:
    record = ask(ledger, ttl_s=60)
    clock.advance(60)
    refused = claim(ledger, record)
    assert isinstance(refused, Reject) and refused.reason is Refusal.EXPIRED


def test_a_jump_of_the_wall_clock_neither_ends_nor_prolongs_a_prompt(ledger: Ledger, clock: ManualClock) -> None:
    early, late = ask(ledger, ttl_s=60), ask(ledger, ttl_s=60)
    clock.jump_wall(86_400)
    assert isinstance(claim(ledger, early), PromptRecord)
    clock.jump_wall(-3 * 86_400)
    clock.advance(61)
    refused = claim(ledger, late)
    assert isinstance(refused, Reject) and refused.reason is Refusal.EXPIRED


def test_an_unknown_prompt_is_refused(ledger: Ledger) -> None:
    refused = ledger.claim(new_id(), new_id(), None, YES, ME)
    assert isinstance(refused, Reject) and refused.reason is Refusal.UNKNOWN_PROMPT


def test_a_prompt_expires_only_when_its_time_is_over(ledger: Ledger, clock: ManualClock) -> None:
    record = ask(ledger, ttl_s=60)
    assert ledger.expire(record.prompt_id, NO) is None
    clock.advance(60)
    expired = ledger.expire(record.prompt_id, NO)
    assert expired is not None and expired.state is PromptState.EXPIRED
    assert [(item.prompt_id, answer) for item, answer in ledger.unsettled()] == [(record.prompt_id, NO)]
    assert ledger.inject(record.prompt_id) is not None


@pytest.mark.parametrize("prompt", [SECRET, UNKNOWN])
def test_a_timer_never_answers_a_secret_or_an_unknown_prompt(
    ledger: Ledger, clock: ManualClock, prompt: Prompt
) -> None:
    record = ask(ledger, prompt, ttl_s=1)
    clock.advance(1)
    assert ledger.expire(record.prompt_id, NO) is not None
    assert ledger.unsettled() == []
    assert ledger.inject(record.prompt_id) is None


def test_nothing_is_typed_that_was_never_answered(ledger: Ledger) -> None:
    record = ask(ledger)
    assert ledger.inject(record.prompt_id) is None
    assert ledger.resolve(record.prompt_id) is None
    assert ledger.prompt(record.prompt_id) == record


def test_the_value_of_a_secret_is_written_nowhere(tmp_path: Path, ledger: Ledger) -> None:
    record = ask(ledger, SECRET)
    won = ledger.claim(record.prompt_id, record.session_id, record.nonce, Answer(AnswerKind.TEXT, "canary-5f3a"), ME)
    assert isinstance(won, PromptRecord)
    assert [answer for _, answer in ledger.unsettled()] == [None]
    ledger.inject(record.prompt_id)
    found = [path.name for path in tmp_path.iterdir() if b"canary-5f3a" in path.read_bytes()]
    assert found == []
    assert ledger.audit_entries(event="REPLY_INJECTED")[0]["secret"] is True


def test_the_bytes_that_drew_a_prompt_are_kept_only_on_request(tmp_path: Path, clock: ManualClock) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "kept").mkdir()
    for name, keep in (("plain", False), ("kept", True)):
        ledger = Ledger.open(tmp_path / name, clock, "boot-1", keep_raw=keep)
        prompt = type(YES_NO)(YES_NO.type, 0.9, "Continue?", raw=b"canary-77")
        ask(ledger, prompt)
        ledger.close()
    assert b"canary-77" not in (tmp_path / "plain" / "atlasbridge.db").read_bytes()
    assert b"canary-77" in (tmp_path / "kept" / "atlasbridge.db").read_bytes()


def test_raising_the_same_prompt_again_changes_nothing(ledger: Ledger) -> None:
    record = ask(ledger)
    head = ledger.audit_head()
    assert ledger.raise_prompt(record.session_id, record.prompt_id, YES_NO, 5) == record
    assert ledger.audit_head() == head


def test_a_new_prompt_of_a_session_takes_the_place_of_the_open_one(ledger: Ledger) -> None:
    first = ask(ledger)
    second = ask(ledger, session_id=first.session_id)
    old = ledger.prompt(first.prompt_id)
    assert old is not None and old.state is PromptState.WITHDRAWN
    assert [item.prompt_id for item in ledger.open_prompts(first.session_id)] == [second.prompt_id]


def test_the_database_itself_refuses_a_second_open_prompt(tmp_path: Path, ledger: Ledger) -> None:
    first = ask(ledger)
    connection = sqlite3.connect(tmp_path / "atlasbridge.db")
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        connection.execute(
            "INSERT INTO prompts SELECT 'other', session_id, type, confidence, excerpt, body, raw, status, reason,"
            " nonce, 0, boot_id, deadline, created_at, expires_at, updated_at, NULL, NULL, '', '' FROM prompts"
            " WHERE id = ?",
            (first.prompt_id,),
        )
    connection.close()


def test_a_prompt_needs_an_active_session(ledger: Ledger) -> None:
    with pytest.raises(StoreError, match="no active session"):
        ledger.raise_prompt(new_id(), new_id(), YES_NO, 60)


def test_the_first_delivery_moves_the_prompt_and_all_are_remembered(ledger: Ledger) -> None:
    record = ask(ledger)
    again = ledger.deliver_prompt(record.prompt_id, "telegram", "5:77")
    assert again is not None and again.state is PromptState.AWAITING_REPLY
    ledger.deliver_prompt(record.prompt_id, "telegram", "5:77")
    assert ledger.deliveries(record.prompt_id, "telegram") == ["5:77"]


def test_a_message_sent_for_a_prompt_that_ended_is_remembered_to_be_edited(ledger: Ledger) -> None:
    record = ask(ledger)
    ledger.withdraw(record.prompt_id, "moved_on")
    assert ledger.deliver_prompt(record.prompt_id, "telegram", "5:79") is None
    assert ledger.deliveries(record.prompt_id, "telegram") == ["5:79"]


@pytest.mark.parametrize("ending", ["withdraw", "cancel", "fail"])
def test_an_ended_prompt_takes_no_reply(ledger: Ledger, ending: str) -> None:
    record = ask(ledger)
    ended = getattr(ledger, ending)(record.prompt_id, "why")
    assert ended.state.value.startswith(ending)
    refused = claim(ledger, record, nonce=None)
    assert isinstance(refused, Reject) and refused.reason is Refusal.NOT_OPEN
    assert getattr(ledger, ending)(record.prompt_id, "why") is None


def test_the_end_of_a_session_ends_its_prompts(ledger: Ledger) -> None:
    waiting = ask(ledger)
    answered = ask(ledger)
    claim(ledger, answered)
    for record in (waiting, answered):
        closed = ledger.end_session(record.session_id, 0, SessionState.COMPLETED)
        assert [item.prompt_id for item in closed] == [record.prompt_id]
    states = [ledger.prompt(record.prompt_id) for record in (waiting, answered)]
    assert [record.state for record in states if record] == [PromptState.WITHDRAWN, PromptState.FAILED]
    assert ledger.end_session(waiting.session_id, 1, SessionState.CRASHED) == []
    session = ledger.session(waiting.session_id)
    assert session is not None and (session.exit_code, session.state) == (0, SessionState.COMPLETED)


def test_a_host_that_reports_again_resumes_its_session(ledger: Ledger) -> None:
    session = make_session()
    ledger.start_session(session)
    ledger.start_session(session)
    ledger.end_session(session.session_id, None, SessionState.CRASHED)
    ledger.start_session(session)
    assert [item.session_id for item in ledger.sessions()] == [session.session_id]
    names = [entry["event"] for entry in ledger.audit_entries(session_id=session.session_id)]
    assert names == ["SESSION_START", "SESSION_END", "SESSION_RESUMED"]


def test_a_session_shows_its_open_prompt(ledger: Ledger) -> None:
    record = ask(ledger)
    session = ledger.session(record.session_id[:8])
    assert session is not None and session.open_prompt == record.prompt_id
    ledger.update_session(record.session_id, attached=True, rows=50, channels=("web",))
    changed = ledger.session(record.session_id)
    assert changed is not None and (changed.attached, changed.rows, changed.channels) == (True, 50, ("web",))
    with pytest.raises(ValueError, match="no colour"):
        ledger.update_session(record.session_id, colour="red")


def test_a_short_id_finds_a_prompt_only_when_it_is_the_only_one(ledger: Ledger) -> None:
    session = make_session()
    ledger.start_session(session)
    ids = ["aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002"]
    ledger.raise_prompt(session.session_id, ids[0], YES_NO, 60)
    found = ledger.prompt("aaaaaaaa")
    assert found is not None and found.prompt_id == ids[0]
    ledger.raise_prompt(session.session_id, ids[1], YES_NO, 60)
    assert ledger.prompt("aaaaaaaa") is None
    odd = ("aaaa", "", "%", "aaaaaaa%", "AAAAAAAA-0000-4000-8000-0000000000_1")
    assert [ledger.prompt(text) for text in odd] == [None] * 5


def test_a_restart_finds_what_was_claimed_and_not_typed(tmp_path: Path, clock: ManualClock) -> None:
    ledger = open_ledger(tmp_path, clock)
    record = ask(ledger)
    claim(ledger, record)
    ledger.close()
    again = open_ledger(tmp_path, clock)
    assert [(item.prompt_id, answer) for item, answer in again.unsettled()] == [(record.prompt_id, YES)]
    again.inject(record.prompt_id)
    assert [(item.state, answer) for item, answer in again.unsettled()] == [(PromptState.INJECTED, None)]
    again.close()


def test_nothing_outlives_the_boot_of_the_machine(tmp_path: Path, clock: ManualClock) -> None:
    ledger = open_ledger(tmp_path, clock, "boot-1")
    waiting, answered = ask(ledger), ask(ledger)
    claim(ledger, answered)
    ledger.close()
    fresh = ManualClock(now=1.0, wall=clock.wall())  # the steady clock starts again: the old deadline lies far ahead
    again = open_ledger(tmp_path, fresh, "boot-2")
    assert again.open_prompts() == [] and again.unsettled() == [] and again.sessions() == []
    refused = claim(again, waiting)
    assert isinstance(refused, Reject)
    again.close()


@pytest.mark.parametrize("change", ["nonce_used = 1", "boot_id = 'another'"])
def test_the_guard_of_a_claim_does_not_rely_on_the_state_alone(tmp_path: Path, ledger: Ledger, change: str) -> None:
    record = ask(ledger)
    connection = sqlite3.connect(tmp_path / "atlasbridge.db")
    connection.execute(f"UPDATE prompts SET {change}")
    connection.commit()
    connection.close()
    refused = claim(ledger, record, nonce=None)
    assert isinstance(refused, Reject) and refused.reason is Refusal.NOT_OPEN
    assert ledger.reply(record.prompt_id) is None


def test_an_update_is_accepted_once(ledger: Ledger) -> None:
    assert ledger.accept_update("telegram", "9", "{}") is True
    assert ledger.accept_update("telegram", "9", "{}") is False
    assert ledger.accept_update("slack", "9", "{}") is True


def test_notes_are_remembered(ledger: Ledger) -> None:
    assert ledger.recall("telegram.offset", "0") == "0"
    ledger.remember("telegram.offset", "7")
    ledger.remember("telegram.offset", "8")
    assert ledger.recall("telegram.offset") == "8"


def test_history_is_newest_first_and_can_be_searched_and_paged(ledger: Ledger) -> None:
    first, second, third = ask(ledger), ask(ledger, SECRET), ask(ledger)
    assert [item.prompt_id for item in ledger.history(limit=2)] == [third.prompt_id, second.prompt_id]
    assert [item.prompt_id for item in ledger.history(before=second.prompt_id)] == [first.prompt_id]
    assert [item.prompt_id for item in ledger.history("PASSWORD")] == [second.prompt_id]
    assert len(ledger.history("bash")) == 3
    assert ledger.history("100%") == []
    assert len(ledger.history(state=ledger.history(limit=1)[0].state.value)) == 3
    assert ledger.history(state="resolved") == ledger.history(session_id="another") == []
    assert [item.prompt_id for item in ledger.history(session_id=first.session_id)] == [first.prompt_id]


def test_the_log_is_read_by_kind_and_backwards(ledger: Ledger) -> None:
    first, second = ask(ledger), ask(ledger)
    all_of_it = ledger.audit_entries()
    assert [entry["seq"] for entry in ledger.audit_entries(newest=True, before=3)] == [1, 2]
    kinds = ("PROMPT_DETECTED", "SESSION_START")
    found = ledger.audit_entries(events=kinds)
    assert found == [entry for entry in all_of_it if entry["event"] in kinds]
    (entry,) = ledger.audit_entries(events=kinds, prompt_id=second.prompt_id)
    assert entry["prompt_id"] == second.prompt_id != first.prompt_id


def test_statistics_count_what_is_there(ledger: Ledger) -> None:
    claim(ledger, ask(ledger))
    ask(ledger)
    assert ledger.statistics() == {
        "sessions": {"active": 2},
        "prompts": {"reply_received": 1, "awaiting_reply": 1},
        "types": {"yes_no": 2},
        "replies": {"operator": 1},
        "audit_entries": 9,
    }


def test_cleanup_removes_what_ended_long_ago_and_nothing_else(ledger: Ledger, clock: ManualClock) -> None:
    old = ask(ledger)
    claim(ledger, old)
    ledger.end_session(old.session_id, 0, SessionState.COMPLETED)
    ledger.accept_update("telegram", "1", "{}")
    clock.advance(1000)
    recent = ask(ledger)
    entries = ledger.audit_head().entries
    counts = ledger.cleanup(prompts_s=500, sessions_s=500, inbox_s=500)
    assert counts == {"prompts": 1, "sessions": 1, "inbox": 1}
    assert ledger.prompt(old.prompt_id) is None
    assert ledger.prompt(recent.prompt_id) == recent
    assert ledger.audit_head().entries == entries + 1
    assert ledger.check() == []


def test_an_entry_of_its_own_can_be_noted(ledger: Ledger) -> None:
    ledger.note("HUB_START", pid=7)
    assert ledger.audit_entries(newest=True, limit=1)[0]["pid"] == 7
    with pytest.raises(ValueError, match="hash"):
        ledger.note("HUB_START", hash="mine")
    assert ledger.prepare_verify()().ok
