"""A grant's uses are taken with the decision: of two who try one wins, and a kill in between takes both or neither."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.ledgers import YES, ask, open_ledger

from atlasbridge.core.clock import ManualClock
from atlasbridge.core.ids import new_id
from atlasbridge.core.policy.pattern import Shape
from atlasbridge.core.policy.rule import Grant, GrantShape
from atlasbridge.core.prompt.model import PromptRecord, PromptState, Reject
from atlasbridge.core.store.ledger import Ledger
from atlasbridge.core.store.prompts import Decider


def give(ledger: Ledger, **fields: Any) -> Grant:
    shape = GrantShape((Shape(("cargo", "test", "**")),))
    return ledger.add_grant(Grant(new_id(), shape, "bash", by="cli:local", **fields), "p", "cargo test")


def use(ledger: Ledger, grant_id: str, record: PromptRecord) -> bool:
    decider = Decider(f"grant:{grant_id[:8]}", grants=(grant_id[:8],))
    return not isinstance(ledger.claim(record.prompt_id, record.session_id, None, YES, decider), Reject)


def test_a_grant_is_kept_as_it_was_given_and_listed_while_it_lives(tmp_path: Path) -> None:
    clock = ManualClock()
    ledger = open_ledger(tmp_path, clock)
    grant = give(ledger, deadline=clock.now() + 60, uses_left=3, folder="/x", session_id="s")
    assert ledger.live_grants() == [grant]
    assert [item["event"] for item in ledger.audit_entries(event="GRANT_ADDED")] == ["GRANT_ADDED"]
    clock.advance(61)
    assert ledger.live_grants() == []
    ledger.close()


def test_a_use_is_taken_with_the_decision_and_the_last_one_only_once(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    grant = give(ledger, uses_left=1)
    first, second = ask(ledger), ask(ledger)
    assert use(ledger, grant.grant_id, first)
    assert not use(ledger, grant.grant_id, second)
    untouched = ledger.prompt(second.prompt_id)
    assert untouched is not None and untouched.state is PromptState.AWAITING_REPLY
    assert ledger.live_grants() == []
    ledger.close()


def test_a_decision_that_came_too_late_takes_no_use(tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path)
    grant = give(ledger, uses_left=1)
    record = ask(ledger)
    ledger.withdraw(record.prompt_id, "moved_on")
    assert not use(ledger, grant.grant_id, record)
    assert [item.uses_left for item in ledger.live_grants()] == [1]
    ledger.close()


def test_a_revoked_expired_or_earlier_boots_grant_decides_nothing(tmp_path: Path) -> None:
    clock = ManualClock()
    ledger = open_ledger(tmp_path, clock)
    revoked, expired, kept = give(ledger), give(ledger, deadline=clock.now() + 5), give(ledger)
    assert ledger.revoke_grants(revoked.grant_id[:8], "cli:local") == [revoked.grant_id]
    clock.advance(10)
    record = ask(ledger)
    assert not use(ledger, revoked.grant_id, record) and not use(ledger, expired.grant_id, record)
    ledger.close()
    after = open_ledger(tmp_path, clock, "boot-2")
    assert after.live_grants() == []
    assert not use(after, kept.grant_id, ask(after))
    after.close()


DYING = """
import json, os, sys
from pathlib import Path
from tests.core.store.test_grants import use
from tests.support.deadly import die_at
from tests.support.ledgers import open_ledger
for home, grant, prompt, place in json.loads(sys.argv[1]):
    if (child := os.fork()) == 0:
        ledger = open_ledger(Path(home))
        record = ledger.prompt(prompt)
        die_at(place, tell=2)
        use(ledger, grant, record)
        sys.setprofile(None)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def dying_uses(folder: Path, places: list[str]) -> tuple[list[int], list[str]]:
    """A last use per place, by a process that dies there: how each ended, the places passed; the stores are judged."""
    orders, others = [], []
    for number, place in enumerate(places):
        home = folder / str(number)
        home.mkdir(parents=True)
        ledger = open_ledger(home)
        grant, record = give(ledger, uses_left=1), ask(ledger)
        orders.append((str(home), grant.grant_id, record.prompt_id, place))
        others.append(ask(ledger))
        ledger.close()
    command = [sys.executable, "-c", DYING, json.dumps(orders)]
    done = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=True)
    for (path, grant_id, prompt_id, place), other in zip(orders, others, strict=True):
        ledger = open_ledger(Path(path))
        decided = ledger.reply(prompt_id) is not None
        assert [item.uses_left for item in ledger.live_grants()] == ([] if decided else [1]), place
        assert use(ledger, grant_id, other) is not decided, place
        assert ledger.check() == [] and ledger.prepare_verify()().ok, place
        ledger.close()
    return [int(line) for line in done.stdout.split()], done.stderr.splitlines()


def test_a_kill_in_the_middle_of_the_last_use_never_lets_it_be_used_twice(tmp_path: Path) -> None:
    statuses, places = dying_uses(tmp_path / "alive", [""])
    assert statuses == [0] and len(places) > 20
    statuses, _ = dying_uses(tmp_path / "dead", places)
    assert statuses == [-signal.SIGKILL] * len(places)
