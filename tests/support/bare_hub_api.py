"""A hub that answers nothing: the ground on which the small servers of the tests stand.

It has the whole of core.ports.MachineApi, so that the type checker holds those servers to it; what a test did not
expect to be asked fails at once.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn, Self

from atlasbridge.core.audit.passkeys import PasskeyRefused
from atlasbridge.core.ids import new_id
from atlasbridge.core.operations import Caller, Changes, HubAs, Operation, Refused, Sized
from atlasbridge.core.policy.escalation import Tone
from atlasbridge.core.prompt.model import PromptRecord, Refusal, Reject
from atlasbridge.core.prompt.question import RemoteQuestion
from atlasbridge.core.session.model import SessionRecord


def _unexpected(what: str) -> NoReturn:
    raise AssertionError(f"this hub was not expected to be asked for {what}")


class BareQuestions:
    """Nobody answers here what is asked over HTTP: that is tried with a real hub."""

    async def ask(self, asked: RemoteQuestion) -> AsyncGenerator[dict[str, Any], None]:
        yield {"event": "raised", "prompt_id": new_id()}
        yield {"event": "expired", "outcome": "expired"}

    def withdraw(self, session_id: str) -> bool:
        return False

    def owner(self, session_id: str) -> str:
        return ""

    def is_foreign(self, session_id: str, identity: str) -> bool:
        return False


class NoPasskeys:
    """Nobody has one here."""

    def get_ready(self) -> None:
        raise PasskeyRefused("none here")

    def list_all(self) -> list[dict[str, Any]]:
        return []

    def make_code(self) -> str:
        raise PasskeyRefused("none here")

    def begin(self, rp_id: str) -> dict[str, Any]:
        raise PasskeyRefused("none here")

    def add(self, given: Mapping[str, Any], origins: Iterable[str], by: str) -> dict[str, Any]:
        raise PasskeyRefused("none here")

    def accept(self, person: str, origin: str, key: str, name: str, by: str) -> dict[str, Any]:
        raise PasskeyRefused("none here")

    def remove(self, word: str, by: str) -> str:
        return ""

    def ask(self, record: PromptRecord, value: str, as_text: bool, rp_id: str) -> dict[str, Any] | Reject:
        return Reject(Refusal.UNAVAILABLE, "none here")


class BareHubApi:
    changed: Changes | None = None  # what every session has changed; None: nobody can tell

    async def do_changes(self, caller: Caller, session_id: str) -> Changes | Refused:
        return self.changed or Refused("no_folder", "the session's folder cannot be read")

    async def do_lend_size(self, caller: Caller, session_id: str, rows: int = 0, cols: int = 0) -> Sized | Refused:
        if self.session(session_id) is None:
            return Refused("unknown_session", "there is no such session")
        return Sized(session_id, rows, cols)

    def by(self, caller: Caller) -> HubAs:
        return HubAs(self._perform, caller)

    async def _perform(self, operation: Operation[..., Any], caller: Caller, given: Mapping[str, Any]) -> Any:
        """An operation of the table is a method `do_NAME` here."""
        function = getattr(self, f"do_{operation.key}", None)
        if function is None:
            _unexpected(operation.name)
        if operation.changes and "prompt_id" in given and self.prompt(given["prompt_id"]) is None:
            return Refused("unknown_prompt", "There is no such prompt.")
        return await function(caller, **given)

    @property
    def passkeys(self) -> NoPasskeys:
        return NoPasskeys()

    @property
    def questions(self) -> BareQuestions:
        return BareQuestions()

    async def session_of_peer(
        self, client: tuple[str, int], server: tuple[str, int], same_user: bool = False, forwarded: str | None = None
    ) -> str:
        return ""

    def mark_asker(self, label: str, inside_session: str) -> str:
        return label

    def refuse_inside_session(self, inside_session: str, op: str, prompt_id: str = "") -> Reject:
        return Reject(Refusal.SELF, "Only a person decides.")

    def seen_by(self, identity: str, alone: bool = True) -> Self:
        """Everybody may see everything here."""
        return self

    def login_revoked(self, identity: str) -> None:
        """Nobody has left anything to be answered later here."""

    def readers(self, session_id: str, channel: str) -> frozenset[str] | None:
        return None

    def folder(self, session_id: str) -> str:
        session = self.session(session_id)
        return session.cwd if session else ""

    def sessions(self, include_ended: bool = False) -> list[SessionRecord]:
        _unexpected("sessions")

    def session(self, session_id: str) -> SessionRecord | None:
        _unexpected("a session")

    def open_prompts(self) -> list[PromptRecord]:
        _unexpected("open prompts")

    def prompt(self, prompt_id: str) -> PromptRecord | None:
        _unexpected("a prompt")

    def deliveries(self, prompt_id: str, channel: str) -> list[str]:
        _unexpected("deliveries")

    async def accept_update(self, channel: str, update_id: str, payload: str) -> bool:
        _unexpected("its inbox")

    async def settle_update(self, channel: str, update_id: str) -> None:
        _unexpected("its inbox")

    def pending_updates(self, channel: str) -> list[tuple[str, str]]:
        _unexpected("pending updates")

    def remember(self, key: str, value: str) -> None:
        _unexpected("a note")

    def recall(self, key: str, default: str = "") -> str:
        _unexpected("a note")

    def name_of(self, identity: str) -> str:
        return ""

    def reads(self, identity: str) -> tuple[str, str]:
        return "", ""

    def later(self, prompt_id: str = "") -> list[dict[str, Any]]:
        return []

    def aside(self, prompt_id: str, identity: str) -> tuple[float, bool]:
        return 0.0, False

    def tone(self, prompt_id: str, channel: str) -> Tone:
        return Tone()

    async def screen(self, session_id: str, styled: bool = False, past: bool = False) -> dict[str, Any] | None:
        _unexpected("a screen")

    async def type_keys(self, session_id: str, data: bytes, identity: str) -> bool:
        _unexpected("keys")

    def events(self) -> AsyncIterator[dict[str, Any]]:
        _unexpected("events")

    def note(self, event: str, **fields: Any) -> None:
        _unexpected("an audit entry")

    @property
    def home(self) -> Path:
        _unexpected("its home")

    def watch(self, session_id: str, fps: float = 10.0) -> AsyncGenerator[dict[str, Any], None]:
        _unexpected("a live screen")

    def history(
        self, search: str = "", limit: int = 50, before: str = "", session_id: str = "", state: str = ""
    ) -> list[PromptRecord]:
        _unexpected("the history")

    def statistics(self) -> dict[str, Any]:
        _unexpected("figures")

    def audit_entries(
        self,
        limit: int = 100,
        before: int | None = None,
        events: tuple[str, ...] = (),
        session_id: str = "",
        prompt_id: str = "",
    ) -> list[dict[str, Any]]:
        _unexpected("audit entries")

    def answer(self, prompt_id: str) -> dict[str, Any] | None:
        _unexpected("an answer")

    def still_waiting(self) -> list[PromptRecord]:
        _unexpected("what still waits")

    def tell(self, message: str) -> None:
        _unexpected("a notice")

    def offer(self, name: str, answer: Callable[[str, Mapping[str, Any]], Awaitable[Any]]) -> None:
        _unexpected("an offer")

    def agreed(self, prompt_id: str) -> list[str]:
        _unexpected("who agreed")
