"""Commands that try to get past rules: none is allowed that should not be, none passes a refusal."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from atlasbridge.core.policy.judge import judge
from atlasbridge.core.policy.reader import read_policy
from atlasbridge.core.policy.rule import Case, Policy
from atlasbridge.core.prompt.model import Subject, SubjectKind, SubjectSource
from atlasbridge.core.routing.shell_parser import ShellParser

HERE = Path(__file__).parent
FOLDER, HOME = "/home/me/src/x", "/home/me"
CLASSES = tomllib.loads((HERE / "corpus.toml").read_text(encoding="utf-8"))["class"]


@pytest.fixture(scope="module")
def parser() -> Iterator[ShellParser]:
    made = ShellParser()
    yield made
    made.close()


@pytest.fixture(scope="module")
def policy(parser: ShellParser) -> Policy:
    return read_policy((HERE / "policy.toml").read_text(encoding="utf-8"), parser, home=HOME)


def case_of(text: str, **changes: object) -> Case:
    fields = {"complete": True, "shown": text, **changes}
    subject = Subject(SubjectKind.COMMAND, text, FOLDER, SubjectSource.HOOK, **fields)  # type: ignore[arg-type]
    return Case(subject, "claude", "", FOLDER, HOME)


@pytest.mark.parametrize("group", CLASSES, ids=[group["name"] for group in CLASSES])
def test_every_command_of_the_corpus_gets_its_verdict(
    group: dict[str, Any], policy: Policy, parser: ShellParser
) -> None:
    wrong = []
    for wanted in ("allow", "ask", "deny"):
        for text in group.get(wanted, ()):
            verdict = judge(policy, case_of(text), parser)
            if verdict.verdict.value != wanted:
                wrong.append(
                    f"{text!r}: {verdict.verdict.value} instead of {wanted} ({verdict.rule}: {verdict.reason})"
                )
    assert wrong == []


def test_the_corpus_is_large_and_every_kind_of_verdict_is_in_it() -> None:
    counts = {wanted: sum(len(group.get(wanted, ())) for group in CLASSES) for wanted in ("allow", "ask", "deny")}
    assert counts["allow"] >= 60
    assert counts["ask"] >= 250
    assert counts["deny"] >= 250


def test_what_was_cut_or_hidden_is_never_allowed(policy: Policy, parser: ShellParser) -> None:
    for group in CLASSES:
        for text in group.get("allow", ()):
            cut = judge(policy, case_of(text, complete=False), parser)
            hidden = judge(policy, case_of(text, shown=text + " [redacted]"), parser)
            assert (cut.verdict.value, hidden.verdict.value) == ("ask", "ask"), text


def test_what_is_refused_stays_refused_when_something_of_it_is_hidden(policy: Policy, parser: ShellParser) -> None:
    for group in CLASSES:
        for text in group.get("deny", ()):
            assert judge(policy, case_of(text, complete=False), parser).verdict.value == "deny", text


def test_what_is_allowed_is_refused_as_soon_as_something_refused_stands_beside_it(
    policy: Policy, parser: ShellParser
) -> None:
    for group in CLASSES:
        for text in group.get("allow", ()):
            for joined in (f"{text}\nrm -rf /", f"rm -rf /\n{text}", f"( {text}\n) && sudo rm -rf /"):
                assert judge(policy, case_of(joined), parser).verdict.value == "deny", joined
