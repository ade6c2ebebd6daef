"""Rounds: what comes in together is durable together, and everybody hears the truth about their own act."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.ledgers import ME, YES, ask, commits, open_ledger

from atlasbridge.core.daemon.parts import ALWAYS, MOST_AT_ONCE, Rounds
from atlasbridge.core.errors import StoreError
from atlasbridge.core.prompt.model import PromptRecord, PromptState, Reject
from atlasbridge.core.store.ledger import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = open_ledger(tmp_path)
    yield ledger
    ledger.close()


def claim(ledger: Ledger, record: PromptRecord) -> PromptRecord | Reject:
    return ledger.claim(record.prompt_id, record.session_id, None, YES, ME)


def states(ledger: Ledger, asked: list[PromptRecord]) -> set[PromptState]:
    return {found.state for one in asked if (found := ledger.prompt(one.prompt_id))}


async def test_what_comes_in_together_is_one_commit_and_each_hears_its_own_outcome(ledger: Ledger) -> None:
    rounds, asked = Rounds(ledger), [ask(ledger) for _ in range(4)]
    seen = commits(ledger)
    outcomes = await asyncio.gather(*(rounds.take(lambda one=one: claim(ledger, one)) for one in asked))  # type: ignore[misc]
    won = [one.prompt_id for one in outcomes if isinstance(one, PromptRecord)]
    assert won == [one.prompt_id for one in asked]
    assert len(seen) == 1 and states(ledger, asked) == {PromptState.REPLY_RECEIVED}


async def test_a_round_has_its_measure_and_the_rest_is_the_next_one(ledger: Ledger) -> None:
    rounds, done = Rounds(ledger), []
    seen = commits(ledger)
    count = 2 * MOST_AT_ONCE + 1
    await asyncio.gather(*(rounds.take(lambda n=n: done.append(n) or ledger.note("NOTED")) for n in range(count)))  # type: ignore[misc]
    assert done == list(range(count)) and len(seen) == 3


async def test_what_a_person_waits_for_comes_first_and_the_rest_comes_all_the_same(ledger: Ledger) -> None:
    rounds, done = Rounds(ledger), []
    count = 2 * MOST_AT_ONCE
    others = [rounds.start(lambda n=n: done.append(f"other {n}")) for n in range(count)]  # type: ignore[misc]
    urgent = [rounds.start(lambda n=n: done.append(f"urgent {n}"), urgent=True) for n in range(count)]  # type: ignore[misc]
    await asyncio.gather(*others, *urgent)
    first = MOST_AT_ONCE - ALWAYS
    assert done[:first] == [f"urgent {n}" for n in range(first)]
    assert done[first:MOST_AT_ONCE] == [f"other {n}" for n in range(ALWAYS)]
    assert [one for one in done if one.startswith("other")] == [f"other {n}" for n in range(count)]
    assert len(done) == 2 * count


async def test_one_acts_fault_is_nobody_elses(ledger: Ledger) -> None:
    rounds, record = Rounds(ledger), ask(ledger)

    def stumble() -> None:
        ledger.note("NOTED")
        raise KeyError("prompt_id")

    fault, won = await asyncio.gather(
        rounds.take(stumble), rounds.take(lambda: claim(ledger, record)), return_exceptions=True
    )
    assert isinstance(fault, KeyError) and isinstance(won, PromptRecord)
    assert states(ledger, [record]) == {PromptState.REPLY_RECEIVED}


async def test_when_the_commit_fails_each_hears_that_nothing_happened(ledger: Ledger) -> None:
    rounds, asked, told = Rounds(ledger), [ask(ledger), ask(ledger)], []

    def act(record: PromptRecord) -> None:
        claim(ledger, record)
        ledger.when_durable(lambda: told.append(record.prompt_id))

    def refer_to_nothing() -> None:
        with ledger.journal.write() as work:
            work.connection.execute("PRAGMA defer_foreign_keys = ON")
            work.connection.execute("INSERT INTO votes VALUES ('nobody asked', 'ada', 'x', 'y', '')")

    acts = [lambda: act(asked[0]), refer_to_nothing, lambda: act(asked[1])]
    outcomes = await asyncio.gather(*map(rounds.take, acts), return_exceptions=True)
    assert [type(one) for one in outcomes] == [StoreError] * 3
    assert told == [] and states(ledger, asked) == {PromptState.AWAITING_REPLY}
    await asyncio.gather(*(rounds.take(lambda one=one: act(one)) for one in asked))  # type: ignore[misc]
    assert told == [one.prompt_id for one in asked] and states(ledger, asked) == {PromptState.REPLY_RECEIVED}


async def test_what_waits_when_the_hub_ends_is_still_done(ledger: Ledger) -> None:
    rounds, record = Rounds(ledger), ask(ledger)
    done = rounds.start(lambda: claim(ledger, record))
    rounds.finish()
    assert done.done() and states(ledger, [record]) == {PromptState.REPLY_RECEIVED}
    rounds.finish()


async def test_who_left_before_the_round_wanted_nothing(ledger: Ledger) -> None:
    rounds, record = Rounds(ledger), ask(ledger)
    rounds.start(lambda: claim(ledger, record)).cancel()
    assert await rounds.take(lambda: 1) == 1
    assert states(ledger, [record]) == {PromptState.AWAITING_REPLY}
