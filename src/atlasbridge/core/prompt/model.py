"""The words everybody uses: prompt types, choices, evidence, and a prompt as the detector saw it.

A `Prompt` is what stands on the screen; a `PromptRecord` is that prompt with its life (ids, state, nonce, deadline).
"""

from __future__ import annotations

from _blake2 import blake2s
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from atlasbridge.core.prompt.form_fields import FormField
from atlasbridge.core.prompt.keys import Step
from atlasbridge.core.values import field, frozen, replace

# What an answer is about: the whole command, edit, page or question, and how sure we are that it is whole.
#
# Policy and grants look at nothing else.  Where it comes from (a hook, an event, the screen) is decided in `detection`.


class SubjectKind(StrEnum):
    COMMAND = "command"  # a line for a shell
    EDIT = "edit"  # a file that is to be changed or written; the text says how
    FETCH = "fetch"  # a page of the web
    PLAN = "plan"
    QUESTION = "question"  # words that are no more than words
    TOOL = "tool"  # a tool of another server, with its arguments
    TRUST = "trust"  # a folder or a server that is to be trusted


class SubjectSource(StrEnum):
    """In the order in which they are believed."""

    HOOK = "hook"
    EVENT = "event"
    CALLER = "caller"  # a program without a screen asked by itself
    SCREEN = "screen"


@frozen
class Subject:
    """`text` is whole and as the tool has it; it stays inside this machine.  `shown` is what may leave it."""

    kind: SubjectKind
    text: str
    folder: str = ""  # where it would run
    source: SubjectSource = SubjectSource.SCREEN
    complete: bool = False  # nothing scrolled away, nothing was cut
    shown: str = ""
    target: str = ""  # the file of an edit (or its files, one a line), the address of a fetch
    digest: str = ""  # of `text`; stays when the text itself is not kept

    @property
    def certain(self) -> bool:
        """Whether a rule may look at it: all of it is here, and nothing of it was hidden or cut."""
        return self.complete and bool(self.text) and self.shown == self.text

    @property
    def targets(self) -> tuple[str, ...]:
        """One edit may change several files."""
        return tuple(line for line in self.target.split("\n") if line)

    def kept(self) -> Subject:
        """What a store may keep: a digest and what may be shown, never the text itself."""
        return replace(self, text="", digest=self.digest or digest_text(self.text))

    def restored(self) -> Subject:
        """A stored subject keeps only what may be shown; where that is all of it, it is the text itself."""
        if self.text or not self.shown or digest_text(self.shown) != self.digest:
            return self
        return replace(self, text=self.shown)

    def to_json(self) -> dict[str, Any]:
        """The public face."""
        return {
            "kind": self.kind.value,
            "text": self.shown,
            "folder": self.folder,
            "source": self.source.value,
            "complete": self.complete,
            "target": self.target,
        }


def told_subject(data: object) -> Subject | None:
    """What a hook or an event said, as it came over a socket; None when it is not what we know.  What is shown of it
    is left to who redacts."""
    if not isinstance(data, dict):
        return None
    try:
        kind, source = SubjectKind(data["kind"]), SubjectSource(data.get("source", "hook"))
    except (KeyError, ValueError):
        return None
    texts = {name: str(data.get(name, "")) for name in ("text", "folder", "target")}
    return Subject(kind, source=source, complete=data.get("complete") is True, **texts)


def digest_text(text: str) -> str:
    return blake2s(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


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
    context_rows: int = 0  # so many rows of `question` are output above the line that asks

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
            "context_rows": self.context_rows,
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
    NEEDS_PASSKEY = "needs_passkey"  # its rule wants an agreement to be signed, and this one is not
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


# A reply as a channel received it, and what its sender is told.  Whether it counts is decided by `gate`.


@frozen
class InboundReply:
    """What a channel received.  The channel has checked nothing but that it could read it; the gate decides.

    `prompt_id` may be the short form (8 hexadecimal characters).  `nonce` and `session_id` are "" where the medium does
    not carry them (a text reply matched by its thread); then the channel must have found the prompt by its own message.
    """

    channel: str  # "telegram", "slack", "web", "local", ...
    identity: str  # "telegram:123456789", "slack:T1/U2", "web:alice", "cli:local"
    prompt_id: str
    value: str  # "y", "n", "enter", a choice's value or label, "default", "cancel", or text
    session_id: str = ""
    nonce: str = ""
    as_text: bool = False  # never read the value as a choice
    as_keys: bool = False  # type the keys as they are: local channel only
    inside_session: str = ""  # the session whose own program sends this, so far as the kernel knows; "": a person
    place: str = ""  # the device or chat it came from, in words; "": the channel says it all
    request_key: str = ""  # of the sender's choice: the same key again gets the first outcome and does nothing more
    passkey: Mapping[str, Any] = field(default_factory=dict)  # a signature, and the page's own `origins`
    token: Any = None  # whatever the channel needs to answer this very reply
    context: Mapping[str, Any] = field(default_factory=dict)


FIRST_KEY = "first_key"


@frozen
class Receipt:
    """What became of a prompt or a reply, for the person: stage is "received", "typed", "taken", "still_there",
    "first_key" (the tool took the first key, the rest was held back), "withdrawn", "expired", "default_typed",
    "canceled", "failed", "answered_elsewhere", "reminder", "voted" (others must agree, too), "postponed", "snoozed",
    "revoked" (something for later; it is still open)."""

    stage: str
    sentence: str
    by: str = ""
    answer: str = ""  # which answer, in the words of its choice; never a secret's value
    place: str = ""  # the device or chat it came from
    at: str = ""  # when it was decided
    audit_head: str = ""  # "COUNT:HASH" of the audit log at this moment: a chat that keeps it anchors the log
