"""A rule that a person wrote, a set of them, and what they say about one question."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import StrEnum

from atlasbridge.core.policy.pattern import Shape
from atlasbridge.core.prompt.model import Subject, SubjectKind, digest_text
from atlasbridge.core.values import as_dict, frozen


class Say(StrEnum):
    """The strictest wins: `deny` over `ask` over `allow`."""

    DENY = "deny"
    ASK = "ask"
    ALLOW = "allow"


STRICTEST = (Say.DENY, Say.ASK, Say.ALLOW)


@frozen
class PolicyRule:
    name: str
    verdict: Say
    command: Shape | None = None
    path: str = ""
    host: str = ""
    kind: SubjectKind | None = None
    tool: str = ""
    folder: str = ""
    label: str = ""
    person: tuple[str, ...] = ()  # whose agreement counts
    approvals: int = 1
    proof: str = ""  # "passkey": an agreement counts only with the signature of one
    reason: str = ""
    match: tuple[str, ...] = ()
    no_match: tuple[str, ...] = ()
    origin: str = ""  # the file it stands in, where that is not the person's own

    @property
    def digest(self) -> str:
        """Of all it says: two rules of one name are told apart by it in the audit log."""
        fields = {name: str(value) for name, value in as_dict(self).items()}
        return digest_text(json.dumps(fields, sort_keys=True))

    @property
    def bare(self) -> bool:
        """It holds for every subject there is."""
        return self.command is None and not self.path and not self.host and self.kind is None


@frozen
class Policy:
    rules: tuple[PolicyRule, ...] = ()

    def saying(self, verdict: Say) -> tuple[PolicyRule, ...]:
        return tuple(rule for rule in self.rules if rule.verdict is verdict)

    def joined(self, other: Policy) -> Policy:
        return Policy((*self.rules, *other.rules))


def own_rules(places: tuple[str, ...]) -> Policy:
    """What no person has to write: that a person is asked before a tool touches the rules themselves."""
    why = "rules and settings of AtlasBridge stand there: only you change them"
    return Policy(tuple(PolicyRule("atlasbridge-itself", Say.ASK, path=place, reason=why) for place in places))


@frozen
class Case:
    """What is judged: the subject of a prompt and the session it comes from."""

    subject: Subject | None
    tool: str = ""
    label: str = ""
    folder: str = ""  # the session's own
    home: str = ""  # the person's, for `~`
    real_target: str = ""  # where the file of an edit (or its files, one a line) really is, when links are followed
    real_folder: str = ""  # where it would really run, when links are followed; "": as it is called
    any_tool: bool = False  # for a question that nobody asked yet: a rule's tool does not matter
    folds: bool = False  # the disk takes `A` and `a` for the same name
    leads: Callable[[str], str] | None = None  # where a path really is; "" where that cannot be told; None: unknown

    @property
    def where(self) -> str:
        return (self.subject.folder if self.subject else "") or self.folder


@frozen
class Verdict:
    verdict: Say
    rule: str = ""  # its name; "" when no rule speaks
    reason: str = ""
    digest: str = ""  # of the rule
    approvals: int = 1
    person: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()  # how it came about, for `explain`
    used: tuple[str, ...] = ()  # the names of all rules and grants that an `allow` stands on
    word: str = ""  # the word of a command that a person has to look at; "" when it is no single one
    proof: str = ""  # what an agreement must bring along

    @property
    def sentence(self) -> str:
        """Why, in one plain sentence."""
        named = f" by the rule {self.rule!r}" if self.rule and self.reason.find(repr(self.rule)) < 0 else ""
        said = {Say.ALLOW: "Allowed", Say.DENY: "Denied", Say.ASK: "Asked"}[self.verdict]
        return f"{said}{named}: {self.reason}."

    def to_json(self) -> dict[str, object]:
        return {
            "verdict": self.verdict.value,
            "rule": self.rule,
            "reason": self.reason,
            "sentence": self.sentence,
            "word": self.word,
            "digest": self.digest,
            "approvals": self.approvals,
            "person": list(self.person),
            "proof": self.proof,
            "steps": list(self.steps),
        }
