"""The table of a prompt's life, walked pair by pair: in the machine, and in the ledger on real SQLite."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.ledgers import NO, YES, YES_NO, make_session, open_ledger

from atlasbridge.core.clock import ManualClock
from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.model import (
    FINAL,
    OPEN,
    TRANSITIONS,
    PromptMoved,
    PromptRecord,
    PromptState,
    sources,
)
from atlasbridge.core.store import prompts
from atlasbridge.core.store.ledger import Ledger

S, E = PromptState, PromptMoved
ROADS: dict[PromptState, list[PromptMoved]] = {
    S.CREATED: [],
    S.ROUTED: [E.ROUTE],
    S.AWAITING_REPLY: [E.ROUTE, E.DELIVER],
    S.REPLY_RECEIVED: [E.ROUTE, E.DELIVER, E.ACCEPT],
    S.INJECTED: [E.ACCEPT, E.INJECT],
    S.RESOLVED: [E.ACCEPT, E.INJECT, E.RESOLVE],
    S.EXPIRED: [E.EXPIRE],
    S.CANCELED: [E.CANCEL],
    S.FAILED: [E.FAIL],
    S.WITHDRAWN: [E.WITHDRAW],
}


def move(ledger: Ledger, clock: ManualClock, record: PromptRecord, event: PromptMoved) -> PromptRecord | None:
    match event:
        case E.ROUTE:
            return ledger.tell(record.prompt_id, ())
        case E.DELIVER:
            before = ledger.prompt(record.prompt_id)
            after = ledger.deliver_prompt(record.prompt_id, "memory", "1")
            return None if after == before else after
        case E.ACCEPT:
            won = ledger.claim(record.prompt_id, record.session_id, None, YES, "cli:local")
            return won if isinstance(won, PromptRecord) else None
        case E.EXPIRE:
            clock.advance(1000)
            return ledger.expire(record.prompt_id, NO)
        case E.INJECT | E.RESOLVE:
            return getattr(ledger, event.value)(record.prompt_id)
        case E.WITHDRAW | E.CANCEL | E.FAIL:
            return getattr(ledger, event.value)(record.prompt_id, "why")


@pytest.fixture(scope="module")
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory, clock: ManualClock) -> Iterator[Ledger]:
    ledger = open_ledger(tmp_path_factory.mktemp("machine"), clock)
    yield ledger
    assert ledger.prepare_verify()().ok
    ledger.close()


@pytest.mark.parametrize("event", PromptMoved)
@pytest.mark.parametrize("state", PromptState)
def test_machine_and_store_agree_on_every_pair(
    ledger: Ledger, clock: ManualClock, state: PromptState, event: PromptMoved
) -> None:
    session = make_session()
    ledger.start_session(session)
    record = ledger.raise_prompt(session.session_id, new_id(), YES_NO, 100)
    for step in ROADS[state]:
        move(ledger, clock, record, step)
    before = ledger.prompt(record.prompt_id)
    assert before is not None and before.state is state
    moved = move(ledger, clock, record, event)
    after = ledger.prompt(record.prompt_id)
    if (state, event) in TRANSITIONS:
        assert moved is not None and moved == after and moved.state is TRANSITIONS[state, event]
    else:
        assert moved is None and after == before


def test_every_state_can_be_reached_and_left_or_is_final() -> None:
    reached = set(TRANSITIONS.values()) | {S.CREATED}
    assert reached == set(PromptState)
    assert {state for state in PromptState if not any(source is state for source, _ in TRANSITIONS)} == FINAL


def test_an_open_prompt_has_no_answer_and_every_ending() -> None:
    endings = {E.EXPIRE, E.WITHDRAW, E.CANCEL, E.FAIL, E.ACCEPT}
    for state in OPEN:
        assert {event for source, event in TRANSITIONS if source is state} >= endings


def test_every_event_leads_to_one_state_only() -> None:
    for event in PromptMoved:
        assert {TRANSITIONS[state, event] for state in sources(event)} == {prompts.target(event)}
