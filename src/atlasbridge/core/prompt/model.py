"""The central types: prompt types, states and their transitions, choices, evidence, a prompt, and a reply to it.

A `Prompt` is the content of the screen. A `PromptRecord` is that prompt with its life cycle (ids, state, nonce,
deadline).
"""

from __future__ import annotations

from _blake2 import blake2s
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from atlasbridge.core.prompt.keys import Step
from atlasbridge.core.values import field, frozen, replace

# The subject of a prompt: the whole command, edit, page or question, and whether it is certainly complete.
#
# Policy and grants use nothing else. `detection` decides about its source (a hook, an event, the screen).


class SubjectKind(StrEnum):
    COMMAND = "command"  # a line for a shell
    EDIT = "edit"  # a file to change or write; the text describes the change
    FETCH = "fetch"  # a web page
    PLAN = "plan"
    QUESTION = "question"  # a plain question
    TOOL = "tool"  # a tool of another server, with its arguments
    TRUST = "trust"  # a folder or a server to trust


class SubjectSource(StrEnum):
    """Ordered by reliability."""

    HOOK = "hook"
    EVENT = "event"
    CALLER = "caller"  # a program without a screen asked
    SCREEN = "screen"


@frozen
class Subject:
    """`text` is complete and exact, and stays on this machine. `shown` is the text that is allowed to leave it."""

    kind: SubjectKind
    text: str
    folder: str = ""  # the folder where it would run
    source: SubjectSource = SubjectSource.SCREEN
    complete: bool = False  # nothing scrolled away or was cut
    shown: str = ""
    target: str = ""  # the file of an edit (or its files, one per line), the address of a fetch
    digest: str = ""  # of `text`; kept when the text itself is not stored

    @property
    def certain(self) -> bool:
        """Whether rules can use it: it is complete, and nothing of it was hidden or cut."""
        return self.complete and bool(self.text) and self.shown == self.text

    @property
    def targets(self) -> tuple[str, ...]:
        """The files of an edit, which can be several."""
        return tuple(line for line in self.target.split("\n") if line)

    def for_storage(self) -> Subject:
        """The subject as it is stored: a digest and the displayable text, never the text itself."""
        return replace(self, text="", digest=self.digest or digest_text(self.text))

    def restored(self) -> Subject:
        """Restores the text of a stored subject if the displayable text is the complete text."""
        if self.text or not self.shown or digest_text(self.shown) != self.digest:
            return self
        return replace(self, text=self.shown)

    def to_json(self) -> dict[str, Any]:
        """The public format."""
        ours = {"folder": self.folder, "source": self.source.value, "complete": self.complete, "target": self.target}
        return {"kind": self.kind.value, "text": self.shown, **ours}


def parse_subject(data: object) -> Subject | None:
    """Parses a subject from a hook or an event; None if it is invalid. The caller redacts what is shown."""
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


class PromptMoved(StrEnum):
    """The events in the life of a prompt."""

    ROUTE = "route"  # sent to at least one channel
    DELIVER = "deliver"  # a channel has shown it to a person
    ACCEPT = "accept"  # a valid reply was claimed
    INJECT = "inject"  # the keys were typed
    RESOLVE = "resolve"  # the prompt left the screen
    EXPIRE = "expire"  # its time is over
    WITHDRAW = "withdraw"  # the tool moved on, or it was answered at the terminal
    CANCEL = "cancel"  # a person chose to leave it alone
    FAIL = "fail"  # it can no longer be answered


S, E = PromptState, PromptMoved
OPEN: Final = frozenset({S.CREATED, S.ROUTED, S.AWAITING_REPLY})
FINAL: Final = frozenset({S.RESOLVED, S.WITHDRAWN, S.FAILED})

# The life cycle of a prompt: `(state, event) -> state`. The SQL guards, the docs and the tests use this table.
_ENDINGS: Final = {E.WITHDRAW: S.WITHDRAWN, E.CANCEL: S.CANCELED, E.FAIL: S.FAILED}
TRANSITIONS: Final[dict[tuple[PromptState, PromptMoved], PromptState]] = {
    (S.CREATED, E.ROUTE): S.ROUTED,
    (S.ROUTED, E.DELIVER): S.AWAITING_REPLY,
    **{(state, E.ACCEPT): S.REPLY_RECEIVED for state in OPEN},
    **{(state, E.EXPIRE): S.EXPIRED for state in OPEN},
    **{(state, event): end for state in OPEN for event, end in _ENDINGS.items()},
    (S.REPLY_RECEIVED, E.INJECT): S.INJECTED,
    (S.REPLY_RECEIVED, E.WITHDRAW): S.WITHDRAWN,  # it was gone when the host compared the screen
    (S.REPLY_RECEIVED, E.FAIL): S.FAILED,
    (S.INJECTED, E.RESOLVE): S.RESOLVED,
    (S.INJECTED, E.FAIL): S.FAILED,  # typed, but the prompt is still there
    (S.EXPIRED, E.INJECT): S.INJECTED,  # the safe default
    (S.EXPIRED, E.WITHDRAW): S.WITHDRAWN,
    (S.EXPIRED, E.FAIL): S.FAILED,
    (S.CANCELED, E.WITHDRAW): S.WITHDRAWN,  # left alone, and now the tool has moved on or asks again
}


def sources(event: PromptMoved) -> tuple[PromptState, ...]:
    """The states from which `event` is legal, for the SQL guard."""
    return tuple(state for state, moved in TRANSITIONS if moved is event)


@frozen
class Choice:
    """One offered answer. `value` is what a person replies to choose it; `steps` are the keys that choose it."""

    value: str
    label: str
    steps: tuple[Step, ...] = ()
    refuses: bool = False
    always: bool = False
    default: bool = False
    detail: str = ""  # the text beside and below it that explains it or continues its label

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"value": self.value, "label": self.label}
        if self.detail:
            out["detail"] = self.detail
        for name in ("refuses", "always", "default"):
            if getattr(self, name):
                out[name] = True
        return out


@frozen
class FormField:
    """`lead`: the keys to this field from the field that has the focus now. `below`: from any field above. `clear`
    empties it."""

    label: str
    lead: tuple[Step, ...] = ()
    below: tuple[Step, ...] = ()
    clear: tuple[Step, ...] = ()
    before: str = ""  # the text before its value in its row; "": unknown


@frozen
class Evidence:
    """The result of one signal: `structured`, `pattern`, `probe` or `silence`."""

    signal: str
    score: float
    detail: str

    def to_json(self) -> dict[str, Any]:
        return {"signal": self.signal, "score": round(self.score, 2), "detail": self.detail}


@frozen
class Prompt:
    """A prompt as it is on the screen. All text except `subject.text` is escaped and redacted.

    `excerpt` is for a notification. `question` is the whole question, and `asked` is everything that a person must
    read.
    """

    type: PromptType
    score: float
    excerpt: str
    screen: str = ""
    choices: tuple[Choice, ...] = ()
    constraints: Mapping[str, Any] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    safe_default: str = ""  # a value as a person would reply it; "": a timer never answers
    digest: str = ""  # identity of this prompt on this screen, compared before typing
    line_mode: bool = True  # canonical terminal: answers are lines
    text_steps: tuple[Step, ...] = ()  # keys to type before free text (to open the text field of a menu)
    # keys that end free text where a plain Enter does not (to save and quit an editor)
    end_steps: tuple[Step, ...] = ()
    words_end: tuple[Step, ...] = ()  # keys that end free text in a list of boxes, whose `end_steps` submit the boxes
    multiline: bool = False  # the tool accepts bracketed paste here
    raw: bytes = b""  # the bytes that drew it; they never leave this machine
    subject: Subject | None = None  # the subject of the answer, if it is known
    question: str = ""  # the whole question, row by row as on the screen; "": the excerpt is all
    whole: bool = True  # no part has left the screen or was cut by the tool
    fields: tuple[FormField, ...] = ()  # the fields of a form; an answer names them
    # a hint that the tool wrote into its output; not trustworthy, because any displayed text can contain it
    says: str = ""
    context_rows: int = 0  # this many rows of `question` are output above the line that asks

    @property
    def asked(self) -> str:
        """Everything that must be shown before somebody answers: the subject, unless the question contains it, the
        question, and the explanations of the choices."""
        question = self.question or self.excerpt
        about = self.subject.shown if self.subject is not None else ""
        parts = [about] if about and about not in question else []
        explained = [f"{choice.label}: {choice.detail}" for choice in self.choices if choice.detail]
        return "\n\n".join(part for part in (*parts, question, "\n".join(explained)) if part)

    @property
    def asked_whole(self) -> bool:
        """Whether `asked` is complete; otherwise a person must be told that something is missing."""
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
        """The public format of a prompt, as the specification defines it."""
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


# answers without a text of their own, as they are recorded
SPOKEN: Final = {AnswerKind.YES: "y", AnswerKind.NO: "n", AnswerKind.ENTER: "enter"}


@frozen
class Answer:
    """A reply that is valid for its prompt; the host converts it to keys. It never contains its own Enter."""

    kind: AnswerKind
    value: str = ""
    reason: str = ""  # the reason of a denial: passed to a tool that takes the answer through a hook, never typed

    @property
    def spoken(self) -> str:
        return self.value or SPOKEN.get(self.kind, "")

    def to_json(self) -> dict[str, str]:
        why = {"reason": self.reason} if self.reason else {}
        return {"kind": self.kind.value, "value": self.value, **why}

    @classmethod
    def from_json(cls, data: Mapping[str, str]) -> Answer:
        return cls(AnswerKind(data["kind"]), data["value"], str(data.get("reason", "")))


class Refusal(StrEnum):
    """Why a reply was not accepted. The first failing reason wins, in this order."""

    UNKNOWN_PROMPT = "unknown_prompt"
    WRONG_SESSION = "wrong_session"
    SELF = "self"  # it comes from the program that asks, or from another session's program
    NOT_ALLOWED = "not_allowed"
    BAD_NONCE = "bad_nonce"
    EXPIRED = "expired"
    NOT_OPEN = "not_open"
    BAD_VALUE = "bad_value"
    NEEDS_PASSKEY = "needs_passkey"  # its rule requires a signed approval, and this one is not signed
    STALE = "stale"
    RATE_LIMITED = "rate_limited"
    UNAVAILABLE = "unavailable"


@frozen
class Reject:
    """A refused reply: the reason for programs, and one sentence for the person."""

    reason: Refusal
    sentence: str


@frozen
class PromptRecord:
    """A prompt with its life cycle, as it is stored and as channels show it."""

    prompt_id: str
    session_id: str
    prompt: Prompt
    state: PromptState
    nonce: str
    created_at: str
    expires_at: str
    deadline: float  # on the monotonic clock of `boot_id`
    boot_id: str = ""
    nonce_used: bool = False
    decided_by: str = ""
    decided_at: str = ""
    decided_value: str = ""  # the label of the answer; never the value of a secret
    decided_from: str = ""  # the device or chat of the decider

    def to_json(self) -> dict[str, Any]:
        """The public format, without the nonce."""
        names = ("created_at", "expires_at", "decided_by", "decided_value", "decided_from", "decided_at")
        ids = {"prompt_id": self.prompt_id, "session_id": self.session_id}
        known = {name: getattr(self, name) for name in names}
        return {**ids, **self.prompt.to_json(), "state": self.state.value, **known}


# A reply as a channel received it, and the receipt for its sender. `gate` decides whether it counts.


@frozen
class InboundReply:
    """A reply as a channel received it. The channel has verified nothing except that it is readable; the gate decides.

    `prompt_id` can be the short form (8 hexadecimal characters). `nonce` and `session_id` are "" if the medium does not
    carry them (a text reply matched by its thread); then the channel must have found the prompt by its own message.
    """

    channel: str  # "telegram", "slack", "web", "local", ...
    identity: str  # "telegram:123456789", "slack:T1/U2", "web:alice", "cli:local"
    prompt_id: str
    value: str  # "y", "n", "enter", a choice's value or label, "default", "cancel", or text
    session_id: str = ""
    nonce: str = ""
    as_text: bool = False  # never interpret the value as a choice
    as_keys: bool = False  # type the keys as given: local channel only
    inside_session: str = ""  # the session whose program sends this, according to the kernel; "": a person
    place: str = ""  # readable name of the device or chat; "": the channel is enough
    request_key: str = ""  # chosen by the sender: a repeated key gets the first outcome and has no further effect
    only_known: bool = False  # report what became of this request; decide nothing if it never arrived
    passkey: Mapping[str, Any] = field(default_factory=dict)  # a signature, and the page's own `origins`
    token: Any = None  # data that the channel needs to answer this reply
    context: Mapping[str, Any] = field(default_factory=dict)


FIRST_KEY = "first_key"


@frozen
class Receipt:
    """The outcome of a prompt or a reply, for the person. `stage` is "received", "typed", "taken", "still_there",
    "first_key" (the tool took the first key, the rest was not typed), "withdrawn", "expired", "default_typed",
    "canceled", "failed", "answered_elsewhere", "reminder", "voted" (others must approve, too), "postponed", "snoozed",
    "revoked" (a scheduled answer; the prompt is still open).
    """

    stage: str
    sentence: str
    by: str = ""
    answer: str = ""  # the label of the answer; never the value of a secret
    place: str = ""  # the device or chat of the decider
    at: str = ""  # when it was decided
    audit_head: str = ""  # "COUNT:HASH" of the audit log now: a chat that keeps it anchors the log
