"""The table of operations: everything that can be asked of a hub, with its name, its parameter and result types, who is
allowed to ask, and one sentence.

The socket's dispatch, the HTTP routes and their OpenAPI document, `atlasbridge.client` and the help of commands and
chats are generated from it. `core/daemon/operations.py` implements the operations; `channels/web` implements those that
only the page has (logins, links, tokens, push, live streams).
"""
# mypy: disable-error-code="empty-body"

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import cached_property
from typing import Annotated, Any, Concatenate, Final, Generic, Literal, ParamSpec, TypeVar, overload

from atlasbridge.core.prompt.model import SubjectKind
from atlasbridge.core.schema import BadValue, Is, fields_of, marks_of, read, write
from atlasbridge.core.values import as_dict, field, frozen

P = ParamSpec("P")
R = TypeVar("R")
Scope = Literal["", "read", "ask", "answer", "admin"]
Grade = Literal["read", "ask", "answer", "admin"]


@frozen
class Refused:
    """An operation was refused: a reason for programs, a sentence for people, and a hint."""

    reason: str
    message: str
    hint: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"ok": False, **as_dict(self)}


NO_PROMPT: Final = Refused("unknown_prompt", "There is no such prompt.")


@frozen
class Caller:
    """The caller of an operation. The transport has identified the caller; the operation decides about permissions."""

    identity: str  # "cli:local", "web:page", "telegram:1001"
    channel: str = "local"
    place: str = ""  # a readable name of the device or chat
    inside_session: str = ""  # the session whose program calls; "" for a person
    pid: int = 0


class Blocking:
    """A client whose calls return the result; a refusal is raised."""

    def do(self, operation: Operation[..., R], given: Mapping[str, Any]) -> R:
        raise TypeError(f"{operation.name} cannot be asked here")


class Awaiting:
    """A client whose calls are awaited."""

    async def do(self, operation: Operation[..., R], given: Mapping[str, Any]) -> R:
        raise TypeError(f"{operation.name} cannot be asked here")


class Judging:
    """A client inside a hub: a call returns the result or the refusal as a value."""

    async def do(self, operation: Operation[..., R], given: Mapping[str, Any]) -> R | Refused:
        raise TypeError(f"{operation.name} cannot be asked here")


Perform = Callable[["Operation[..., Any]", Caller, Mapping[str, Any]], Awaitable[Any]]


class Parameter:
    def __init__(self, name: str, kind: Any, default: Any) -> None:
        self.name, self.kind, self.default = name, kind, default
        self.required = default is inspect.Parameter.empty


class Operation(Generic[P, R]):
    def __init__(self, declared: Callable[..., R], name: str, http: str, scope: Scope, page: bool) -> None:
        self.declared = declared
        self.key = declared.__name__  # the Python name, and the `operationId` over HTTP
        self.name = name or declared.__name__  # the name on the socket
        self.method, _, self.path = http.partition(" ")
        self.scope = scope
        self.page = page  # the page answers this itself, because it concerns logins or needs the connection
        self.about = inspect.cleandoc(declared.__doc__ or "").partition("\n\n")[0].replace("\n", " ")

    @property
    def changes(self) -> bool:
        return self.scope not in ("", "read")

    @property
    def inside(self) -> bool:
        """Whether a program inside a session is allowed to ask it: to read, or to ask or notify its person."""
        return self.scope in ("", "read", "ask")

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        kinds = fields_of(self.declared)
        known = list(inspect.signature(self.declared).parameters.values())[1:]
        return {one.name: Parameter(one.name, kinds[one.name], one.default) for one in known}

    @cached_property
    def result(self) -> Any:
        return fields_of(self.declared)["return"]

    @property
    def in_path(self) -> tuple[str, ...]:
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))

    @property
    def streams(self) -> bool:
        return getattr(self.result, "__origin__", None) is AsyncIterator

    def write(self, found: Any, way: str) -> Any:
        """A result as JSON. An implementation can also return it as an object already."""
        key = next((mark.key for mark in marks_of(self.result)[1] if mark.key), "")
        return write({key: found} if key and not isinstance(found, Mapping) else found, way)

    def read(self, given: Mapping[str, Any], strict: bool = False) -> dict[str, Any]:
        """Reads the parameters from a JSON object. BadValue names the wrong one. `strict` also refuses unknown
        parameters."""
        unknown = [name for name in given if name not in self.parameters]
        if strict and unknown:
            raise BadValue(f"{unknown[0]}: there is no such field here")
        out = {}
        for name, parameter in self.parameters.items():
            value = given.get(name)
            if value is None and not parameter.required and not (strict and name in given):
                continue  # the default of the function applies; over HTTP, null is a value that few types have
            if name not in given:
                raise BadValue(f"{name}: is missing")
            out[name] = read(parameter.kind, value, name)
        return out

    @overload
    def __get__(self, at: None, owner: type) -> Operation[P, R]: ...
    @overload
    def __get__(self, at: Blocking, owner: type) -> Callable[P, R]: ...
    @overload
    def __get__(self, at: Awaiting, owner: type) -> Callable[P, Awaitable[R]]: ...
    @overload
    def __get__(self, at: Judging, owner: type) -> Callable[P, Awaitable[R | Refused]]: ...
    def __get__(self, at: Any, owner: type) -> Any:
        """Makes one declaration a method of every client: it passes its arguments to the client's `do`."""
        if at is None:
            return self

        def ask(*values: Any, **named: Any) -> Any:
            _, *given = inspect.signature(self.declared).bind(at, *values, **named).arguments.items()
            return at.do(self, dict(given))

        return ask


def operation(
    http: str = "", *, scope: Scope = "read", name: str = "", page: bool = False
) -> Callable[[Callable[Concatenate[Any, P], R]], Operation[P, R]]:
    """`http` is the method and path; "" means that the operation exists only on the socket."""

    def declare(declared: Callable[Concatenate[Any, P], R]) -> Operation[P, R]:
        return Operation(declared, name, http, scope, page)

    return declare


# Parameter types.

ShortText = Annotated[str, Is(most=64)]
PromptId = Annotated[str, Is("in a fleet: MACHINE.ID", most=80)]
SessionId = PromptId
Value = Annotated[str, Is("`y`, `n`, `enter`, a choice's value or label, `default`, or text", most=8192)]
AsText = Annotated[bool, Is("never read the value as a choice")]
RequestKey = Annotated[
    str,
    Is(
        "chosen by the sender: the same key again gets the same outcome, and nothing is done twice",
        most=64,
        pattern=r"^[A-Za-z0-9_-]*$",
    ),
]
Label = Annotated[str, Is(most=120)]
Secret = Annotated[str, Is(least=1, most=256)]
DeviceName = Annotated[str, Is(least=1, most=40)]
TokenName = Annotated[str, Is(least=1, most=64, pattern=r"^[A-Za-z0-9._-]+$")]
Note = Annotated[str, Is(most=1000)]
Limit = Annotated[int, Is("how many at most", least=1, most=500)]
Endpoint = Annotated[str, Is(least=8, most=1000)]
KeyPart = r"^[A-Za-z0-9_=-]+$"
QuestionId = Annotated[
    str,
    Is(
        "a new UUID; asking with the same again is the same question",
        pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
    ),
]


# Result types. An optional field is one that not every transport provides.


@frozen
class Choice:
    value: str
    label: str
    detail: Annotated[str, Is(maybe=True)] = ""
    refuses: Annotated[bool, Is(maybe=True)] = False
    always: Annotated[bool, Is(maybe=True)] = False
    default: Annotated[bool, Is(maybe=True)] = False
    words: Annotated[bool, Is("chosen by saying something", maybe=True)] = False


@frozen
class Signal:
    signal: str
    score: float
    detail: str


@frozen
class Subject:
    kind: str
    text: str
    folder: str
    source: str
    complete: bool
    target: Annotated[str, Is(maybe=True)] = ""


@frozen
class Approvals:
    """How many people must approve, and who counts; () counts everybody."""

    approvals: Annotated[int, Is(least=1)]
    rule: str
    person: Annotated[tuple[str, ...], Is(maybe=True)] = ()


@frozen
class Proof:
    """The proof that an approval needs, and where it is given."""

    kind: str
    rule: str
    page: str


@frozen
class Effect:
    """What a command does, such as `deletes` or `sends`, and to what."""

    kind: str
    target: Annotated[str, Is(most=80, maybe=True)] = ""


@frozen
class Constraints:
    """What limits the answer to a prompt, and what else is known about it. An adapter can add names in `more`."""

    secret: Annotated[bool, Is(maybe=True)] = False
    idle: Annotated[bool, Is("the tool has finished and waits for an instruction", maybe=True)] = False
    commands: Annotated[bool, Is("the tool runs what is typed as a command", maybe=True)] = False
    multi_select: Annotated[bool, Is(maybe=True)] = False
    allows_other: Annotated[bool, Is("takes a text besides its choices", maybe=True)] = False
    scrolls: Annotated[bool, Is("the list has more rows than the screen", maybe=True)] = False
    disagrees: Annotated[bool, Is("the screen does not show what the tool announced", maybe=True)] = False
    max_length: Annotated[int, Is(least=0, maybe=True)] = 0
    min_choice: Annotated[int, Is(least=0, maybe=True)] = 0
    max_choice: Annotated[int, Is(least=0, maybe=True)] = 0
    missing_lines: Annotated[int, Is("so many lines were left out by the tool", least=0, maybe=True)] = 0
    hidden_rows: Annotated[int, Is("so many rows are hidden by the tool; more can be missing", least=0, maybe=True)] = 0
    default: Annotated[str, Is("what the tool takes for an empty answer", maybe=True)] = ""
    fields: Annotated[tuple[str, ...], Is("the labels of a form", maybe=True)] = ()
    limit_resets_at: Annotated[str, Is(maybe=True)] = ""
    card: Annotated[str, Is("its address on the page", maybe=True)] = ""
    quorum: Annotated[Approvals | None, Is(maybe=True)] = None
    proof: Annotated[Proof | None, Is(maybe=True)] = None
    effects: Annotated[tuple[Effect, ...], Is(most=4, maybe=True)] = ()
    more: Annotated[Mapping[str, object], Is(rest=True)] = field(default_factory=dict)


def fitting_constraints(given: object) -> dict[str, object]:
    """What an adapter or a machine says, without the values of a wrong type. An odd `secret` counts as a secret."""
    kinds, fits = fields_of(Constraints), dict[str, object]()
    for name, value in given.items() if isinstance(given, Mapping) else ():
        try:
            read(kinds.get(name, object), value)
            fits[name] = value
        except BadValue:
            pass  # this one is left out
    return {**fits, "secret": True} if isinstance(given, Mapping) and given.get("secret") else fits


@frozen
class Given:
    """The answer that was accepted; the value of a secret is null."""

    kind: str
    value: str | None
    by: str
    at: str
    source: str
    label: Annotated[str, Is(maybe=True)] = ""


@frozen
class Later:
    """A scheduled answer, or a snooze (`kind` is `answer` or `snooze`)."""

    later_id: str
    prompt_id: str
    kind: str
    due_at: str
    value: str
    place: str
    created_at: str
    by: str
    by_name: str
    what: Annotated[str, Is("in words: ask again, or the answer")]
    when: str
    session_id: str
    name: str
    excerpt: str


@frozen
class Session:
    session_id: str
    tool: str
    command: tuple[str, ...]
    pid: int
    state: str
    attached: bool
    stopped: bool
    cwd: str
    label: str
    started_at: str
    open_prompt: str | None = None
    host_pid: int = 0
    ended_at: str | None = None
    exit_code: int | None = None
    machine: Annotated[str, Is("in a fleet: the machine's name", maybe=True)] = ""
    still_waiting: Annotated[str | None, Is(only="socket")] = None
    queued: Annotated[int, Is(only="socket")] = 0


@frozen
class Prompt:
    prompt_id: str
    session_id: str
    type: Literal["yes_no", "confirm_enter", "multiple_choice", "free_text", "unknown"]
    confidence: str
    excerpt: str
    screen: str
    choices: tuple[Choice, ...]
    constraints: Constraints
    evidence: tuple[Signal, ...]
    safe_default: str
    question: str
    state: str
    created_at: str
    expires_at: str
    subject: Subject | None = None
    context_rows: Annotated[int, Is("rows of `question` that are output above the line that asks")] = 0
    whole: bool = True
    says: str = ""
    decided_by: str = ""
    decided_value: str = ""
    decided_from: str = ""
    decided_at: str = ""
    later: tuple[Later, ...] = ()
    free_text: bool = False
    multiline: bool = False
    grantable: bool = False
    agreed: tuple[str, ...] = ()
    names: dict[str, str] = field(default_factory=dict)
    answer: Given | None = None
    session: Session | None = None
    tool: Annotated[str, Is(only="socket")] = ""
    label: Annotated[str, Is(only="socket")] = ""
    cwd: Annotated[str, Is(only="socket")] = ""
    decided_name: Annotated[str, Is(only="socket")] = ""
    still_waiting: Annotated[bool, Is(only="socket")] = False


@frozen
class Event:
    """An event: `event` is its kind, such as "prompt.raised"; `fields` contains all its data."""

    event: str
    at: str = ""
    session_id: str = ""
    prompt_id: str = ""
    prompt: Prompt | None = None  # of "prompt.raised"
    fields: Mapping[str, object] = field(default_factory=dict)


@frozen
class Prompts:
    prompts: tuple[Prompt, ...]
    now: Annotated[str, Is(only="http")] = ""
    still_waiting: Annotated[tuple[Prompt, ...], Is(only="socket")] = ()


@frozen
class Replied:
    stage: str
    message: str
    prompt_id: Annotated[str, Is(only="http")] = ""
    answer: Annotated[str, Is(only="socket")] = ""
    by: Annotated[str, Is(only="socket")] = ""
    at: Annotated[str, Is(only="socket")] = ""
    audit_head: str = ""
    prompt: Annotated[Prompt | None, Is(only="http")] = None


@frozen
class Outcome:
    arrived: bool
    refused: bool
    message: str
    audit_head: str
    prompt: Prompt


@frozen
class OneReply:
    prompt_id: str
    ok: bool
    message: str
    stage: Annotated[str, Is(maybe=True)] = ""
    reason: Annotated[str, Is(maybe=True)] = ""


@frozen
class RepliedMany:
    results: tuple[OneReply, ...]
    answered: int


@frozen
class AskedAgain:
    asked: Annotated[bool, Is(only="http")] = True
    stage: Annotated[str, Is(only="socket")] = ""
    message: Annotated[str, Is(only="socket")] = ""
    prompt_id: Annotated[str, Is(only="socket")] = ""


@frozen
class Kept:
    """A scheduled answer or a snooze was stored or revoked."""

    stage: str
    message: str
    later_id: str


@frozen
class Queued:
    stage: str
    message: str
    queue_id: str


@frozen
class Instruction:
    queue_id: str
    session_id: str
    name: str
    text: str
    by: str
    by_name: str
    created_at: str


@frozen
class Granted:
    words: str
    shape: str
    would: tuple[str, ...]
    would_not: tuple[str, ...]
    why_not: Annotated[tuple[str, ...], Is("the reason for each of them")] = ()
    grant_id: str = ""
    answered: bool = False


@frozen
class Grant:
    grant_id: str
    allows: str
    tool: str
    session_id: str
    folder: str
    seconds_left: int | None
    uses_left: int | None
    by: str
    created_at: str


@frozen
class Rule:
    name: str
    verdict: str
    command: str
    about: str
    only: tuple[str, ...]
    approvals: int
    person: tuple[str, ...]
    reason: str
    origin: str
    digest: str


@frozen
class RuleDecision:
    at: str
    prompt_id: str
    source: str
    digest: str
    reason: str
    allowed: bool
    what: str
    tool: str
    folder: str


@frozen
class Rules:
    rules: tuple[Rule, ...]
    grants: tuple[Grant, ...]
    decisions: tuple[RuleDecision, ...]
    tell: str


@frozen
class PastSubject:
    kind: str
    text: str
    folder: str
    source: str
    complete: bool
    target: str
    certain: Annotated[bool, Is("whether rules can be sure of it")]


@frozen
class PastQuestion:
    """What a rule knows of it, and what was answered."""

    prompt_id: str
    created_at: str
    state: str
    excerpt: str
    secret: bool
    idle: bool
    subject: PastSubject | None
    real_target: str
    tool: str
    label: str
    folder: str
    decided_by: str
    answer: str
    agreed: bool | None


@frozen
class Trusted:
    rules: tuple[str, ...] = ()
    removed: bool = False


@frozen
class Renamed:
    session_id: Annotated[str, Is(only="socket")] = ""
    label: Annotated[str, Is(only="socket")] = ""
    name: Annotated[str, Is(only="http")] = ""


@frozen
class Resumed:
    session_id: Annotated[str, Is(only="socket")] = ""
    resumed: Annotated[bool, Is(only="http")] = True


@frozen
class Sized:
    session_id: str
    rows: int
    cols: int


@frozen
class Ending:
    session_id: Annotated[str, Is(only="socket")] = ""
    pid: Annotated[int, Is(only="socket")] = 0
    ending: Annotated[bool, Is(only="http")] = True


@frozen
class Launched:
    session_id: str
    message: str = ""  # the outcome for the first instruction


@frozen
class Launcher:
    name: str
    command: tuple[str, ...]
    cwd: str
    folders: tuple[str, ...]
    arguments: bool
    recent: tuple[str, ...]


@frozen
class ChangedFile:
    path: str
    status: Annotated[Literal["added", "changed", "removed", "written"], Is("written: nothing is known of it before")]
    added: Annotated[int, Is("lines")] = 0
    removed: Annotated[int, Is("lines")] = 0
    diff: str = ""
    cut: Annotated[bool, Is("`diff` is only its beginning")] = False
    binary: bool = False
    large: bool = False
    unknown: Annotated[bool, Is("its content, or what it held before, cannot be read")] = False


@frozen
class Changes:
    files: tuple[ChangedFile, ...]
    count: Annotated[int, Is("of all files, also of those that are not listed")]
    added: int
    removed: int
    whole: Annotated[bool, Is("false: the folder is too large to be looked through")]
    repository: bool
    commit: Annotated[str, Is("what it is compared with")] = ""


@frozen
class Screen:
    """`lines` as text, or `styled` as runs of [text, foreground, background, flags]; more fields are in `more`."""

    rows: int
    cols: int
    title: Annotated[str, Is(maybe=True)] = ""
    lines: Annotated[tuple[str, ...], Is(maybe=True)] = ()
    styled: Annotated[tuple[tuple[object, ...], ...], Is(maybe=True)] = ()
    past: Annotated[tuple[tuple[object, ...], ...], Is("what has scrolled off it", maybe=True)] = ()
    more: Annotated[Mapping[str, object], Is(rest=True)] = field(default_factory=dict)


@frozen
class Alive:
    pid: int
    protocol: int
    version: str


@frozen
class AuditHead:
    count: int
    hash: str


@frozen
class ChannelHealth:
    """`more` has what a channel says of itself besides."""

    name: str
    state: str
    waiting: int
    fault: Annotated[str, Is(maybe=True)] = ""
    restarts: Annotated[int, Is(maybe=True)] = 0
    unreached: Annotated[int, Is("prompts that it could not show", maybe=True)] = 0
    why: Annotated[str, Is("why not", maybe=True)] = ""
    more: Annotated[Mapping[str, object], Is(rest=True)] = field(default_factory=dict)


@frozen
class Status:
    pid: int
    protocol: int
    version: str
    uptime_s: float
    channels: tuple[ChannelHealth, ...]
    sessions: int
    open_prompts: int
    still_waiting: int
    away: bool
    audit_head: AuditHead
    answered_ways: dict[str, int]
    alarm: str
    at_prompt: Annotated[int, Is("so many of the open prompts are tools at their own prompt, which ask nothing")] = 0


@frozen
class Person:
    name: str
    identities: tuple[str, ...]
    zone: str
    quiet_now: bool


@frozen
class People:
    people: tuple[Person, ...]
    away: bool


@frozen
class Told:
    told: Annotated[bool, Is(only="http")] = True
    channels: Annotated[tuple[ChannelHealth, ...], Is(only="socket")] = ()


@frozen
class AuditEntry:
    """`fields` has what entries of this event say besides."""

    seq: int
    ts: str
    event: str
    prev_hash: str
    hash: str
    session_id: Annotated[str, Is(maybe=True)] = ""
    prompt_id: Annotated[str, Is(maybe=True)] = ""
    fields: Annotated[Mapping[str, object], Is(rest=True)] = field(default_factory=dict)


@frozen
class AuditVerdict:
    """`ok`, or the first bad entry and its location: "audit.log", "table" or "head".

    Any edit, deletion, insertion, reordering, truncation or rewriting of the file or of the table is detected as long
    as the other copy, the store's head or audit.head is intact. If the store was lost, the entries about the loss
    reveal it afterwards. If somebody rewrites all of them together, only a person who wrote down an earlier head can
    detect it (`status` and receipts show it). `repairs` counts how often a torn, cut or lost log was restored;
    `incidents` describes in sentences what happened to the log.
    """

    ok: bool
    count: int
    head: str
    bad_entry: int | None = None
    where: str = ""
    problem: str = ""
    repairs: int = 0
    incidents: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        if self.ok:
            return f"The audit log is whole: {self.count} entries, head {self.head}."
        return f"Entry {self.bad_entry} of the {self.where} {self.problem}."


@frozen
class Day:
    day: str
    raised: int
    answered: int


@frozen
class Waits:
    """Seconds from a prompt to its answer; `buckets` are (upper end, how many), the last without an upper end."""

    count: int
    median: float | None
    p90: float | None
    buckets: tuple[tuple[float | None, ...], ...]


@frozen
class Statistics:
    sessions: Annotated[dict[str, int], Is("by state")]
    prompts: Annotated[dict[str, int], Is("by state")]
    types: dict[str, int]
    replies: Annotated[dict[str, int], Is("by source")]
    audit_entries: int
    days: tuple[Day, ...]
    answer_s: Waits
    answered_by: dict[str, int]
    answered_ways: dict[str, int]
    reported: Annotated[dict[str, int], Is("false and missed prompts that people reported")]


@frozen
class AuditState:
    count: int
    hash: str
    ok: bool
    detail: str


@frozen
class Done:
    """An empty result."""


@frozen
class Health:
    status: str
    version: str


@frozen
class Hello:
    epoch: str
    proof: str


@frozen
class Device:
    login_id: str
    name: str
    scope: str
    created_at: str
    seen_at: str
    until: str
    this: bool


@frozen
class Me:
    identity: str
    scope: str
    device: Device | None


@frozen
class Typed:
    typed: bool
    next: int


@frozen
class Links:
    url: str
    links: dict[str, str]
    valid_s: float
    fingerprint: str


@frozen
class Token:
    token_id: str
    name: str
    scope: str
    created_at: str


Hex = Annotated[str, Is(least=2, most=16_384, pattern=r"^([0-9a-f]{2})+$")]


@frozen
class PasskeyProof:
    """The result of navigator.credentials.get(), each part in hexadecimal."""

    key_id: Hex
    client_data: Hex
    authenticator_data: Hex
    signature: Hex


@frozen
class Passkey:
    key_id: str
    name: str
    rp_id: str
    created_at: str
    by: str
    person: Annotated[str, Is("of a fleet, for whom alone it signs; empty on the hub's own page")] = ""


@frozen
class PasskeyBegun:
    challenge: str
    rp_id: str
    keys: tuple[str, ...]
    user: str


@frozen
class PasskeyChallenge:
    needed: bool
    challenge: str
    rp_id: str
    keys: tuple[str, ...]


@frozen
class SeenHead:
    """A head that somebody else has kept. `log` is the hash of that log's first entry; "" if it is unknown."""

    entries: int
    hash: str
    log: str = ""


@frozen
class NewToken:
    token: str
    token_id: str
    name: str
    scope: str
    created_at: str


@frozen
class Push:
    available: bool
    public_key: str


@frozen
class PushKeys:
    p256dh: Annotated[str, Is(least=16, most=200, pattern=KeyPart)]
    auth: Annotated[str, Is(least=8, most=64, pattern=KeyPart)]


class HubOperations:
    """Each method is an operation: `HubOperations.snooze` is its row of the table, `client.snooze(...)` calls it."""

    # prompts and answers

    @operation("GET /prompts")
    def prompts(self) -> Prompts:
        """List open prompts."""

    @operation("GET /prompts/{prompt_id}", page=True)
    def prompt(self, prompt_id: PromptId) -> Prompt:
        """Get one prompt."""

    @operation()
    def still_waiting(self) -> Annotated[tuple[Prompt, ...], Is(key="prompts")]:
        """List prompts that are not asked now but are still on a screen."""

    @operation("POST /prompts/{prompt_id}/reply", scope="answer")
    def reply(
        self,
        prompt_id: PromptId,
        value: Value,
        as_text: AsText = False,
        session_id: Annotated[str, Is("checked when given", most=80)] = "",
        request_key: RequestKey = "",
        passkey: Annotated[PasskeyProof | None, Is("where its rule wants an approval to be signed")] = None,
    ) -> Replied:
        """Answer a prompt."""

    @operation("POST /prompts/{prompt_id}/challenge", scope="answer", page=True)
    def passkey_challenge(self, prompt_id: PromptId, value: Value, as_text: AsText = False) -> PasskeyChallenge:
        """Get the challenge that an answer must sign."""

    @operation("GET /passkeys", page=True)
    def list_passkeys(self) -> Annotated[tuple[Passkey, ...], Is(key="passkeys")]:
        """List passkeys."""

    @operation("POST /passkeys/begin", scope="answer", page=True)
    def begin_passkey(self) -> PasskeyBegun:
        """Start to enrol a passkey."""

    @operation("POST /passkeys", scope="answer", page=True)
    def add_passkey(
        self,
        challenge: Hex,
        key_id: Hex,
        client_data: Hex,
        attestation: Hex,
        name: Annotated[str, Is(most=40)] = "",
        code: ShortText = "",
        confirm: PasskeyProof | None = None,
    ) -> Passkey:
        """Enrol a passkey, with a code from a terminal or with another passkey."""

    @operation("DELETE /passkeys/{key_id}", scope="answer", page=True)
    def remove_passkey(self, key_id: Hex) -> Annotated[bool, Is(key="removed")]:
        """Remove a passkey."""

    @operation("GET /prompts/{prompt_id}/outcome", scope="answer", page=True)
    def outcome(self, prompt_id: PromptId, request_key: RequestKey = "") -> Outcome:
        """Get the outcome of an answer, by its request key."""

    @operation(scope="answer")
    def reply_many(
        self,
        prompt_ids: Annotated[tuple[str, ...], Is(least=1, most=200)],
        value: Value,
        as_text: AsText = False,
        request_key: RequestKey = "",
    ) -> RepliedMany:
        """Answer several prompts the same way; each is decided separately."""

    @operation("POST /prompts/{prompt_id}/again", scope="answer", name="ask_again")
    def again(self, prompt_id: PromptId) -> AskedAgain:
        """Ask a prompt again that expired or was left alone."""

    @operation("POST /prompts/{prompt_id}/later", scope="answer", name="reply_later")
    def postpone(
        self,
        prompt_id: PromptId,
        value: Value = "",
        when: Annotated[str, Is('"06:00", "tomorrow 9am", "in 2h", "limit-resets"', most=64)] = "",
        as_text: AsText = False,
    ) -> Kept:
        """Schedule an answer."""

    @operation("POST /prompts/{prompt_id}/snooze", scope="answer")
    def snooze(self, prompt_id: PromptId, for_s: Annotated[float, Is("ask again then", least=60, most=86_400)]) -> Kept:
        """Snooze a prompt."""

    @operation("GET /later")
    def later(self) -> Annotated[tuple[Later, ...], Is(key="later")]:
        """List scheduled answers and snoozed prompts."""

    @operation("DELETE /later/{later_id}", scope="answer", name="later.revoke")
    def revoke_later(self, later_id: ShortText) -> Kept:
        """Remove a scheduled answer or a snooze."""

    @operation("GET /queue")
    def queue(self, session_id: ShortText = "") -> Annotated[tuple[Instruction, ...], Is(key="queue")]:
        """List queued instructions."""

    @operation("POST /sessions/{session_id}/queue", scope="answer", name="queue.add")
    def enqueue(self, session_id: SessionId, text: Annotated[str, Is(least=1, most=4096)]) -> Queued:
        """Queue an instruction for when the tool is idle."""

    @operation("DELETE /queue/{queue_id}", scope="answer", name="queue.remove")
    def dequeue(self, queue_id: ShortText) -> Queued:
        """Remove a queued instruction."""

    @operation("POST /prompts/{prompt_id}/report", scope="answer", page=True)
    def report_prompt(self, prompt_id: PromptId, note: Note = "") -> Annotated[str, Is(key="report")]:
        """Report a false alarm."""

    # rules and grants

    @operation("GET /rules", name="rules.overview")
    def rules(self) -> Rules:
        """List rules, grants, and their decisions."""

    @operation(name="policy.cases")
    def policy_cases(
        self, prompt_id: ShortText = "", since: ShortText = ""
    ) -> Annotated[tuple[PastQuestion, ...], Is(key="cases")]:
        """List past questions, to test rules with."""

    @operation(scope="admin", name="policy.trust")
    def policy_trust(self, folder: Annotated[str, Is(most=4096)], remove: bool = False) -> Trusted:
        """Trust a project's rules."""

    @operation()
    def grants(self) -> Annotated[tuple[Grant, ...], Is(key="grants")]:
        """List grants."""

    @operation("POST /prompts/{prompt_id}/grant", scope="answer", name="grant.add")
    def grant(
        self,
        prompt_id: PromptId,
        for_s: Annotated[float | None, Is("for so many seconds", above=0, most=43_200)] = None,
        times: Annotated[int | None, Is("for so many questions", least=1, most=1000)] = None,
        folder: Annotated[bool, Is("in every session of the tool in this folder, not in this one only")] = False,
        preview: Annotated[bool, Is("only show what it would allow")] = False,
    ) -> Granted:
        """Allow what a prompt asks, and similar requests, for a while."""

    @operation(scope="answer", name="grant.revoke")
    def revoke_grants(self, grant_id: ShortText = "") -> Annotated[tuple[str, ...], Is(key="ended")]:
        """Revoke the grants whose id begins with this; without an id, all of them."""

    @operation("DELETE /grants/{grant_id}", scope="answer", name="grant.end")
    def revoke_grant(self, grant_id: ShortText) -> Annotated[bool, Is(key="revoked")]:
        """Revoke a grant."""

    # sessions

    @operation("GET /sessions")
    def sessions(
        self,
        all: Annotated[bool, Is("also those that have ended")] = False,
        name: Annotated[str, Is("only those that are called so", most=120)] = "",
        session_id: SessionId = "",
    ) -> Annotated[tuple[Session, ...], Is(key="sessions")]:
        """List sessions."""

    @operation("GET /sessions/{session_id}", page=True, name="session")
    def session(self, session_id: SessionId) -> Session:
        """Get one session."""

    @operation(name="session.wait")
    def wait_session(self, session_id: SessionId, patience_s: float = 10.0) -> Annotated[bool, Is(key="known")]:
        """Wait until the hub knows a session that was just started."""

    @operation("PUT /sessions/{session_id}/name", scope="admin")
    def rename(self, session_id: SessionId, name: Annotated[str, Is("empty: no name", most=80)]) -> Renamed:
        """Rename a session."""

    @operation("POST /sessions/{session_id}/resume", scope="admin")
    def resume(self, session_id: SessionId) -> Resumed:
        """Resume a session that Ctrl-Z has stopped."""

    @operation("POST /sessions/{session_id}/size", scope="admin")
    def lend_size(
        self,
        session_id: SessionId,
        rows: Annotated[int, Is("0: its own size again", least=0, most=200)] = 0,
        cols: Annotated[int, Is("0: its own size again", least=0, most=300)] = 0,
    ) -> Sized:
        """Give a detached session the size of the screen that watches it, until that screen is closed."""

    @operation("POST /sessions/{session_id}/end", scope="admin", name="kill")
    def end(self, session_id: SessionId, force: bool = False) -> Ending:
        """End a session."""

    @operation("GET /sessions/{session_id}/why", page=True)
    def why(self, session_id: SessionId) -> Annotated[tuple[str, ...], Is(key="why")]:
        """Explain why a session raised a prompt or none."""

    @operation("GET /sessions/{session_id}/words", page=True)
    def words(
        self, session_id: SessionId, last: Annotated[bool, Is("its last answer alone")] = False
    ) -> Annotated[str, Is(key="text")]:
        """Get the session's output since its last instruction, as text."""

    @operation("GET /sessions/{session_id}/changes")
    def changes(self, session_id: SessionId) -> Changes:
        """List what a session changed in its folder since it started."""

    @operation("GET /sessions/{session_id}/screen", page=True, name="screen")
    def screen(
        self,
        session_id: SessionId,
        styled: Annotated[bool, Is("with colours, as runs of [text, fg, bg, flags]")] = False,
        past: Annotated[bool, Is("also what has scrolled off it, with colours, as `past`")] = False,
    ) -> Screen:
        """Get the session's screen."""

    @operation("GET /sessions/{session_id}/screen/stream", page=True)
    def screen_stream(self, session_id: SessionId) -> AsyncIterator[Screen]:
        """Stream the session's screen."""

    @operation("POST /sessions/{session_id}/typing", scope="admin", page=True)
    def opt_in(self, session_id: SessionId, on: bool) -> Annotated[bool, Is(key="on")]:
        """Switch typing into a session on or off."""

    @operation("POST /sessions/{session_id}/keys", scope="admin", page=True)
    def type_keys(
        self,
        session_id: SessionId,
        data: Annotated[str, Is("control characters are keys, such as \\u0003 for Ctrl-C", least=1, most=4096)],
        stream: Annotated[
            str,
            Is(
                "chosen by the sender; numbers of one stream are typed in their order, each once",
                most=64,
                pattern=r"^[A-Za-z0-9_-]*$",
            ),
        ] = "",
        number: Annotated[int, Is("0, 1, 2, … within the stream", least=0, most=2**31)] = 0,
    ) -> Typed:
        """Type keys into a session."""

    @operation("POST /sessions/{session_id}/report", scope="answer", page=True)
    def report_missed(self, session_id: SessionId, note: Note = "") -> Annotated[str, Is(key="report")]:
        """Report a missed prompt."""

    @operation("GET /launchers")
    def launchers(self) -> Annotated[tuple[Launcher, ...], Is(key="launchers")]:
        """List the launchers."""

    @operation("POST /sessions", scope="admin")
    def launch(
        self,
        launcher: Annotated[str, Is(least=1, most=64)],
        folder: Annotated[str, Is("one that the launcher allows; empty: its own", most=4096)] = "",
        arguments: Annotated[
            tuple[Annotated[str, Is(most=4096)], ...], Is("arguments, where the launcher takes them", most=64)
        ] = (),
        name: Annotated[str, Is(most=80)] = "",
        instruction: Annotated[str, Is("the first thing to do, typed at its first input box", most=4096)] = "",
    ) -> Launched:
        """Start a session from the configured list."""

    # people

    @operation()
    def people(self) -> People:
        """List the people who are allowed to answer."""

    @operation(scope="answer")
    def away(
        self, for_s: Annotated[float | None, Is("how long; null: until `here`", least=0)] = None
    ) -> Annotated[bool, Is(key="away")]:
        """Set yourself away: chats and phones are notified at once."""

    @operation(scope="answer")
    def here(self) -> Annotated[bool, Is(key="away")]:
        """End away: you are back at the keyboard."""

    @operation("POST /notices", scope="ask")
    def notify(self, message: Annotated[str, Is(least=1, most=4000)], label: Label = "") -> Told:
        """Send people a message that needs no answer."""

    @operation("POST /questions", scope="ask", page=True)
    def ask(
        self,
        question_id: QuestionId,
        question: Annotated[str, Is(least=1, most=20_000)],
        choices: Annotated[tuple[Annotated[str, Is(least=1, most=200)], ...], Is(most=60)] = (),
        text: Annotated[bool, Is("own words are an answer")] = False,
        secret: Annotated[bool, Is("a secret is asked: never in a chat, never stored")] = False,
        default: Annotated[str, Is("the answer when nobody answers in time: a refusal", most=200)] = "",
        ttl_s: Annotated[float | None, Is("how long to wait", above=0, most=86_400)] = None,
        label: Annotated[str, Is("who asks", most=120)] = "",
        folder: Annotated[str, Is(most=4096)] = "",
        kind: SubjectKind = SubjectKind.QUESTION,
        about: Annotated[str, Is("the command, edit or address that is asked about, whole", most=20_000)] = "",
        target: Annotated[str, Is(most=4096)] = "",
    ) -> AsyncIterator[Event]:
        """Ask people, and wait for the answer."""

    @operation("DELETE /questions/{question_id}", scope="ask", page=True)
    def withdraw(self, question_id: ShortText) -> Annotated[bool, Is(key="withdrawn")]:
        """Withdraw your own question."""

    # records

    @operation("GET /history")
    def history(
        self,
        search: Annotated[str, Is("words in the question, the tool or the folder", most=200)] = "",
        limit: Limit = 50,
        before: Annotated[str, Is("only those raised before this prompt", most=40)] = "",
        session: Annotated[str, Is("only of this session", most=64)] = "",
        state: Annotated[str, Is("only those in this state", most=32)] = "",
    ) -> Annotated[tuple[Prompt, ...], Is(key="prompts")]:
        """List prompts of every state, newest first."""

    @operation()
    def events(self, follow: bool = False, session: ShortText = "", recent: bool = False) -> AsyncIterator[Event]:
        """Stream events."""

    @operation("GET /events", page=True, name="page.events")
    def event_stream(self) -> AsyncIterator[Event]:
        """Stream events for the page."""

    @operation("GET /audit", page=True, name="audit.page")
    def audit_page(
        self,
        limit: Limit = 50,
        before: Annotated[int, Is("only entries before this seq", least=0, most=2**53)] = 0,
        events: Annotated[str, Is("only these kinds, with commas between them", most=1000)] = "",
        session: Annotated[str, Is("only of this session", most=64)] = "",
        prompt: Annotated[str, Is("only of this prompt", most=64)] = "",
    ) -> Annotated[tuple[AuditEntry, ...], Is(key="entries")]:
        """Page through the audit log, newest first."""

    @operation()
    def audit(
        self,
        after: int = 0,
        limit: int = 1000,
        session_id: ShortText = "",
        prompt_id: ShortText = "",
        event: ShortText = "",
        newest: bool = False,
    ) -> Annotated[tuple[AuditEntry, ...], Is(key="entries")]:
        """List entries of the audit log, oldest first."""

    @operation(name="audit.verify")
    def verify_audit(
        self, seen: Annotated[tuple[SeenHead, ...], Is("heads that others have kept")] = ()
    ) -> Annotated[AuditVerdict, Is(key="verdict")]:
        """Verify the audit log, entry by entry."""

    @operation("GET /audit/state", name="audit.state")
    def audit_state(self) -> AuditState:
        """Get the head and the state of the audit chain."""

    @operation("GET /statistics", page=True)
    def statistics(self) -> Statistics:
        """Count prompts."""

    @operation("GET /metrics", page=True)
    def metrics(self) -> str:
        """Get metrics for Prometheus."""

    # the hub itself

    @operation("GET /health", scope="", page=True, name="page.health")
    def health(self) -> Health:
        """Check that the hub answers."""

    @operation()
    def ping(self) -> Alive:
        """Get the hub's process and version."""

    @operation()
    def status(self) -> Status:
        """Show the hub, its channels, sessions and open prompts."""

    @operation(name="health")
    def session_health(self) -> Annotated[dict[str, str], Is(key="sessions")]:
        """Get the state of every running session: "ok" or its problem."""

    @operation(scope="admin")
    def reload(self) -> Done:
        """Reload the configuration."""

    @operation(scope="admin")
    def stop(self) -> Annotated[int, Is(key="pid")]:
        """Stop the hub; sessions continue."""

    @operation(scope="admin", name="page")
    def page_command(self, do: ShortText, fields: dict[str, Any] = {}) -> dict[str, object]:  # noqa: B006
        """Run a command of this user on the page: links, devices, tokens, the password."""

    # logins, links, tokens and push: the page's own

    @operation("GET /hello", scope="", page=True)
    def hello(
        self,
        who: Annotated[str, Is("the id of a link, a login or a token", most=64)] = "",
        challenge: Annotated[str, Is("chosen by the caller, new each time", most=128)] = "",
    ) -> Hello:
        """Let the hub prove that it knows a link, a login or a token."""

    @operation("POST /login", scope="", page=True)
    def login(
        self,
        link: Annotated[Secret | None, Is("the link's id")] = None,
        challenge: Secret | None = None,
        epoch: Secret | None = None,
        proof: Secret | None = None,
        password: Secret | None = None,
    ) -> Device:
        """Log a browser in, with a one-time link or the password."""

    @operation("POST /logout", scope="read", page=True)
    def logout(self) -> Annotated[bool, Is(key="ended")]:
        """Log this browser out."""

    @operation("GET /devices", scope="admin", page=True)
    def list_devices(self) -> Annotated[tuple[Device, ...], Is(key="devices")]:
        """List the browsers that are logged in."""

    @operation("PUT /devices/{login_id}", scope="admin", page=True)
    def rename_device(self, login_id: ShortText, name: DeviceName) -> Device:
        """Rename a browser."""

    @operation("DELETE /devices/{login_id}", scope="admin", page=True)
    def end_device(self, login_id: ShortText) -> Annotated[bool, Is(key="ended")]:
        """Log one browser out."""

    @operation("DELETE /logins", scope="admin", page=True)
    def logout_all(self) -> Annotated[int, Is(key="ended")]:
        """Log every browser out."""

    @operation("GET /me", page=True)
    def me(self) -> Me:
        """Get the caller's own name and scope."""

    @operation("PUT /me", scope="read", page=True)
    def rename_me(self, name: DeviceName) -> Device:
        """Rename this browser."""

    @operation("POST /links", scope="admin", page=True)
    def make_link(
        self, name: Annotated[str, Is("empty: named by its browser", most=40)] = "", scope: Grade = "answer"
    ) -> Links:
        """Create a one-time link to the page."""

    @operation("PUT /password", scope="admin", page=True)
    def set_password(self, password: Annotated[str, Is(least=12, most=256)]) -> Annotated[bool, Is(key="set")]:
        """Set the password for logins over the LAN."""

    @operation("GET /tokens", scope="admin", page=True)
    def list_tokens(self) -> Annotated[tuple[Token, ...], Is(key="tokens")]:
        """List API tokens."""

    @operation("POST /tokens", scope="admin", page=True)
    def create_token(self, name: TokenName, scope: Grade = "read") -> NewToken:
        """Create a token; its secret is shown once."""

    @operation("DELETE /tokens/{token_id}", scope="admin", page=True)
    def revoke_token(self, token_id: ShortText) -> Annotated[bool, Is(key="revoked")]:
        """Revoke a token."""

    @operation("GET /push", page=True)
    def push_key(self) -> Push:
        """Get the key for push messages."""

    @operation("POST /push/subscriptions", scope="answer", page=True)
    def subscribe(
        self, endpoint: Endpoint, keys: PushKeys, expirationTime: Any = None
    ) -> Annotated[bool, Is(key="subscribed")]:
        """Subscribe to push messages, with the result of the browser's PushSubscription.toJSON()."""

    @operation("DELETE /push/subscriptions", scope="answer", page=True)
    def unsubscribe(self, endpoint: Endpoint) -> Annotated[bool, Is(key="removed")]:
        """Unsubscribe from push messages."""


OPERATIONS: Final[tuple[Operation[..., Any], ...]] = tuple(
    one for one in vars(HubOperations).values() if isinstance(one, Operation)
)
BY_NAME: Final = {one.name: one for one in OPERATIONS}


class HubAs(Judging, HubOperations):
    """The operations with one caller's permissions, for code inside the hub: chats and the page."""

    def __init__(self, perform: Perform, caller: Caller) -> None:
        self._perform, self._caller = perform, caller

    async def do(self, operation: Operation[..., R], given: Mapping[str, Any]) -> R | Refused:
        found = await self._perform(operation, self._caller, given)
        typed: R | Refused = read(operation.result, found) if isinstance(found, Mapping) else found
        return typed
