"""A rule that a person wrote, a set of rules, their verdict on one question, and grants, which work like rules."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from enum import StrEnum

from atlasbridge.core.policy.pattern import Shape
from atlasbridge.core.prompt.model import Subject, SubjectKind, digest_text
from atlasbridge.core.values import as_dict, frozen


class Say(StrEnum):
    """The strictest wins: `deny` over `ask` over `allow`."""

    DENY = "deny"
    ASK = "ask"
    ALLOW = "allow"


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
    person: tuple[str, ...] = ()  # whose approval counts
    approvals: int = 1
    proof: str = ""  # "passkey": an approval counts only with a passkey's signature
    reason: str = ""
    match: tuple[str, ...] = ()
    no_match: tuple[str, ...] = ()
    origin: str = ""  # its file, if that is not the person's own

    @property
    def digest(self) -> str:
        """A digest of all fields: it distinguishes rules with the same name in the audit log."""
        fields = {name: str(value) for name, value in as_dict(self).items()}
        return digest_text(json.dumps(fields, sort_keys=True))

    @property
    def bare(self) -> bool:
        """Whether it applies to every subject."""
        return self.command is None and not self.path and not self.host and self.kind is None


@frozen
class Policy:
    rules: tuple[PolicyRule, ...] = ()

    def saying(self, verdict: Say) -> tuple[PolicyRule, ...]:
        return tuple(rule for rule in self.rules if rule.verdict is verdict)

    def joined(self, other: Policy) -> Policy:
        return Policy((*self.rules, *other.rules))


def own_rules(places: tuple[str, ...]) -> Policy:
    """Built-in rules: a person is asked before a tool changes the rules themselves."""
    why = "rules and settings of AtlasBridge stand there: only you change them"
    return Policy(tuple(PolicyRule("atlasbridge-itself", Say.ASK, path=place, reason=why) for place in places))


@frozen
class Case:
    """The input of a verdict: the subject of a prompt and its session."""

    subject: Subject | None
    tool: str = ""
    label: str = ""
    folder: str = ""  # of the session
    home: str = ""  # of the person, for `~`
    real_target: str = ""  # the file of an edit (or its files, one per line) with links resolved
    real_folder: str = ""  # the folder where it would run with links resolved; "": the same
    any_tool: bool = False  # for a hypothetical question: a rule's tool is ignored
    folds: bool = False  # the disk treats `A` and `a` as the same name
    leads: Callable[[str], str] | None = None  # resolves a path; "" if that is not possible; None: not available

    @property
    def where(self) -> str:
        return (self.subject.folder if self.subject else "") or self.folder


@frozen
class Verdict:
    verdict: Say
    rule: str = ""  # its name; "" if no rule applies
    reason: str = ""
    digest: str = ""  # of the rule
    approvals: int = 1
    person: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()  # how it was reached, for `explain`
    used: tuple[str, ...] = ()  # the names of all rules and grants that an `allow` depends on
    word: str = ""  # the word of a command that a person should check; "" if there is no single one
    proof: str = ""  # the proof that an approval needs

    @property
    def sentence(self) -> str:
        """The reason in one plain sentence."""
        named = f" by the rule {self.rule!r}" if self.rule and self.reason.find(repr(self.rule)) < 0 else ""
        said = {Say.ALLOW: "Allowed", Say.DENY: "Denied", Say.ASK: "Asked"}[self.verdict]
        return f"{said}{named}: {self.reason}."

    def to_json(self) -> dict[str, object]:
        names = ("rule", "reason", "sentence", "word", "digest", "approvals", "proof")
        plain = {name: getattr(self, name) for name in names}
        return {"verdict": self.verdict.value, **plain, "person": list(self.person), "steps": list(self.steps)}


PREFIX = "grant:"
LONGEST_S = 12 * 3600.0  # no grant lasts longer than half a day


@frozen
class GrantShape:
    """What is allowed: shapes of commands, one file, or one host."""

    commands: tuple[Shape, ...] = ()
    path: str = ""
    host: str = ""


@frozen
class Span:
    """One of the offered limits: for how long, how often, where."""

    key: str
    label: str
    for_s: float | None = None
    times: int | None = None
    folder: bool = False


SPANS = (
    Span("30m", "For 30 minutes", for_s=1800.0),
    Span("5x", "5 times", times=5),
    Span("session", "In this session"),
    Span("folder", "In this folder", folder=True),
)


def find_span(key: str) -> Span | None:
    return next((span for span in SPANS if span.key == key), None)


@frozen
class Grant:
    """A temporary permission that a person gives from one question. The store keeps it."""

    grant_id: str
    shape: GrantShape
    tool: str
    session_id: str = ""  # "": every session of that tool in that folder
    folder: str = ""
    deadline: float | None = None  # on the monotonic clock of its boot
    uses_left: int | None = None
    by: str = ""
    created_at: str = ""

    @property
    def name(self) -> str:
        return PREFIX + self.grant_id[:8]

    def rules(self) -> tuple[PolicyRule, ...]:
        common = {"tool": self.tool, "folder": self.folder, "reason": f"granted by {self.by}"}
        shapes: list[dict[str, object]] = [{"command": shape} for shape in self.shape.commands]
        shapes += [{"path": self.shape.path}] if self.shape.path else []
        shapes += [{"host": self.shape.host}] if self.shape.host else []
        return tuple(PolicyRule(self.name, Say.ALLOW, **common, **shape) for shape in shapes)  # type: ignore[arg-type]


def live_grants(grants: Iterable[Grant], session_id: str, now: float) -> list[Grant]:
    return [
        grant
        for grant in grants
        if grant.session_id in ("", session_id)
        and (grant.deadline is None or now < grant.deadline)
        and (grant.uses_left is None or grant.uses_left > 0)
    ]
