"""The interfaces between the core and the edges: what the core needs from an edge, and what an edge can ask of the
core. This module contains no implementation."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from atlasbridge.core.detection.events import ProbeAnswer
from atlasbridge.core.policy.escalation import Tone
from atlasbridge.core.prompt.model import InboundReply, PromptRecord, Receipt, Reject
from atlasbridge.core.prompt.question import RemoteQuestion
from atlasbridge.core.session.model import SessionRecord

if TYPE_CHECKING:
    from atlasbridge.core.operations import Caller, HubAs


class Channel(Protocol):
    """The router's view of a channel; channels derive from the class in `channels/base.py`."""

    @property
    def name(self) -> str: ...

    async def start(self) -> None: ...
    async def send_prompt(self, event: PromptRecord, session: SessionRecord) -> str: ...
    async def receive_reply(self) -> InboundReply: ...
    async def answer_reply(self, reply: InboundReply, outcome: Receipt | Reject) -> None: ...
    async def update_prompt(self, message_id: str, event: PromptRecord, receipt: Receipt) -> None: ...
    async def notify(self, message: str, session: SessionRecord | None = None) -> None: ...
    async def tell_digest(self, key: str, text: str, loud: bool) -> None: ...
    async def close(self) -> None: ...
    def health(self) -> dict[str, Any]: ...


class QuestionService(Protocol):
    """Questions that arrive through a channel. The asker chooses a question's id; the channel has verified the asker's
    identity."""

    def ask(self, asked: RemoteQuestion) -> AsyncGenerator[dict[str, Any], None]:
        """Yields {"event": "raised", "prompt_id"}, then one event with the outcome. If the caller closes the generator,
        the question stays open for a moment, so that the asker can reconnect with the same id."""

    def withdraw(self, session_id: str) -> bool: ...
    def owner(self, session_id: str) -> str:
        """Returns the identity that asked; "" if this question was not asked through a channel."""

    def is_foreign(self, session_id: str, identity: str) -> bool:
        """Whether the id belongs to another asker, or to a session that was not created by a question."""


class PasskeyService(Protocol):
    """Passkeys with which people sign their approvals, where a rule requires it. Raises PasskeyRefused if one is not
    accepted."""

    def get_ready(self) -> None:
        """Loads the code that verifies signatures. This is slow, so it runs in another thread."""

    def list_all(self) -> list[dict[str, Any]]:
        """Returns {"key_id", "name", "rp_id", "created_at", "by"} for each passkey."""

    def make_code(self) -> str:
        """Creates a code that enrols one new passkey. Only a command that a person runs can get one."""

    def begin(self, rp_id: str) -> dict[str, Any]:
        """Returns {"challenge", "rp_id", "keys", "user"} for a new passkey of the page with that name."""

    def add(self, given: Mapping[str, Any], origins: Iterable[str], by: str) -> dict[str, Any]: ...

    def accept(self, person: str, origin: str, key: str, name: str, by: str) -> dict[str, Any]:
        """Accepts the key of a person of the fleet. Only a command that a person runs can do this."""

    def remove(self, word: str, by: str) -> str:
        """Removes a passkey by its id, the beginning of its id, or its name. Returns its name, or "" if there is
        none."""

    def ask(self, record: PromptRecord, value: str, as_text: bool, rp_id: str) -> dict[str, Any] | Reject:
        """Returns {"needed", "challenge", "rp_id", "keys"}: what must be signed before this answer is given."""


class HubApi(Protocol):
    """What a channel can ask of the hub, or of a fleet server in its place. All of it runs in one event loop.

    Everything that a person can request is in the table of operations and is called through `by`. The methods here are
    for the channel itself: records to show, its own notes, and who is allowed to see which session.
    """

    def by(self, caller: Caller) -> HubAs:
        """The operations of the table with this caller's permissions: `await hub.by(caller).snooze(...)`."""

    def sessions(self, include_ended: bool = False) -> list[SessionRecord]: ...
    def session(self, session_id: str) -> SessionRecord | None:
        """Finds a session by its full or short id."""

    def open_prompts(self) -> list[PromptRecord]: ...
    def prompt(self, prompt_id: str) -> PromptRecord | None:
        """Finds a prompt by its full or short id. Returns None if there is none, or if the short form is ambiguous."""

    def deliveries(self, prompt_id: str, channel: str) -> list[str]:
        """The message ids under which `channel` showed this prompt."""

    async def accept_update(self, channel: str, update_id: str, payload: str) -> bool:
        """Commits an inbound update before it is acknowledged. Returns False for a duplicate."""

    async def settle_update(self, channel: str, update_id: str) -> None:
        """The update has been processed: its payload is deleted, and it is no longer pending."""

    def pending_updates(self, channel: str) -> list[tuple[str, str]]:
        """Returns (update id, payload) of updates that were accepted but not settled because a process died, oldest
        first."""

    def remember(self, key: str, value: str) -> None:
        """Stores a small durable note of a channel, such as a poll offset or a chat's default session."""

    def recall(self, key: str, default: str = "") -> str: ...
    def name_of(self, identity: str) -> str:
        """Returns the name of the person with this identity; "" if nobody has set one."""

    def reads(self, identity: str) -> tuple[str, str]:
        """Returns the language and the time zone of the person with this identity; "" for what nobody has set."""

    def seen_by(self, identity: str, alone: bool = True) -> HubApi:
        """Returns this interface restricted to what this person is allowed to see. Use it for the output of commands.
        `alone=False` means that everyone in the channel reads the answer as well."""

    def readers(self, session_id: str, channel: str) -> frozenset[str] | None:
        """Returns the identities of that channel that are allowed to see this session; None means everyone in it."""

    def folder(self, session_id: str) -> str:
        """Returns the folder where this session's files can be read and written; "" if it is on another machine."""

    def tone(self, prompt_id: str, channel: str) -> Tone:
        """Returns to whom this channel shows the prompt, and for whom without a sound."""

    async def screen(self, session_id: str, styled: bool = False, past: bool = False) -> dict[str, Any] | None:
        """`past` adds the lines that have scrolled off. With `why` and without `styled`, the result says what the
        detector decided."""

    async def type_keys(self, session_id: str, data: bytes, identity: str) -> bool: ...
    def note(self, event: str, **fields: Any) -> None:
        """Writes an audit entry on behalf of the channel."""

    def history(
        self, search: str = "", limit: int = 50, before: str = "", session_id: str = "", state: str = ""
    ) -> list[PromptRecord]:
        """Returns prompts, newest first. `before` is the id of the last prompt on the previous page."""

    def later(self, prompt_id: str = "") -> list[dict[str, Any]]:
        """Returns scheduled answers of one prompt or of all: {"later_id", "prompt_id", "kind", "due_at", "when",
        ...}."""

    def agreed(self, prompt_id: str) -> list[str]:
        """Returns who has approved so far, where several people must approve."""


class MachineApi(HubApi, Protocol):
    """The methods that only the hub on its own machine has: files, live screens, audit log, questions, passkeys,
    processes."""

    def login_revoked(self, identity: str) -> None:
        """The channel has revoked a login that it had created. The hub cancels this person's scheduled answers."""

    def aside(self, prompt_id: str, identity: str) -> tuple[float, bool]:
        """For notifications besides the channel's own messages, such as a push. Returns the seconds to wait because
        somebody types at the terminal (then ask again), and whether to notify without a sound."""

    def events(self) -> AsyncIterator[dict[str, Any]]:
        """Yields every event from now on, in the format of `atlasbridge events --json`."""

    @property
    def home(self) -> Path:
        """The home folder (mode 0700), where a channel stores files that this user's commands must find."""

    def watch(self, session_id: str, fps: float = 10.0) -> AsyncGenerator[dict[str, Any], None]:
        """Yields the styled screen at once and after every change, at most `fps` times a second. It costs nothing
        before the first iteration. Closing it stops the host from sending. It ends with the session."""

    def statistics(self) -> dict[str, Any]:
        """Returns counts over all prompts, and per day and person: the store's `statistics` and `figures`."""

    def audit_entries(
        self,
        limit: int = 100,
        before: int | None = None,
        events: tuple[str, ...] = (),
        session_id: str = "",
        prompt_id: str = "",
    ) -> list[dict[str, Any]]:
        """Returns audit entries, newest first. `before` is a `seq`. Without `events`, entries of all kinds are
        returned."""

    def answer(self, prompt_id: str) -> dict[str, Any] | None:
        """Returns {"kind", "value", "by", "at", "source"} of the accepted answer; the value of a secret is None."""

    def still_waiting(self) -> list[PromptRecord]:
        """Returns prompts that have expired but are still on the screen of a running session."""

    @property
    def questions(self) -> QuestionService: ...
    @property
    def passkeys(self) -> PasskeyService: ...
    async def session_of_peer(
        self, client: tuple[str, int], server: tuple[str, int], same_user: bool = False, forwarded: str | None = None
    ) -> str:
        """Returns the session whose tool, or a descendant of the tool, is at the other end of this connection; "" for a
        person's own program, and `core.prompt.gate.UNTRACED` if that is unknown. A program of another user of this
        machine is reported as `OTHER_USER`; with `same_user`, a program of another machine is, too. `forwarded`: the
        address for which a configured proxy has connected; "" if the proxy does not report it.
        """

    def refuse_inside_session(self, inside_session: str, op: str, prompt_id: str = "") -> Reject:
        """Writes the attempt to the audit log, notifies people, and returns the refusal for the caller."""

    def mark_asker(self, label: str, inside_session: str) -> str:
        """Returns the asker's description for the prompt: its own label, and the session it asks from."""

    def tell(self, message: str) -> None:
        """Sends a message for people, such as an alarm, to every channel."""

    def offer(self, name: str, answer: Callable[[str, Mapping[str, Any]], Awaitable[Any]]) -> None:
        """Registers `answer(what, fields)` for requests that this user's commands send to a channel over the hub's
        socket."""


class WaitingProbe(Protocol):
    """Asks the operating system whether the foreground process group waits for terminal input."""

    def look(self, quiet_s: float, input_age_s: float | None) -> ProbeAnswer:
        """`quiet_s`: seconds since the last output. `input_age_s`: seconds since the last byte was written to the tool;
        None: never."""
