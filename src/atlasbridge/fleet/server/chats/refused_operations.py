"""What a channel may ask of a hub and a fleet server does not have: files, live screens, an audit log.

Operations of the table that it does not offer are refused by one rule, in `port.py`.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from atlasbridge.core.audit.signed_approval import PasskeyRefused
from atlasbridge.core.prompt.model import PromptRecord, Refusal, Reject
from atlasbridge.core.prompt.question import RemoteQuestion

AT_MACHINE = "That is done at the machine itself, not from the server."
_NOT_HERE = Reject(Refusal.UNAVAILABLE, AT_MACHINE)


class NoQuestions:
    """Nobody asks at the server itself."""

    async def ask(self, asked: RemoteQuestion) -> AsyncGenerator[dict[str, Any], None]:
        yield {"event": "refused", "message": AT_MACHINE}

    def withdraw(self, session_id: str) -> bool:
        return False

    def owner(self, session_id: str) -> str:
        return ""

    def is_foreign(self, session_id: str, identity: str) -> bool:
        return True


class NoPasskeys:
    """A passkey belongs to a machine's own page: so nobody who has taken the server over can agree with one."""

    def get_ready(self) -> None:
        raise PasskeyRefused(AT_MACHINE)

    def listed(self) -> list[dict[str, Any]]:
        return []

    def make_code(self) -> str:
        raise PasskeyRefused(AT_MACHINE)

    def begin(self, rp_id: str) -> dict[str, Any]:
        raise PasskeyRefused(AT_MACHINE)

    def add(self, given: Mapping[str, Any], origins: Iterable[str], by: str) -> dict[str, Any]:
        raise PasskeyRefused(AT_MACHINE)

    def remove(self, word: str, by: str) -> str:
        return ""

    def ask(self, record: PromptRecord, value: str, as_text: bool, rp_id: str) -> dict[str, Any] | Reject:
        return _NOT_HERE


class AtMachine:
    @property
    def passkeys(self) -> NoPasskeys:
        return NoPasskeys()

    @property
    def integrations(self) -> NoQuestions:
        return NoQuestions()

    @property
    def home(self) -> Path:
        """No channel of the server keeps a file."""
        return Path(os.devnull)

    def folder(self, session_id: str) -> str:
        return ""

    def sent_away(self, identity: str) -> None:
        """Nothing is kept for later here, and people are removed from the server itself."""

    def aside(self, prompt_id: str, identity: str) -> tuple[float, bool]:
        return 0.0, False

    async def screen(self, session_id: str, styled: bool = False, past: bool = False) -> dict[str, Any] | None:
        return None

    async def type_keys(self, session_id: str, data: bytes, identity: str) -> bool:
        return False

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        return
        yield {}

    async def watch(self, session_id: str, fps: float = 10.0) -> AsyncGenerator[dict[str, Any], None]:
        return
        yield {}

    def statistics(self) -> dict[str, Any]:
        return {}

    def audit_entries(
        self,
        limit: int = 100,
        before: int | None = None,
        events: tuple[str, ...] = (),
        session_id: str = "",
        prompt_id: str = "",
    ) -> list[dict[str, Any]]:
        return []

    def answer(self, prompt_id: str) -> dict[str, Any] | None:
        return None

    def still_waiting(self) -> list[PromptRecord]:
        return []

    async def session_of_peer(
        self, client: tuple[str, int], server: tuple[str, int], same_user: bool = False, forwarded: str | None = None
    ) -> str:
        return ""

    def refuse_inside_session(self, inside_session: str, op: str, prompt_id: str = "") -> Reject:
        return _NOT_HERE

    def mark_asker(self, label: str, inside_session: str) -> str:
        return label

    def later(self, prompt_id: str = "") -> list[dict[str, Any]]:
        return []

    def offer(self, name: str, answer: Callable[[str, Mapping[str, Any]], Awaitable[Any]]) -> None:
        """No command of a user finds the server over a socket."""
