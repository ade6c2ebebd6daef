"""A short run of the long attack in tests/torture/policy_fuzz.py, and that it would notice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.support.bash_jail import BashJail
from tests.torture import policy_fuzz

from atlasbridge.core.policy.reader import read_policy
from atlasbridge.core.routing.shell_parser import ShellParser


def test_no_program_runs_that_no_rule_allows() -> None:
    seen: Counter[str] = Counter()
    wrong = policy_fuzz.fuzz(20_261, 1000, seen) + policy_fuzz.fuzz(20_262, 1000, seen)
    assert wrong == []
    assert seen["allowed"] > 200
    assert seen["started"] > 200


def test_the_jail_notices_what_a_policy_had_missed(tmp_path: Path) -> None:
    parser = ShellParser()
    policy = read_policy(policy_fuzz.RULES.read_text(encoding="utf-8"), parser)
    parser.close()
    missed = ["ls; evil", "ls $(evil)", "X=1 ls", "ls\nevil", "l\\s -c 'x' | evil", "alias ls=x; evil", "PATH=/x ls"]
    wrong = policy_fuzz.started_unasked(BashJail(tmp_path), policy, missed, Counter())
    assert {text for text in missed if any(line.startswith(repr(text)) for line in wrong)} == set(missed)
