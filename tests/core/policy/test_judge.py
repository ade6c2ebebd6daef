"""Which rule holds for whom and where; files, pages and other subjects; the strictest wins."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.shell_grammar import Grammar
from tests.support.tier import examples

from atlasbridge.core.daemon.rules import folds_case
from atlasbridge.core.policy.judge import judge
from atlasbridge.core.policy.pattern import Shape
from atlasbridge.core.policy.reader import read_policy
from atlasbridge.core.policy.rule import Case, Policy, PolicyRule, Say
from atlasbridge.core.prompt.model import Subject, SubjectKind, SubjectSource
from atlasbridge.core.routing.shell_parser import ShellParser
from atlasbridge.core.values import replace

HOME = "/home/me"
PARSER = ShellParser()


@pytest.fixture(scope="module", autouse=True)
def _end_of_the_parser() -> Iterator[None]:
    yield
    PARSER.close()


def case(
    text: str, kind: str = "command", *, folder: str = "/home/me/src/a", tool: str = "claude", **more: str
) -> Case:
    subject = Subject(SubjectKind(kind), text, folder, SubjectSource.HOOK, True, text, more.get("target", ""))
    return Case(subject, tool, more.get("label", ""), folder, HOME, more.get("real", ""))


def say(rules: str, of: Case) -> str:
    verdict = judge(read_policy(rules, PARSER, home=HOME), of, PARSER)
    return f"{verdict.verdict.value} {verdict.rule}".strip()


def rule(verdict: str, *lines: str, name: str = "r") -> str:
    return "\n".join(["[[rule]]", f'name = "{name}"', f'verdict = "{verdict}"', *lines, ""])


def test_without_rules_a_person_is_asked() -> None:
    assert say("", case("ls")) == "ask"


def test_a_rule_holds_for_its_tool_label_and_folder_only() -> None:
    rules = rule("allow", 'command = ["ls"]', 'tool = "claude"', 'label = "nightly*"', 'folder = "~/src/*"')
    assert say(rules, case("ls", label="nightly-1")) == "allow r"
    assert say(rules, case("ls", label="nightly-1", tool="codex")) == "ask"
    assert say(rules, case("ls", label="x")) == "ask"
    assert say(rules, case("ls", label="nightly-1", folder="/home/me/other")) == "ask"
    assert say(rules, case("ls", label="nightly-1", folder="/home/me/src")) == "ask"
    assert say(rules, case("ls", label="nightly-1", folder="/home/me/src/a/deep")) == "allow r"
    assert say(rules, case("ls", label="nightly-1", folder="/home/me/src/a/../../x")) == "ask"


def test_after_cd_a_rule_for_a_folder_holds_no_more() -> None:
    rules = rule("allow", 'command = ["ls"]', 'folder = "~/src/*"') + rule("allow", 'command = ["cd", "*"]', name="cd")
    assert say(rules, case("cd sub")) == "allow cd"
    assert say(rules, case("cd sub && ls")) == "ask"
    assert say(rules, case("ls && cd sub")) == "allow cd"


def test_a_refusal_for_a_folder_follows_cd_into_it() -> None:
    rules = rule("deny", 'command = ["git", "push", "**"]', 'folder = "~/prod"')
    assert say(rules, case("cd ~/prod && git push")) == "deny r"
    assert say(rules, case("cd ../../prod; git push")) == "deny r"
    assert say(rules, case("git -C /home/me/prod push")) == "deny r"
    assert say(rules, case("git push")) == "ask"


def test_edits_are_judged_by_the_file_and_by_where_it_really_is() -> None:
    rules = rule("allow", 'path = "docs/**"') + rule("deny", 'path = "~/.ssh/**"', name="keys")
    assert say(rules, case("+x", "edit", target="docs/a.md")) == "allow r"
    assert say(rules, case("+x", "edit", target="/home/me/src/a/docs/b/c.md")) == "allow r"
    assert say(rules, case("+x", "edit", target="docs/../a.md")) == "ask"
    assert say(rules, case("+x", "edit", target="docs/../../../.ssh/config")) == "deny keys"
    assert say(rules, case("+x", "edit", target="docs/link", real="/etc/passwd")) == "ask"
    assert say(rules, case("+x", "edit", target="docs/link", real="/home/me/.ssh/id")) == "deny keys"
    assert say(rules, case("+x", "edit")) == "ask"
    assert say(rules, case("docs/a.md")) == "ask"


def test_an_edit_of_several_files_is_allowed_only_if_each_is_and_refused_if_one_is() -> None:
    rules = rule("allow", 'path = "docs/**"') + rule("deny", 'path = "~/.ssh/**"', name="keys")
    assert say(rules, case("+x", "edit", target="docs/a.md\ndocs/b.md")) == "allow r"
    assert say(rules, case("+x", "edit", target="docs/a.md\nsrc/b.md")) == "ask"
    assert say(rules, case("+x", "edit", target="docs/a.md\n/home/me/.ssh/id")) == "deny keys"
    assert say(rules, case("+x", "edit", target="docs/a\ndocs/b", real="/home/me/src/a/docs/a\n/etc/passwd")) == "ask"
    assert say(rules, case("+x", "edit", target="\n")) == "ask"


def test_a_path_is_refused_as_the_disk_compares_it() -> None:
    rules = rule("deny", 'path = "~/.ssh/**"') + rule("allow", 'path = "docs/**"', name="docs")
    for path in ("/home/me/.SSH/id", "/HOME/me/.ssh/id", "/home/me/.ssh/id"):
        judged = replace(case("+x", "edit", target=path), folds=True)
        assert say(rules, judged) == "deny r", path
    assert say(rules, case("+x", "edit", target="/home/me/.SSH/id")) == "ask"
    assert say(rules, replace(case("+x", "edit", target="Docs/a.md"), folds=True)) == "ask"  # to allow, it is exact
    assert say(rules, replace(case("cat '/home/me/.Ssh/id'"), folds=True)) == "deny r"
    accent = rule("deny", 'path = "/srv/caf\u00e9/**"')
    assert say(accent, replace(case("+x", "edit", target="/srv/CAFE\u0301/a"), folds=True)) == "deny r"


def test_whether_a_disk_folds_case_is_found_out_on_the_disk(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    assert folds_case(str(tmp_path / "plain")) is (tmp_path / "PLAIN").exists()
    (tmp_path / "both").mkdir()
    (tmp_path / "BOTH").symlink_to("both")  # one folder by two names
    assert folds_case(str(tmp_path / "both"))
    assert not folds_case("/") and not folds_case("/no/such/folder")


def test_pages_are_judged_by_their_host_and_only_plain_addresses_are_allowed() -> None:
    rules = rule("allow", 'host = "*.example.com"') + rule("deny", 'host = "evil.*"', name="evil")
    assert say(rules, case("GET", "fetch", target="https://docs.example.com/a?b=c")) == "allow r"
    assert say(rules, case("https://docs.example.com:8443", "fetch")) == "allow r"
    for address in (
        "https://docs.example.com@evil.net/",
        "https://evil.net/docs.example.com",
        "https://evil.net\\.example.com/",
        "https://evil.net#.example.com",
        "https://evil.net?.example.com",
        "https://docs.example.com.evil.net/",
        "//evil.net/",
    ):
        assert say(rules, case("GET", "fetch", target=address)).startswith("deny") or "example.com.evil" in address
        assert not say(rules, case("GET", "fetch", target=address)).startswith("allow")
    assert say(rules, case("GET", "fetch", target="file:///etc/passwd")) == "ask"
    assert say(rules, case("GET", "fetch", target="https://docs.exаmple.com/")) == "ask"


def test_other_subjects_are_judged_by_their_kind() -> None:
    rules = rule("allow", 'kind = "tool"', 'tool = "claude"') + rule("deny", 'kind = "trust"', name="trust")
    assert say(rules, case("search(x)", "tool")) == "allow r"
    assert say(rules, case("/x", "trust")) == "deny trust"
    assert say(rules, case("what?", "question")) == "ask"


def test_a_prompt_whose_subject_is_unknown_is_never_allowed_but_may_be_refused() -> None:
    assert say(rule("allow", 'kind = "tool"'), Case(None, "claude")) == "ask"
    assert say(rule("deny", 'tool = "claude"'), Case(None, "claude")) == "deny r"


def test_a_word_that_changes_what_the_program_does_must_be_written_out() -> None:
    assert say(rule("allow", 'command = ["find", "**"]'), case("find . -delete")) == "ask"
    assert say(rule("allow", 'command = ["find", ".", "-delete"]'), case("find . -delete")) == "allow r"
    assert (
        say(rule("allow", 'command = ["sudo", "systemctl", "status", "*"]'), case("sudo systemctl status x"))
        == "allow r"
    )
    assert say(rule("allow", 'command = ["sudo", "**"]'), case("sudo systemctl status x")) == "ask"


def test_of_several_rules_that_ask_the_one_that_wants_most_people_counts() -> None:
    rules = rule("ask", 'command = ["git", "push", "**"]') + rule(
        "ask", 'command = ["git", "**"]', "approvals = 2", name="two"
    )
    verdict = judge(read_policy(rules, PARSER), case("git push"), PARSER)
    assert (verdict.rule, verdict.approvals) == ("two", 2)


RULES = (
    PolicyRule("ls", Say.ALLOW, Shape(("ls", "**"))),
    PolicyRule("git", Say.ALLOW, Shape(("git", "status", "**"))),
    PolicyRule("echo", Say.ALLOW, Shape(("echo", "**"))),
    PolicyRule("evil", Say.DENY, Shape(("evil", "**"))),
    PolicyRule("cat", Say.ASK, Shape(("cat", "**"))),
)
LINES = st.integers(0, 2**32).map(lambda seed: _line(seed))


def _line(seed: int) -> str:
    return Grammar(Random(seed)).line()


@settings(max_examples=examples(60), deadline=None)
@given(LINES)
def test_the_order_of_rules_does_not_matter(text: str) -> None:
    found = {judge(Policy(order), case(text), PARSER) for order in list(permutations(RULES))[::17]}
    assert len({(verdict.verdict, verdict.rule) for verdict in found}) == 1


@settings(max_examples=examples(150), deadline=None)
@given(LINES, st.sampled_from(RULES), st.sampled_from((Say.DENY, Say.ASK)))
def test_one_more_strict_rule_never_allows_more(text: str, rule: PolicyRule, verdict: Say) -> None:
    before = judge(Policy(RULES), case(text), PARSER).verdict
    after = judge(Policy((*RULES, replace(rule, name="more", verdict=verdict))), case(text), PARSER).verdict
    strictest = list(Say)
    assert strictest.index(after) <= strictest.index(before)


@settings(max_examples=examples(150), deadline=None)
@given(LINES, st.booleans())
def test_a_hidden_or_cut_subject_is_never_allowed(text: str, hidden: bool) -> None:
    whole = case(text)
    subject = replace(whole.subject, **({"shown": text[:-1] + "…"} if hidden else {"complete": False}))
    assert judge(Policy(RULES), replace(whole, subject=subject), PARSER).verdict is not Say.ALLOW
