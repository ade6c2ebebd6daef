"""The words everybody uses: prompt types, choices, evidence, and a prompt as the detector saw it.

A `Prompt` is what stands on the screen; a `PromptRecord` is that prompt with its life (ids, state, nonce, deadline).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from atlasbridge.core.prompt.form_fields import FormField
from atlasbridge.core.prompt.step import Step
from atlasbridge.core.prompt.subject import Subject
from atlasbridge.core.values import field, frozen

EXCERPT_LIMIT = 200


class PromptType(StrEnum):
    TYPE_YES_NO = "yes_no"
    TYPE_CONFIRM_ENTER = "confirm_enter"
    TYPE_MULTIPLE_CHOICE = "multiple_choice"
    TYPE_FREE_TEXT = "free_text"
    TYPE_UNKNOWN = "unknown"


class Confidence(StrEnum):
    HIGH = "high"
    MED = "med"
    LOW = "low"


def confidence_band(score: float) -> Confidence:
    if score >= 0.85:
        return Confidence.HIGH
    return Confidence.MED if score >= 0.60 else Confidence.LOW


class PromptState(StrEnum):
    CREATED = "created"
    ROUTED = "routed"
    AWAITING_REPLY = "awaiting_reply"
    REPLY_RECEIVED = "reply_received"
    INJECTED = "injected"
    RESOLVED = "resolved"
    EXPIRED = "expired"
    CANCELED = "canceled"
    FAILED = "failed"
    WITHDRAWN = "withdrawn"


@frozen
class Choice:
    """One offered answer.  `value` is what a person says to choose it, `steps` is what chooses it."""

    value: str
    label: str
    steps: tuple[Step, ...] = ()
    refuses: bool = False
    always: bool = False
    default: bool = False
    detail: str = ""  # the words beside and below it that explain it, or with which its label goes on

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"value": self.value, "label": self.label}
        if self.detail:
            out["detail"] = self.detail
        for name in ("refuses", "always", "default"):
            if getattr(self, name):
                out[name] = True
        return out


@frozen
class Evidence:
    """What one signal said: `structured`, `pattern`, `probe` or `silence`."""

    signal: str
    score: float
    detail: str

    def to_json(self) -> dict[str, Any]:
        return {"signal": self.signal, "score": round(self.score, 2), "detail": self.detail}


@frozen
class Prompt:
    """A waiting moment as it stands on the screen.  All text but `subject.text` is visible-safe and redacted.

    `excerpt` is for a notification; `question` is all that is asked, and `asked` all that a person must have read.
    """

    type: PromptType
    score: float
    excerpt: str
    screen: str = ""
    choices: tuple[Choice, ...] = ()
    constraints: Mapping[str, Any] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    safe_default: str = ""  # a value as a person would say it; "" means: never answered by a timer
    digest: str = ""  # identity of this prompt on this screen, compared before typing
    line_mode: bool = True  # canonical terminal: answers are lines
    text_steps: tuple[Step, ...] = ()  # what to type before free text (open the text field of a menu)
    end_steps: tuple[Step, ...] = ()  # what ends free text where a plain Enter does not (an editor's save and quit)
    words_end: tuple[Step, ...] = ()  # what ends own words in a list of boxes, whose `end_steps` send the boxes
    multiline: bool = False  # the tool takes bracketed paste here
    raw: bytes = b""  # the bytes that drew it; never leaves this machine
    subject: Subject | None = None  # what the answer is about, where that could be told
    question: str = ""  # the whole text of the question, row by row as it stands; "": the excerpt is all there is
    whole: bool = True  # nothing of it has left the screen, or was cut by the tool itself
    fields: tuple[FormField, ...] = ()  # of a form: an answer names them
    says: str = ""  # a hint that the tool wrote into its output: anything that it shows could have written it

    @property
    def asked(self) -> str:
        """What must be shown before somebody answers: the subject, where the question does not hold it, the question,
        and what explains the choices."""
        question = self.question or self.excerpt
        about = self.subject.shown if self.subject is not None else ""
        parts = [about] if about and about not in question else []
        explained = [f"{choice.label}: {choice.detail}" for choice in self.choices if choice.detail]
        return "\n\n".join(part for part in (*parts, question, "\n".join(explained)) if part)

    @property
    def asked_whole(self) -> bool:
        """Whether `asked` is all of it; else a person must be told that something is missing."""
        return self.whole or (self.subject is not None and self.subject.complete)

    @property
    def confidence(self) -> Confidence:
        return confidence_band(self.score)

    @property
    def secret(self) -> bool:
        return bool(self.constraints.get("secret"))

    @property
    def idle(self) -> bool:
        return bool(self.constraints.get("idle"))

    def to_json(self) -> dict[str, Any]:
        """The public face of a prompt, as DESIGN's machine interface writes it."""
        return {
            "type": self.type.value,
            "confidence": self.confidence.value,
            "excerpt": self.excerpt,
            "screen": self.screen,
            "choices": [choice.to_json() for choice in self.choices],
            "constraints": {"secret": False, "idle": False, **self.constraints},
            "evidence": [item.to_json() for item in self.evidence],
            "safe_default": self.safe_default,
            "question": self.question or self.excerpt,
            "whole": self.asked_whole,
            "says": self.says,
            "subject": None if self.subject is None else self.subject.to_json(),
        }


class AnswerKind(StrEnum):
    CHOICE = "choice"
    CHOICES = "choices"  # several, for multi_select
    YES = "yes"
    NO = "no"
    ENTER = "enter"
    TEXT = "text"
    KEYS = "keys"


@frozen
class Answer:
    """A reply that is valid for its prompt: what the host turns into keys.  Never contains an Enter of its own."""

    kind: AnswerKind
    value: str = ""
    reason: str = ""  # of a refusal: told where the tool itself takes the answer, never typed

    def to_json(self) -> dict[str, str]:
        why = {"reason": self.reason} if self.reason else {}
        return {"kind": self.kind.value, "value": self.value, **why}

    @classmethod
    def from_json(cls, data: Mapping[str, str]) -> Answer:
        return cls(AnswerKind(data["kind"]), data["value"], str(data.get("reason", "")))


class Refusal(StrEnum):
    """Why a reply was not accepted.  The first failing reason wins, in this order."""

    UNKNOWN_PROMPT = "unknown_prompt"
    WRONG_SESSION = "wrong_session"
    SELF = "self"  # it comes from the program that asks, or from another session's
    NOT_ALLOWED = "not_allowed"
    BAD_NONCE = "bad_nonce"
    EXPIRED = "expired"
    NOT_OPEN = "not_open"
    BAD_VALUE = "bad_value"
    STALE = "stale"
    RATE_LIMITED = "rate_limited"
    UNAVAILABLE = "unavailable"


@frozen
class Reject:
    """A refused reply: the reason for machines, and one sentence for the person."""

    reason: Refusal
    sentence: str


@frozen
class PromptRecord:
    """A prompt with its life, as the store keeps it and channels show it."""

    prompt_id: str
    session_id: str
    prompt: Prompt
    state: PromptState
    nonce: str
    created_at: str
    expires_at: str
    deadline: float  # on the steady clock of `boot_id`
    boot_id: str = ""
    nonce_used: bool = False
    decided_by: str = ""
    decided_at: str = ""
    decided_value: str = ""  # which answer, in words; never a secret's value
    decided_from: str = ""  # the device or chat it came from

    def to_json(self) -> dict[str, Any]:
        """Public: the nonce is left out."""
        return {
            "prompt_id": self.prompt_id,
            "session_id": self.session_id,
            **self.prompt.to_json(),
            "state": self.state.value,
            "created_at": self.created_at,
            "expires_at": self.expires_at,
            "decided_by": self.decided_by,
            "decided_value": self.decided_value,
            "decided_from": self.decided_from,
            "decided_at": self.decided_at,
        }
