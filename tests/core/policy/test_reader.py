"""What is wrong in a rule file is said with its line, and nothing of it is used."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from atlasbridge.core.errors import ConfigError
from atlasbridge.core.policy.reader import read_policy
from atlasbridge.core.policy.rule import Say
from atlasbridge.core.routing.shell_parser import ShellParser

GOOD = """
[[rule]]
name = "tests"
verdict = "allow"
command = ["npm", "run", "test*", "**"]
tool = "claude"
folder = "~/src/*"
match = ["npm run test:unit"]
no_match = ["npm run deploy"]

[[rule]]
name = "prod"
verdict = "ask"
command = ["kubectl", "**"]
approvals = 2
person = ["ann", "bob", "eve"]
"""


@pytest.fixture(scope="module")
def parser() -> Iterator[ShellParser]:
    made = ShellParser()
    yield made
    made.close()


def test_a_good_file_gives_its_rules(parser: ShellParser) -> None:
    policy = read_policy(GOOD, parser, home="/home/me")
    assert [(rule.name, rule.verdict) for rule in policy.rules] == [("tests", Say.ALLOW), ("prod", Say.ASK)]
    assert policy.rules[1].approvals == 2


def test_two_rules_that_say_something_else_have_different_digests(parser: ShellParser) -> None:
    one = read_policy(GOOD, parser).rules[0]
    other = read_policy(GOOD, parser).rules[1]
    changed = read_policy(GOOD.replace('tool = "claude"', 'tool = "codex"'), parser).rules[0]
    assert len({one.digest, other.digest, changed.digest}) == 3
    assert one.digest == read_policy(GOOD, parser).rules[0].digest


RULE = '[[rule]]\nname = "a"\nverdict = "{verdict}"\n'


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("x = ", 1, ""),
        ("[[rule]]\nname = \"a\"\nverdict = 'allow'\ncommand = [", 4, ""),
        ("[grants]\n", 1, "'grants' is not known"),
        ("[rule]\nname = 'a'\n", 1, "double brackets"),
        ("\n[[rule]]\nverdict = 'allow'\n", 2, "no name"),
        (RULE.format(verdict="perhaps"), 3, "verdict is"),
        (RULE.format(verdict="allow") + "comand = ['x']\n", 4, "'comand' is not known"),
        (RULE.format(verdict="allow") + "command = 'npm test'\n", 4, "list of words"),
        (RULE.format(verdict="allow") + "command = []\n", 4, "list of words"),
        (RULE.format(verdict="allow") + "command = ['a', '**', 'b']\n", 4, "only be the last"),
        (RULE.format(verdict="allow") + "command = ['a', 'b**']\n", 4, "within a word"),
        (RULE.format(verdict="allow") + "command = ['*', 'x']\n", 4, "in full"),
        (RULE.format(verdict="allow") + "command = ['**']\n", 4, ""),
        (RULE.format(verdict="allow"), 3, "says what it allows"),
        (RULE.format(verdict="allow") + "kind = 'command'\n", 4, "says which"),
        (RULE.format(verdict="allow") + "kind = 'nonsense'\n", 4, "kind is one of"),
        (RULE.format(verdict="allow") + "command = ['a']\napprovals = 2\n", 5, "rules that ask"),
        (RULE.format(verdict="ask") + "approvals = 0\n", 4, "from 1 to 20"),
        (RULE.format(verdict="ask") + "approvals = true\n", 4, "from 1 to 20"),
        (RULE.format(verdict="ask") + "approvals = 2\nperson = ['ann', 'ann']\n", 4, "fewer people"),
        (RULE.format(verdict="deny") + "command = ['a']\npath = 'b'\n", 4, "not two of"),
        (RULE.format(verdict="allow") + "command = ['ls', '**']\nmatch = ['ls', 'ls $x']\n", 5, "does not match"),
        (RULE.format(verdict="allow") + "command = ['find', '**']\nmatch = ['find . -delete']\n", 5, "does not match"),
        (RULE.format(verdict="deny") + "command = ['rm', '**']\nno_match = ['sudo rm x']\n", 5, "matches"),
        (RULE.format(verdict="ask") + "tool = 3\n", 4, "is a text"),
        (RULE.format(verdict="ask") + "folder = ''\n", 4, "is empty"),
        (GOOD + '\n[[rule]]\nverdict = "deny"\nname = "tests"\ncommand = ["x"]\n', 20, "two rules named"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, line: int, said: str, parser: ShellParser) -> None:
    with pytest.raises(ConfigError) as error:
        read_policy(text, parser, where="policy.toml")
    assert str(error.value).startswith(f"policy.toml:{line}: ")
    assert said in str(error.value)


def test_a_projects_own_file_may_not_allow(parser: ShellParser) -> None:
    text = RULE.format(verdict="allow") + "command = ['ls']\n"
    with pytest.raises(ConfigError, match=r"x/policy\.toml:3: rule 'a': a project's own file may ask or deny"):
        read_policy(text, parser, where="x/policy.toml", tightens=True)
