"""Standing answers of an old configuration become exact rules, or it is said why not."""

from __future__ import annotations

import tomllib

import pytest

from atlasbridge.core.policy.offer import Migrated, StandingAnswer, migrate
from atlasbridge.core.policy.reader import read_policy
from atlasbridge.core.routing.shell_parser import ShellParser

PARSER = ShellParser()


def one(question: str, answer: str = "y") -> Migrated:
    (made,) = migrate([StandingAnswer("claude", question, answer)], PARSER)
    return made


@pytest.mark.parametrize(
    ("question", "answer", "verdict", "words"),
    [
        ("npm run test", "y", "allow", [["npm", "run", "test"]]),
        ("npm run test", "1", "allow", [["npm", "run", "test"]]),
        ("cd src && npm test", "yes", "allow", [["cd", "src"], ["npm", "test"]]),
        ("git commit -m 'a b'", "y", "allow", [["git", "commit", "-m", "a b"]]),
        ("curl example.com", "n", "deny", [["curl", "example.com"]]),
    ],
)
def test_a_plain_answer_to_a_plain_command_is_a_rule_for_these_words(
    question: str, answer: str, verdict: str, words: list[list[str]]
) -> None:
    made = one(question, answer)
    rules = tomllib.loads(made.rules)["rule"]
    assert [(rule["verdict"], rule["command"], rule["tool"]) for rule in rules] == [
        (verdict, item, "claude") for item in words
    ]
    read_policy(made.rules, PARSER)  # its own example holds, too


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Do you want to proceed?", "y"),
        ("npm run test", "2"),
        ("npm run test", "Yes, and don't ask again"),
        ("rm -rf build", "y"),
        ("git push", "y"),
        ("ls *.c", "y"),
        ("ls '*'", "y"),
        ("ls $(x)", "y"),
        ("deploy --token=[redacted] > log", "y"),
        ("ls && reboot", "n"),
    ],
)
def test_what_no_rule_can_say_exactly_is_left_with_a_reason(question: str, answer: str) -> None:
    made = one(question, answer)
    assert made.rules == "" and made.why
