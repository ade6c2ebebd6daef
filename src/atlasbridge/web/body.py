"""What the API takes in, as pydantic models: they check every body and describe it in the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from atlasbridge.core.prompt.model import SubjectKind

Name = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9._-]+$")]
Secret = Annotated[str, StringConstraints(min_length=1, max_length=256)]
ScopeName = Literal["read", "ask", "answer", "admin"]
QuestionId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)


class LoginBody(Body):
    """A browser proves that it has a one-time link (the link's key itself is not sent), or shows the password."""

    link: Secret | None = Field(default=None, description="the link's id")
    challenge: Secret | None = None
    epoch: Secret | None = None
    proof: Secret | None = None
    password: Secret | None = None


class NameBody(Body):
    name: Annotated[str, StringConstraints(min_length=1, max_length=40)]


Hex = Annotated[str, StringConstraints(min_length=2, max_length=16_384, pattern=r"^([0-9a-f]{2})+$")]


class PasskeyProof(Body):
    """What navigator.credentials.get() gives, each part in hexadecimal."""

    key_id: Hex
    client_data: Hex
    authenticator_data: Hex
    signature: Hex


class NewPasskeyBody(Body):
    """What navigator.credentials.create() gives, and by whose word: a code of a terminal, or a key that is enrolled."""

    challenge: Hex
    key_id: Hex
    client_data: Hex
    attestation: Hex
    name: Annotated[str, StringConstraints(max_length=40)] = ""
    code: Annotated[str, StringConstraints(max_length=64)] = ""
    confirm: PasskeyProof | None = None


class ChallengeBody(Body):
    value: Annotated[str, StringConstraints(max_length=8192)]
    as_text: bool = Field(default=False, description="never read the value as a choice")


class ReplyBody(Body):
    """An answer: `y`, `n`, `enter`, a choice's value or label, `default`, or text."""

    value: Annotated[str, StringConstraints(max_length=8192)]
    as_text: bool = Field(default=False, description="never read the value as a choice")
    session_id: Annotated[str, StringConstraints(max_length=64)] = Field(default="", description="checked when given")
    request_key: Annotated[str, StringConstraints(max_length=64, pattern=r"^[A-Za-z0-9_-]*$")] = Field(
        default="",
        description="chosen by the sender: the same key again gets the same outcome, and nothing is done twice",
    )
    passkey: PasskeyProof | None = Field(default=None, description="where its rule wants an agreement to be signed")


class QuestionBody(Body):
    """A question to people.  Without choices, text and secret it is a yes-or-no question."""

    question_id: QuestionId = Field(description="a new UUID; asking with the same again is the same question")
    question: Annotated[str, StringConstraints(min_length=1, max_length=20_000)]
    choices: list[Annotated[str, StringConstraints(min_length=1, max_length=200)]] = Field(
        default_factory=list, max_length=60
    )
    text: bool = Field(default=False, description="own words are an answer")
    secret: bool = Field(default=False, description="a secret is asked: never in a chat, never stored")
    default: Annotated[str, StringConstraints(max_length=200)] = Field(
        default="", description="what happens if nobody answers: a refusal"
    )
    ttl_s: Annotated[float, Field(gt=0, le=86_400)] | None = Field(default=None, description="how long to wait")
    label: Annotated[str, StringConstraints(max_length=120)] = Field(default="", description="who asks")
    folder: Annotated[str, StringConstraints(max_length=4096)] = ""
    kind: SubjectKind = Field(default=SubjectKind.QUESTION, strict=False)
    about: Annotated[str, StringConstraints(max_length=20_000)] = Field(
        default="", description="the command, edit or address that is asked about, whole"
    )
    target: Annotated[str, StringConstraints(max_length=4096)] = ""


class NoticeBody(Body):
    message: Annotated[str, StringConstraints(min_length=1, max_length=4000)]
    label: Annotated[str, StringConstraints(max_length=120)] = ""


class LaterBody(Body):
    """An answer for a later moment, or, with `snooze_s`, the wish to be asked again."""

    value: Annotated[str, StringConstraints(max_length=8192)] = ""
    as_text: bool = Field(default=False, description="never read the value as a choice")
    when: Annotated[str, StringConstraints(max_length=64)] = Field(
        default="", description='"06:00", "tomorrow 9am", "in 2h", "limit-resets"'
    )
    snooze_s: Annotated[float, Field(ge=60, le=86_400)] | None = Field(default=None, description="ask again then")


class QueueBody(Body):
    text: Annotated[str, StringConstraints(min_length=1, max_length=4096)]


class GrantBody(Body):
    """Allow what a prompt asks, and what looks like it, for a while."""

    for_s: Annotated[float, Field(gt=0, le=43_200)] | None = Field(default=None, description="for so many seconds")
    times: Annotated[int, Field(ge=1, le=1000)] | None = Field(default=None, description="for so many questions")
    folder: bool = Field(default=False, description="in every session of the tool in this folder, not in this one only")
    preview: bool = Field(default=False, description="only say what it would allow")


class ReportBody(Body):
    note: Annotated[str, StringConstraints(max_length=1000)] = ""


class TypingBody(Body):
    on: bool


class KeysBody(Body):
    """Keys for the session as text; control characters are keys, such as \\u0003 for Ctrl-C."""

    data: Annotated[str, StringConstraints(min_length=1, max_length=4096)]
    stream: Annotated[str, StringConstraints(max_length=64, pattern=r"^[A-Za-z0-9_-]*$")] = Field(
        default="", description="chosen by the sender; numbers of one stream are typed in their order, each once"
    )
    number: Annotated[int, Field(ge=0, le=2**31)] = Field(default=0, description="0, 1, 2, … within the stream")


class EndBody(Body):
    force: bool = False


class LaunchBody(Body):
    launcher: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    folder: Annotated[str, StringConstraints(max_length=4096)] = Field(
        default="", description="one that the launcher allows; empty: its own"
    )
    arguments: Annotated[list[Annotated[str, StringConstraints(max_length=4096)]], Field(max_length=64)] = Field(
        default=[], description="further words, where the launcher takes them"
    )
    name: Annotated[str, StringConstraints(max_length=80)] = ""


class SessionNameBody(Body):
    name: Annotated[str, StringConstraints(max_length=80)] = Field(description="empty: no name of its own")


class TokenBody(Body):
    name: Name
    scope: ScopeName = "read"


class LinkBody(Body):
    name: Annotated[str, StringConstraints(max_length=40)] = Field(
        default="", description="empty: named by its browser"
    )
    scope: ScopeName = "answer"


class PasswordBody(Body):
    password: Annotated[str, StringConstraints(min_length=12, max_length=256)]


class PushKeys(Body):
    p256dh: Annotated[str, StringConstraints(min_length=16, max_length=200, pattern=r"^[A-Za-z0-9_=-]+$")]
    auth: Annotated[str, StringConstraints(min_length=8, max_length=64, pattern=r"^[A-Za-z0-9_=-]+$")]


class PushBody(BaseModel):
    """What the browser's PushSubscription.toJSON() gives; fields that we do not use are dropped."""

    model_config = ConfigDict(extra="ignore", strict=True, hide_input_in_errors=True)
    endpoint: Annotated[str, StringConstraints(min_length=8, max_length=1000)]
    keys: PushKeys

    def subscription(self) -> dict[str, Any]:
        return {"endpoint": self.endpoint, "keys": {"p256dh": self.keys.p256dh, "auth": self.keys.auth}}


class UnsubscribeBody(Body):
    endpoint: Annotated[str, StringConstraints(min_length=8, max_length=1000)]
