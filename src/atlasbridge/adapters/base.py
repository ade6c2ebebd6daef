"""The frozen adapter interface, version 1.0 of the specification. An adapter written from it alone works.

AdapterError                        see core/errors.py
├── AdapterStartError               the process cannot be spawned
├── AdapterInjectionError           the reply cannot be written
└── ReplayAttackError               the nonce is wrong or was used before
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from atlasbridge.core.clock import SystemClock
from atlasbridge.core.constants import INJECT_BYTES
from atlasbridge.core.errors import AdapterError
from atlasbridge.core.prompt.model import PromptType

__all__ = [
    "INJECT_BYTES",
    "AdapterError",
    "AdapterInjectionError",
    "AdapterStartError",
    "BaseAdapter",
    "Confidence",
    "PromptEvent",
    "PromptType",
    "ReplayAttackError",
    "Reply",
    "make_idempotency_key",
    "reply_bytes",
    "validate_event",
    "validate_reply",
]

NEWLINE_POLICIES = ("append", "none", "replace")
_UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_NONCE = re.compile(r"[0-9a-f]{32}")


class Confidence(StrEnum):
    """The frozen values. Events and commands call the middle one "med", which is accepted here, too."""

    HIGH = "high"
    MED = "medium"
    LOW = "low"

    @classmethod
    def _missing_(cls, value: object) -> Confidence | None:
        return cls.MED if value == "med" else None


class AdapterStartError(AdapterError):
    pass


class AdapterInjectionError(AdapterError):
    pass


class ReplayAttackError(AdapterError):
    pass


@dataclass
class PromptEvent:
    """A prompt detected in the tool's output stream."""

    prompt_id: str
    session_id: str
    prompt_type: PromptType
    confidence: Confidence
    excerpt: str
    choices: list[str]
    constraints: dict[str, Any]
    idempotency_key: str
    timestamp: str
    raw_bytes: bytes


@dataclass
class Reply:
    """A resolved reply, ready to be injected."""

    prompt_id: str
    session_id: str
    value: str
    nonce: str
    channel_identity: str
    timestamp: str
    newline_policy: str


def validate_event(event: PromptEvent) -> list[str]:
    """Return the violations of the specification's rules; an empty list means a valid event."""
    wrong = []
    if not _UUID4.fullmatch(event.prompt_id):
        wrong.append("prompt_id is not a UUID v4")
    if len(event.excerpt) > 200:
        wrong.append("excerpt is over 200 characters")
    if len(event.choices) > 9 or any(len(choice) > 60 for choice in event.choices):
        wrong.append("choices: at most 9, each at most 60 characters")
    if not _is_utc(event.timestamp):
        wrong.append("timestamp is not ISO 8601 in UTC")
    return wrong


def _is_utc(timestamp: str) -> bool:
    """Accepts optional fractions of a second, and `+00:00` or `Z`."""
    from datetime import datetime, timedelta  # imported only when an event is checked

    try:
        return datetime.fromisoformat(timestamp).utcoffset() == timedelta(0)
    except ValueError:
        return False


def validate_reply(reply: Reply, event: PromptEvent) -> list[str]:
    """Return the violations of the specification's rules for a reply to this event; an empty list
    means a valid reply."""
    wrong = []
    kind, value = event.prompt_type, reply.value
    if kind is PromptType.TYPE_FREE_TEXT and len(value) > event.constraints.get("max_length", 200):
        wrong.append("value is longer than max_length")
    if kind is PromptType.TYPE_MULTIPLE_CHOICE and not (value.isdigit() and 1 <= int(value) <= len(event.choices)):
        wrong.append(f"value must be a number from 1 to {len(event.choices)}")
    if kind is PromptType.TYPE_YES_NO and value not in ("y", "n"):
        wrong.append('value must be "y" or "n"')
    if not _NONCE.fullmatch(reply.nonce):
        wrong.append("nonce must be 32 hexadecimal characters")
    if reply.newline_policy not in NEWLINE_POLICIES:
        wrong.append(f"newline_policy must be one of {', '.join(NEWLINE_POLICIES)}")
    return wrong


def reply_bytes(value: str, newline_policy: str = "append") -> bytes:
    """The bytes of a reply under the three newline policies of the specification."""
    if newline_policy == "replace":
        return value.encode().decode("unicode_escape").encode("latin-1")
    if newline_policy == "none":
        return b"\r" if value in ("\n", "") else value.encode()
    return INJECT_BYTES.get(value, value.encode() + b"\r")


def make_idempotency_key(
    session_id: str, excerpt: str, timestamp_window_seconds: int = 5, wall: float | None = None
) -> str:
    """Equal for the same excerpt of the same session within one window of time."""
    moment = SystemClock().wall() if wall is None else wall
    window = int(moment) // timestamp_window_seconds
    return hashlib.sha256(f"{session_id}:{excerpt}:{window}".encode()).hexdigest()


class BaseAdapter(ABC):
    """The interface of every tool adapter. It makes no policy, sends to no channel, and writes no audit entry."""

    CALLS_HOOKS: ClassVar[bool] = False  # true: it calls its own hooks; otherwise its runner does

    @abstractmethod
    async def start_session(self, command: list[str], env: dict[str, str] | None = None) -> str:
        """Spawn the tool in a terminal and return the session id (UUID v4). Raises AdapterStartError if that fails."""

    @abstractmethod
    def read_stream(self) -> AsyncIterator[bytes]:
        """Yield the output of the tool as it comes."""

    @abstractmethod
    async def detect_prompt(self, buffer: bytes) -> PromptEvent | None:
        """Return the prompt at the end of this output, or None. Never return the same prompt twice."""

    @abstractmethod
    async def await_input_state(self) -> bool:
        """Whether the tool waits for input now."""

    @abstractmethod
    async def inject_reply(self, reply: Reply) -> None:
        """Write the reply. Raises AdapterInjectionError if that fails, and ReplayAttackError for a
        wrong or used nonce."""

    @abstractmethod
    async def terminate_session(self, session_id: str) -> None:
        """Send SIGTERM, wait 3 seconds, send SIGKILL; close the terminal and restore the host's."""

    @abstractmethod
    async def snapshot_context(self) -> dict[str, Any]:
        """Return at least: session_id, tool, pid, state, uptime_seconds, prompt_count, last_output_ago_seconds,
        pty_alive."""

    @abstractmethod
    async def healthcheck(self) -> bool:
        """Whether the child is alive, the terminal is writable and the tasks run."""

    async def on_start(self) -> None:  # noqa: B027 - an optional hook
        """Called after the tool has started."""

    async def on_stop(self, exit_code: int) -> None:  # noqa: B027 - an optional hook
        """Called after the tool has ended by itself."""

    async def on_crash(self, exit_code: int) -> None:  # noqa: B027 - an optional hook
        """Called after a signal ended the tool, or it failed."""
