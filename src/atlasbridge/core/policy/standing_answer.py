"""From a standing answer of an old configuration (`[[grants]]`) to the rule that says the same; or why there is none.

A standing answer compared what was shown; a rule knows the words of a command.  The rule is exact: these words alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from atlasbridge.core.policy.granting import decide_shape
from atlasbridge.core.policy.pattern import REST, Shape, has_wildcard
from atlasbridge.core.policy.rule import Case, Say
from atlasbridge.core.policy.shell import Parser, read_script
from atlasbridge.core.policy.suggest import is_destructive, quoted
from atlasbridge.core.prompt.model import Subject, SubjectKind, SubjectSource
from atlasbridge.core.values import frozen

_AGREES = frozenset({"y", "yes", "1"})
_REFUSES = frozenset({"n", "no"})


@frozen
class StandingAnswer:
    tool: str
    question: str
    answer: str


@frozen
class Migrated:
    """`rules`: as they stand in a rule file; "" with the reason `why` there is none."""

    old: StandingAnswer
    rules: str = ""
    why: str = ""


def migrate(answers: Iterable[StandingAnswer], parse: Parser) -> list[Migrated]:
    return [_migrate(old, number, parse) for number, old in enumerate(answers, 1)]


def _migrate(old: StandingAnswer, number: int, parse: Parser) -> Migrated:
    verdict = _verdict(old.answer)
    if verdict is None:
        return Migrated(old, why=f"its answer {old.answer!r} is neither a plain yes nor a plain no")
    subject = Subject(SubjectKind.COMMAND, old.question, "", SubjectSource.CALLER, True, old.question)
    shape = decide_shape(Case(subject, old.tool), parse)
    if isinstance(shape, str):
        return Migrated(old, why=f"its question is no command that a rule can hold: {shape}")
    script = read_script(old.question, parse)
    commands = [item.words for item in script.commands] if script is not None else []
    if any(has_wildcard(word) for words in commands for word in words):
        return Migrated(old, why="its words hold a *, which means something else in a rule")
    if verdict is Say.ALLOW and any(is_destructive(Shape((*words, REST))) for words in commands):
        return Migrated(old, why="it removes, publishes or runs as somebody else: write that rule yourself")
    if verdict is Say.DENY and len(commands) > 1:
        return Migrated(old, why="it refused several commands together, and a rule would refuse each of them alone")
    return Migrated(old, rules="\n".join(_rule(old, verdict, words, number) for words in dict.fromkeys(commands)))


def _verdict(answer: str) -> Say | None:
    said = answer.strip().lower()
    if said in _AGREES:
        return Say.ALLOW
    return Say.DENY if said in _REFUSES else None


def _rule(old: StandingAnswer, verdict: Say, words: tuple[str, ...], number: int) -> str:
    name = "-".join(word for word in words if word.replace("-", "").isalnum())[:32].strip("-") or "rule"
    command = " ".join("'" + word.replace("'", "'\\''") + "'" if not word.isalnum() else word for word in words)
    lines = [
        "[[rule]]",
        f"name = {quoted(f'{name}-{number}')}",
        f'verdict = "{verdict.value}"',
        f"command = [{', '.join(quoted(word) for word in words)}]",
        f"tool = {quoted(old.tool)}",
        f"match = [{quoted(command)}]",
    ]
    return "\n".join(lines) + "\n"
