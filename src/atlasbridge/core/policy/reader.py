"""Reads `policy.toml`. Everything is checked while reading, including the examples of each rule; an error names its
line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from atlasbridge.core.errors import ConfigError
from atlasbridge.core.policy.approval import PASSKEY
from atlasbridge.core.policy.judge import judge
from atlasbridge.core.policy.pattern import REST, Shape, has_wildcard
from atlasbridge.core.policy.rule import Case, Policy, PolicyRule, Say
from atlasbridge.core.policy.shell import Parser
from atlasbridge.core.prompt.model import Subject, SubjectKind, SubjectSource

_TEXTS = ("name", "path", "host", "tool", "folder", "label", "reason")
_LISTS = ("person", "match", "no_match")
_KEYS = {*_TEXTS, *_LISTS, "verdict", "command", "kind", "approvals", "proof"}
_HINT = "see docs/howto/policy.md"


class _Wrong(Exception):
    def __init__(self, key: str, what: str) -> None:
        super().__init__(what)
        self.key = key


def read_policy(
    text: str, parse: Parser, *, where: str = "policy.toml", home: str = "", tightens: bool = False
) -> Policy:
    """Raises ConfigError. `tightens`: a project's file, which can ask and deny, but never allow."""
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also a number that is too long, and lists within lists
        found = re.search(r"line (\d+)", str(error))
        at = found.group(1) if found else text.count("\n", 0, len(text.rstrip())) + 1
        raise ConfigError(f"{where}:{at}: {error}", _HINT) from None
    for key in data.keys() - {"rule"}:
        raise ConfigError(
            f"{where}:{_line(text, 0, key)}: {key!r} is not known here; rules stand under [[rule]]", _HINT
        )
    tables = data.get("rule", [])
    if not isinstance(tables, list):
        raise ConfigError(f"{where}:{_line(text, 0, 'rule')}: write [[rule]], in double brackets", _HINT)
    rules: list[PolicyRule] = []
    for number, table in enumerate(tables):
        try:
            rule = _read_rule(table, where if tightens else "", tightens)
            if rule.name in {other.name for other in rules}:
                raise _Wrong("name", f"there are two rules named {rule.name!r}")
            _try_examples(rule, parse, home)
        except _Wrong as error:
            name = table.get("name", f"number {number + 1}") if isinstance(table, Mapping) else number + 1
            line = _line(text, number + 1, error.key)
            raise ConfigError(f"{where}:{line}: rule {name!r}: {error}", _HINT) from None
        rules.append(rule)
    return Policy(tuple(rules))


def _line(text: str, number: int, key: str) -> int:
    """The line where rule `number` (from 1; 0: before any) sets `key`; otherwise the line where the rule begins."""
    seen, start = 0, 1
    for line, content in enumerate(text.splitlines(), 1):
        if re.match(r"\s*\[\[\s*['\"]?rule['\"]?\s*\]\]", content):
            seen += 1
            start = line if seen == number else start
            if seen > number > 0:
                break
        if seen == number and key and re.match(rf"\s*(\[+\s*)?['\"]?{re.escape(key)}['\"]?\s*(=|\]|\.)", content):
            return line
    return start


def _read_rule(table: Any, origin: str, tightens: bool) -> PolicyRule:
    if not isinstance(table, Mapping):
        raise _Wrong("", "it is not a table")
    for key in table.keys() - _KEYS:
        raise _Wrong(key, f"{key!r} is not known; there are {', '.join(sorted(_KEYS))}")
    if not table.get("name"):
        raise _Wrong("name", "it has no name")
    texts = {name: _text(table, name) for name in _TEXTS}
    rule = PolicyRule(
        **texts,
        verdict=_verdict(table, tightens),
        command=_shape(table),
        kind=_kind(table),
        approvals=_approvals(table),
        proof=_proof(table),
        person=_list(table, "person"),
        match=_list(table, "match"),
        no_match=_list(table, "no_match"),
        origin=origin,
    )
    _check(rule)
    return rule


def _text(table: Mapping[str, Any], key: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise _Wrong(key, f"{key} is a text")
    if key in table and not value.strip():
        raise _Wrong(key, f"{key} is empty")
    return value


def _list(table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    value = [value] if isinstance(value, str) else value
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise _Wrong(key, f"{key} is a list of texts")
    return tuple(value)


def _verdict(table: Mapping[str, Any], tightens: bool) -> Say:
    value = table.get("verdict")
    if value not in ("allow", "ask", "deny"):
        raise _Wrong("verdict", 'verdict is "allow", "ask" or "deny"')
    if tightens and value == "allow":
        raise _Wrong("verdict", "a project's own file may ask or deny, never allow")
    return Say(value)


def _kind(table: Mapping[str, Any]) -> SubjectKind | None:
    value = table.get("kind")
    if value is None:
        return None
    if value not in [kind.value for kind in SubjectKind]:
        raise _Wrong("kind", f"kind is one of {', '.join(kind.value for kind in SubjectKind)}")
    return SubjectKind(value)


def _approvals(table: Mapping[str, Any]) -> int:
    value = table.get("approvals", 1)
    if type(value) is not int or not 1 <= value <= 20:
        raise _Wrong("approvals", "approvals is a number from 1 to 20")
    return value


def _proof(table: Mapping[str, Any]) -> str:
    value = table.get("proof", "")
    if value not in ("", PASSKEY) or ("proof" in table and not value):
        raise _Wrong("proof", 'proof is "passkey"')
    if value and table.get("verdict") != "ask":
        raise _Wrong("proof", "proof stands in rules that ask")
    return str(value)


def _shape(table: Mapping[str, Any]) -> Shape | None:
    if "command" not in table:
        return None
    words = _list(table, "command") if isinstance(table["command"], list) else ()
    if not words:
        raise _Wrong("command", 'command is a list of words, such as ["npm", "run", "test*", "**"]')
    if REST in words[:-1]:
        raise _Wrong("command", "** stands for all further words: it can only be the last")
    if any(REST in word and word != REST for word in words):
        raise _Wrong("command", "** stands alone; within a word there is *")
    if words[0] == REST or (has_wildcard(words[0]) and table.get("verdict") == "allow"):
        raise _Wrong(
            "command", "an allowing rule names its program in full" if words[0] != REST else "** is no program"
        )
    return Shape(words)


def _check(rule: PolicyRule) -> None:
    if sum(1 for part in (rule.command, rule.path, rule.host) if part) > 1:
        raise _Wrong("command", "a rule has a command, a path or a host, not two of them")
    wanted = _subject_kind(rule)
    if rule.kind is not None and wanted not in (None, rule.kind):
        raise _Wrong("kind", f"a rule with {wanted.value if wanted else ''} words is not of kind {rule.kind.value}")
    if rule.verdict is Say.ALLOW and rule.bare:
        raise _Wrong("verdict", "an allowing rule says what it allows: command, path, host or kind")
    if rule.verdict is Say.ALLOW and rule.kind is SubjectKind.COMMAND and rule.command is None:
        raise _Wrong("kind", "an allowing rule for commands says which: command = [...]")
    if rule.verdict is not Say.ASK and (rule.approvals > 1 or rule.person):
        raise _Wrong("approvals" if rule.approvals > 1 else "person", "approvals and person stand in rules that ask")
    if rule.person and len(set(rule.person)) < rule.approvals:
        raise _Wrong("approvals", "there are fewer people than approvals")
    if (rule.match or rule.no_match) and rule.bare and rule.kind is None:
        raise _Wrong("match", "examples need a command, a path or a host")


def _subject_kind(rule: PolicyRule) -> SubjectKind | None:
    if rule.command is not None:
        return SubjectKind.COMMAND
    if rule.path:
        return SubjectKind.EDIT
    return SubjectKind.FETCH if rule.host else None


def example_case(rule: PolicyRule, text: str, home: str) -> Case:
    """The example as a request of the rule's own tool in the rule's own folder."""
    kind = rule.kind or _subject_kind(rule) or SubjectKind.COMMAND
    folder = rule.folder.replace("**", "x").replace("*", "x") or "/"
    folder = home + folder[1:] if folder.startswith("~") else folder
    target = text if kind in (SubjectKind.EDIT, SubjectKind.FETCH) else ""
    subject = Subject(kind, text, folder, SubjectSource.HOOK, True, text, target)
    return Case(subject, rule.tool.replace("*", "x"), rule.label.replace("*", "x"), folder, home)


def _try_examples(rule: PolicyRule, parse: Parser, home: str) -> None:
    alone = Policy((rule,))
    for key, examples, wanted in (("match", rule.match, True), ("no_match", rule.no_match, False)):
        for text in examples:
            verdict = judge(alone, example_case(rule, text, home or "/home/x"), parse)
            if (verdict.rule == rule.name) is not wanted:
                why = f": {verdict.reason}" if wanted else ""
                raise _Wrong(key, f"the example {text!r} {'does not match' if wanted else 'matches'}{why}")
