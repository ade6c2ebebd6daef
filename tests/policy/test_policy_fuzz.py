"""A short run of the long attack in tests/torture/policy_fuzz.py, and that it would notice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.support.shell_jail import ShellJail, found_shells
from tests.torture import policy_fuzz

from atlasbridge.core.policy.reader import read_policy
from atlasbridge.core.policy.rule import Policy
from atlasbridge.core.routing.shell_parser import ShellParser

# Each of these makes at least one real shell run `evil`, or run another word than the one that stands there.
TWO_READINGS = [
    'git status "$\\\n(evil)"',
    'git status "a $\\\n(evil) b"',
    'git status "$\\\n\\\n(evil)"',
    'git status a"b"$\\\n(evil)',
    "ls $\\\n(evil)",
    "ls $\\\n'a'",
    'ls $\\\n"a"',
    'ls "$\\\n{x:=a}"',
    'ls "$\\\n((1))"',
    'ls "`\\\nevil`"',
    "ls &\\\n& evil",
    "ls <\\\n(evil)",
    'ls "$=HOME"',
    'ls "$+HOME"',
    'ls "$^HOME"',
    "ls a$~HOME",
    'ls ""~+',
    "ls a=''~",
    "ls ''=git",
    "ls {fd}>/dev/null",
    "ls 10>/dev/null",
    "ls #\\\nevil",
    "ls a\\\n#b",
    "ls \\\n#\nevil",
    "alias ls=evil\nls",
    "l\\\ns",
]


@pytest.fixture(scope="module")
def policy() -> Policy:
    return read_policy(policy_fuzz.RULES.read_text(encoding="utf-8"), ShellParser())


@pytest.mark.parametrize("text", TWO_READINGS)
def test_what_two_shells_could_read_in_two_ways_is_asked(policy: Policy, text: str) -> None:
    parser = ShellParser()
    assert not policy_fuzz.allows(policy, text, parser)
    assert not policy_fuzz.allows(policy, f"sh -c {policy_fuzz.quoted([text])}", parser)


@pytest.mark.parametrize(
    "text",
    [
        "git status \\\n  --short",
        "git log \\\n  --oneline \\\n  -5 \\\n  | head -3 \\\n  && ls",
        "ls 'a \\\n b'",
        'grep -E "x$|y" src',
        'grep "x$" src',
        'grep "(x$)" src',
        "grep 'a$=b' src",
        'grep "\\$HOME" src',
    ],
)
def test_what_every_shell_reads_alike_is_allowed(text: str) -> None:
    parser = ShellParser()
    rules = "".join(
        f'[[rule]]\nname = "{name}"\nverdict = "allow"\ncommand = [{words}, "**"]\n'
        for name, words in (
            ("ls", '"ls"'),
            ("status", '"git", "status"'),
            ("log", '"git", "log"'),
            ("grep", '"grep"'),
            ("head", '"head"'),
        )
    )
    assert policy_fuzz.allows(read_policy(rules, parser), text, parser)


def test_no_program_runs_that_no_rule_allows() -> None:
    assert {"bash", "dash"} <= set(found_shells()) or {"bash", "zsh"} <= set(found_shells()), "install bash and dash"
    seen: Counter[str] = Counter()
    assert policy_fuzz.fuzz(20_261, 500, seen) == []
    assert seen["allowed"] > 50
    assert all(seen[shell] > 50 for shell in found_shells())


def test_the_jail_notices_what_a_policy_had_missed(tmp_path: Path, policy: Policy) -> None:
    missed = [
        "ls; evil",
        "ls $(evil)",
        "X=1 ls",
        "ls\nevil",
        "l\\s -c 'x' | evil",
        "evil x",
        "PATH=/x:/bin ls",
        "ls $PATH",
    ]
    jail = ShellJail(tmp_path)
    wrong = policy_fuzz.started_unasked(jail, policy, missed, Counter(), ShellParser())
    for shell in jail.shells:
        noticed = {text for text in missed if any(line.startswith(f"{shell}: {text!r}") for line in wrong)}
        assert noticed == set(missed)
