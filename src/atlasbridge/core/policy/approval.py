"""Which answer approves a prompt and which denies it, who must approve, and which answer a rule is allowed to type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from atlasbridge.core.policy.rule import Verdict
from atlasbridge.core.prompt.answer import decide_answer
from atlasbridge.core.prompt.model import Answer, AnswerKind, Choice, Prompt, PromptType, SubjectKind
from atlasbridge.core.values import frozen, replace

# Quorum: who has approved, and how many approvals are missing. It counts people, not the channels they use.

QUORUM = "quorum"  # key of a prompt's constraints
PROOF = "proof"  # another key: {"kind", "rule", "page"}
PASSKEY = "passkey"
CARD = "card"  # another key: the address of the prompt on the page
PAGE = "web.page"  # the store's note with the address of the page
HERE = ("localhost", "127.0.0.1", "::1")  # hosts that only this machine can open


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
    """Adds how many people, and which, must approve the prompt."""
    if verdict.approvals < 2 and not verdict.person:
        return prompt
    wanted = {"approvals": verdict.approvals, "rule": verdict.rule, "person": list(verdict.person)}
    return replace(prompt, constraints={**prompt.constraints, QUORUM: wanted})


def with_proof(prompt: Prompt, verdict: Verdict, page: str) -> Prompt:
    """Adds the proof that an approval needs; `page`: where it can be given."""
    if not verdict.proof:
        return prompt
    wanted = {"kind": verdict.proof, "rule": verdict.rule, "page": page}
    return replace(prompt, constraints={**prompt.constraints, PROOF: wanted})


def with_card(prompt: Prompt, card: str) -> Prompt:
    """Adds the address of the prompt on the page, for chats. A phone cannot open a page that only this machine can."""
    host = urlsplit(card).hostname
    if not host or host in HERE:
        return prompt
    return replace(prompt, constraints={**prompt.constraints, CARD: card})


def quorum_of(constraints: Mapping[str, Any]) -> Quorum:
    """For a prompt that has a quorum."""
    wanted = constraints[QUORUM]
    people = tuple(str(item) for item in wanted.get("person", ()))
    return Quorum(max(1, int(wanted.get("approvals", 1))), str(wanted.get("rule", "")), people)


def describe_votes(quorum: Quorum, people: Iterable[str]) -> str:
    agreed = sorted(set(people))
    missing = quorum.missing(agreed)
    who = f"{', '.join(agreed)} agreed" if agreed else "nobody has agreed yet"
    more = "one more person" if missing == 1 else f"{missing} more people"
    among = f" of {', '.join(person for person in quorum.person if person not in agreed)}" if quorum.person else ""
    return f"{who}; {more}{among} must approve ({quorum.rule})." if missing else f"{who} ({quorum.rule})."


# The answer that a rule is allowed to type: the choice that allows once, or the one that denies; none if that is
# uncertain.

_GRANTED = (SubjectKind.COMMAND, SubjectKind.EDIT, SubjectKind.FETCH)
_DECIDED = (PromptType.TYPE_YES_NO, PromptType.TYPE_MULTIPLE_CHOICE)


def once_answer(prompt: Prompt) -> Answer | None:
    """The only choice that allows once; never one that allows always, and none if several allow."""
    if not _decidable(prompt):
        return None
    unmarked = replace(prompt, choices=tuple(replace(choice, default=False) for choice in prompt.choices))
    answer = decide_answer(unmarked, "y")
    if not isinstance(answer, Answer):
        return None
    chosen = _chosen(prompt, answer)
    if chosen is None:
        return answer if answer.kind is AnswerKind.YES and not prompt.choices else None
    return None if chosen.always or chosen.refuses else answer


def may_be_granted(prompt: Prompt) -> bool:
    """Whether to offer a grant for similar requests; a closer check can still refuse it."""
    subject = prompt.subject and prompt.subject.restored()
    if subject is None or not subject.certain or subject.kind not in _GRANTED:
        return False
    if QUORUM in prompt.constraints or PROOF in prompt.constraints:
        return False
    return once_answer(prompt) is not None


def refusing_answer(prompt: Prompt, reason: str) -> Answer | None:
    """The denial: with the reason as text if the tool accepts text with its denial, otherwise the plain denial with the
    reason for a hook."""
    if not _decidable(prompt):
        return None
    if reason and _words_refuse(prompt):
        worded = decide_answer(prompt, reason, as_text=True)
        if isinstance(worded, Answer):
            return worded
    answer = decide_answer(prompt, "n")
    if not isinstance(answer, Answer):
        return None
    chosen = _chosen(prompt, answer)
    if chosen is None:
        return answer if answer.kind is AnswerKind.NO and not prompt.choices else None
    return replace(answer, reason=reason) if chosen.refuses or answer.kind is AnswerKind.NO else None


def agrees(prompt: Prompt, answer: Answer) -> bool:
    """Whether an answer needs the approval of others: everything except a plain denial."""
    if answer.kind is AnswerKind.NO:
        return False
    chosen = _chosen(prompt, answer)
    if answer.kind is AnswerKind.TEXT and _words_refuse(prompt):
        return False
    return chosen is None or not chosen.refuses


def refusing_forms(prompt: Prompt) -> list[str]:
    """Every answer that does not approve, as "kind:value", or "kind:" for all of that kind; recorded for a prompt whose
    approval needs a proof."""
    values = [choice.value for choice in prompt.choices if choice.refuses]
    kinds = (AnswerKind.CHOICE, AnswerKind.CHOICES)
    forms = {f"{AnswerKind.NO.value}:", *(f"{kind.value}:{value}" for kind in kinds for value in values)}
    forms |= {f"{AnswerKind.YES.value}:y"} if "y" in values else set()
    return sorted(forms | ({f"{AnswerKind.TEXT.value}:"} if _words_refuse(prompt) else set()))


def _decidable(prompt: Prompt) -> bool:
    several = prompt.constraints.get("multi_select")
    return prompt.type in _DECIDED and not (prompt.secret or prompt.idle or several)


def _chosen(prompt: Prompt, answer: Answer) -> Choice | None:
    value = {AnswerKind.YES: "y", AnswerKind.NO: "n"}.get(answer.kind, answer.value)
    return next((choice for choice in prompt.choices if choice.value == value), None)


def _words_refuse(prompt: Prompt) -> bool:
    """Whether the tool's text field belongs to its denial."""
    if prompt.type is not PromptType.TYPE_MULTIPLE_CHOICE or not prompt.text_steps:
        return False
    opened = b"".join(step.keys for step in prompt.text_steps)
    refusing = [choice for choice in prompt.choices if choice.refuses]
    if any(b"".join(step.keys for step in choice.steps) == opened for choice in refusing if choice.steps):
        return True
    wordy = [choice for choice in prompt.choices if not choice.steps]
    return len(wordy) == 1 and wordy[0].refuses
