"""The seams: what core needs of the edges, and what an edge may ask of core.  No implementation lives here."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from atlasbridge.core.detection.events import ProbeAnswer
from atlasbridge.core.policy.attention import Tone
from atlasbridge.core.prompt.model import InboundReply, PromptRecord, Receipt, Reject
from atlasbridge.core.prompt.question import RemoteQuestion
from atlasbridge.core.session.model import SessionRecord

if TYPE_CHECKING:
    from atlasbridge.core.operations import Caller, HubAs


class Channel(Protocol):
    """What the router knows of a channel; `channels/base.py` has the class to derive from."""

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


class Integrations(Protocol):
    """Questions that a channel carries in.  A question's id is the asker's own choice; who asked it is proven."""

    def ask(self, asked: RemoteQuestion) -> AsyncGenerator[dict[str, Any], None]:
        """{"event": "raised", "prompt_id"}, then one with its outcome.  Closing it leaves the question open for a
        moment: whoever asked may come back with the same id."""

    def withdraw(self, session_id: str) -> bool: ...
    def owner(self, session_id: str) -> str:
        """Who asked it; "": nobody asked this here."""

    def is_foreign(self, session_id: str, identity: str) -> bool:
        """Whether the id is another's, or of something that was not asked here."""


class PasskeyService(Protocol):
    """Keys with which people sign what they agree to, where a rule wants that.  PasskeyRefused: it is not taken."""

    def get_ready(self) -> None:
        """Load what checks signatures; that takes a moment, so it is another thread's work."""

    def listed(self) -> list[dict[str, Any]]:
        """{"key_id", "name", "rp_id", "created_at", "by"} of each."""

    def make_code(self) -> str:
        """For one new key; only a command of a person's own gets one."""

    def begin(self, rp_id: str) -> dict[str, Any]:
        """{"challenge", "rp_id", "keys", "user"} for a new key of the page of that name."""

    def add(self, given: Mapping[str, Any], origins: Iterable[str], by: str) -> dict[str, Any]: ...
    def remove(self, word: str, by: str) -> str:
        """By its id, the beginning of it, or its name; the name of what was removed, or ""."""

    def ask(self, record: PromptRecord, value: str, as_text: bool, rp_id: str) -> dict[str, Any] | Reject:
        """{"needed", "challenge", "rp_id", "keys"}: what has to be signed before this answer is given."""


class HubApi(Protocol):
    """What a chat asks of the hub, or of a fleet server in its place.  All of it runs in one event loop.

    Whatever a person can ask for stands in the table of operations and is asked by `by`; here is what a channel needs
    for itself: records to show, its own notes, and who is allowed to see what.
    """

    def by(self, caller: Caller) -> HubAs:
        """The operations of the table, as this caller is allowed to use them: `await hub.by(caller).snooze(...)`."""

    def sessions(self, include_ended: bool = False) -> list[SessionRecord]: ...
    def session(self, session_id: str) -> SessionRecord | None:
        """By full or short id."""

    def open_prompts(self) -> list[PromptRecord]: ...
    def prompt(self, prompt_id: str) -> PromptRecord | None:
        """By full or short id; None when there is none, or the short form is ambiguous."""

    def deliveries(self, prompt_id: str, channel: str) -> list[str]:
        """The message ids under which `channel` showed this prompt."""

    def prompt_for_message(self, channel: str, message_id: str) -> PromptRecord | None: ...
    async def accept_update(self, channel: str, update_id: str, payload: str) -> bool:
        """Commit an inbound update before it is acknowledged.  False: it was seen before."""

    async def settle_update(self, channel: str, update_id: str) -> None:
        """It has had its effect: what it said is forgotten, and it is not pending any more."""

    def pending_updates(self, channel: str) -> list[tuple[str, str]]:
        """(update id, payload) of what was accepted and not settled, oldest first: a process died in between."""

    def remember(self, key: str, value: str) -> None:
        """A small durable note of a channel: a poll offset, a chat's default session."""

    def recall(self, key: str, default: str = "") -> str: ...
    def name_of(self, identity: str) -> str:
        """The one name of whoever has this identity; "": nobody gave them one."""

    def seen_by(self, identity: str, alone: bool = True) -> HubApi:
        """The same, as far as this person may see it: what a command shows is asked there.  Not `alone`: everybody
        who takes part in that channel reads the answer, too."""

    def readers(self, session_id: str, channel: str) -> frozenset[str] | None:
        """The identities there that may hear of this session; None: everybody who takes part."""

    def folder(self, session_id: str) -> str:
        """Where files of this session can be read and put; "": that is on another machine."""

    def tone(self, prompt_id: str, channel: str) -> Tone:
        """To whom this channel is to show that prompt, and for whom without a sound."""

    async def screen(self, session_id: str, styled: bool = False, past: bool = False) -> dict[str, Any] | None:
        """`past`: also what scrolled off it, as `past`; with `why` it says what was judged, where not `styled`."""

    async def type_keys(self, session_id: str, data: bytes, identity: str) -> bool: ...
    def note(self, event: str, **fields: Any) -> None:
        """Write an entry of the channel's own into the audit log."""

    def history(
        self, search: str = "", limit: int = 50, before: str = "", session_id: str = "", state: str = ""
    ) -> list[PromptRecord]:
        """Prompts, newest first; `before` is the id of the last one of the page before."""

    def later(self, prompt_id: str = "") -> list[dict[str, Any]]:
        """What is kept for later, of one prompt or of all: {"later_id", "prompt_id", "kind", "due_at", "when", ...}."""

    def agreed(self, prompt_id: str) -> list[str]:
        """Who has agreed so far, where several people must."""


class MachineApi(HubApi, Protocol):
    """What only the hub on its own machine has: files, live screens, the audit log, questions, passkeys, processes."""

    def sent_away(self, identity: str) -> None:
        """A login that the channel itself gave was revoked: what it kept for later ends with it."""

    def aside(self, prompt_id: str, identity: str) -> tuple[float, bool]:
        """For what leaves this machine beside a channel's own messages (a push): seconds for which it is held back
        because
        somebody types at the terminal (ask again then), and whether it is to come without a sound."""

    def events(self) -> AsyncIterator[dict[str, Any]]:
        """Every event from now on, as `atlasbridge events --json` prints them."""

    @property
    def home(self) -> Path:
        """The home folder (mode 0700): where a channel keeps a file that a command of this user must find."""

    def watch(self, session_id: str, fps: float = 10.0) -> AsyncGenerator[dict[str, Any], None]:
        """The styled screen at once and after every change, at most `fps` times a second.  Costs nothing before it is
        iterated; closing it stops the host from sending.  Ends when the session does."""

    def statistics(self) -> dict[str, Any]:
        """Counts over all prompts, and per day and person: the store's `statistics` and `figures`."""

    def audit_entries(
        self,
        limit: int = 100,
        before: int | None = None,
        events: tuple[str, ...] = (),
        session_id: str = "",
        prompt_id: str = "",
    ) -> list[dict[str, Any]]:
        """The audit log's entries, newest first; `before` is a `seq`.  Without `events` all kinds of them."""

    def answer(self, prompt_id: str) -> dict[str, Any] | None:
        """{"kind", "value", "by", "at", "source"} of the answer that was accepted; the value of a secret is None."""

    def still_waiting(self) -> list[PromptRecord]:
        """Prompts whose time is over and that still stand on the screen of a session that lives."""

    @property
    def integrations(self) -> Integrations: ...
    @property
    def passkeys(self) -> PasskeyService: ...
    async def session_of_peer(self, client: tuple[str, int], server: tuple[str, int], same_user: bool = False) -> str:
        """The session whose tool, or what it started, is at the other end of this connection; "" for a person's own
        program.  Where nobody can tell, that is said as `core.prompt.gate.UNTRACED`.  `same_user`: a program of another
        user, or of another machine, is `OTHER_USER`."""

    def refuse_inside_session(self, inside_session: str, op: str, prompt_id: str = "") -> Reject:
        """Audited, told to people, and to be said to whoever tried."""

    def mark_asker(self, label: str, inside_session: str) -> str:
        """Who asks, for the card: a label of the asker's own, and the session it asks from."""

    def tell(self, message: str) -> None:
        """Tell every channel something that a person should know, such as an alarm."""

    def offer(self, name: str, answer: Callable[[str, Mapping[str, Any]], Awaitable[Any]]) -> None:
        """What commands of this user may ask of a channel, over the hub's socket: `answer(what, fields)`."""


class LinkApi(MachineApi, Protocol):
    """What the link to a fleet server may ask of the hub besides."""

    def join(self, machine_id: str) -> str:
        """Changes are collected for that hub from now on; the name of this membership."""

    def meeting(self) -> dict[str, Any]:
        """What tells the server whether its store, or this one, went back in time."""

    def meet(self, token: str) -> None:
        """The token of this meeting, written down."""

    def tell_again(self, epoch: str, notice: str, known: Iterable[str]) -> int:
        """Everything that is open, and what is `known` at the server, goes into the outbox; the number of the last."""

    def to_tell(self, after: int, limit: int) -> list[dict[str, Any]]:
        """What the hub has not acknowledged, each item with its number (`seq`) and as it is now."""

    def acknowledge(self, seq: int) -> None: ...
    def backlog(self) -> int: ...
    def audit_head(self) -> tuple[int, str]: ...
    def audit_lines(self, after: int, limit: int) -> list[str]: ...

    def heard_of_server(self, carries: bool | None = None) -> None:
        """A word of the hub came; `carries`: whether it asks people in chats."""

    def server_asks(self, prompt_ids: Iterable[str]) -> None:
        """For these the hub asks somebody in a chat: this hub need not."""

    def told(self, prompt_id: str) -> bool:
        """Whether the hub may know of this prompt, and decide about it."""

    def shows(self, session_id: str) -> bool:
        """Whether somebody at the keyboard may look at this session."""

    def use_rules(self, path: Path, text: str, digest: str) -> None:
        """Rules of the hub: recorded, written down there, and used from now on."""


class WaitingProbe(Protocol):
    """The operating system's answer to: does the foreground process group wait for the terminal?"""

    def look(self, quiet_s: float, input_age_s: float | None) -> ProbeAnswer:
        """`quiet_s`: since the last output; `input_age_s`: since the last byte written to the tool, None: never."""
