"""Several people must agree: who has, and how many are missing.  People count, not the channels they speak through."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from atlasbridge.core.policy.rule import Verdict
from atlasbridge.core.prompt.model import Prompt
from atlasbridge.core.values import frozen, replace

QUORUM = "quorum"  # in a prompt's constraints
PROOF = "proof"  # there, too: {"kind", "rule", "page"}
PASSKEY = "passkey"
CARD = "card"  # there, too: where the page shows it
PAGE = "web.page"  # the store's note that says where the page can be opened by its name


@frozen
class Quorum:
    approvals: int
    rule: str
    person: tuple[str, ...] = ()

    def admits(self, person: str) -> bool:
        return not self.person or person in self.person

    def missing(self, people: Iterable[str]) -> int:
        return max(0, self.approvals - len(set(people)))


def with_quorum(prompt: Prompt, verdict: Verdict) -> Prompt:
    """The prompt as people see it: with how many of them, and which, must agree."""
    if verdict.approvals < 2 and not verdict.person:
        return prompt
    wanted = {"approvals": verdict.approvals, "rule": verdict.rule, "person": list(verdict.person)}
    return replace(prompt, constraints={**prompt.constraints, QUORUM: wanted})


def with_proof(prompt: Prompt, verdict: Verdict, page: str) -> Prompt:
    """The prompt with what an agreement must bring along; `page`: where that can be done."""
    if not verdict.proof:
        return prompt
    wanted = {"kind": verdict.proof, "rule": verdict.rule, "page": page}
    return replace(prompt, constraints={**prompt.constraints, PROOF: wanted})


def quorum_of(constraints: Mapping[str, Any]) -> Quorum:
    """Of a prompt that has one."""
    wanted = constraints[QUORUM]
    people = tuple(str(item) for item in wanted.get("person", ()))
    return Quorum(max(1, int(wanted.get("approvals", 1))), str(wanted.get("rule", "")), people)


def describe_votes(quorum: Quorum, people: Iterable[str]) -> str:
    agreed = sorted(set(people))
    missing = quorum.missing(agreed)
    who = f"{', '.join(agreed)} agreed" if agreed else "nobody has agreed yet"
    more = "one more person" if missing == 1 else f"{missing} more people"
    among = f" of {', '.join(person for person in quorum.person if person not in agreed)}" if quorum.person else ""
    return f"{who}; {more}{among} must agree ({quorum.rule})." if missing else f"{who} ({quorum.rule})."
