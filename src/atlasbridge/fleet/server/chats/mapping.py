"""Converts rows of the server to the values that channels use: prompts and sessions. All functions are pure.

Two machines can use the same id, so an id here is made from the machine and its own id.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from atlasbridge.core.clock import Clock, iso, parse_iso
from atlasbridge.core.operations import fitting_constraints
from atlasbridge.core.prompt.codec import decode_prompt
from atlasbridge.core.prompt.model import (
    EXCERPT_LIMIT,
    Choice,
    Prompt,
    PromptRecord,
    PromptState,
    PromptType,
    Subject,
    told_subject,
)
from atlasbridge.core.session.model import SessionRecord, SessionState
from atlasbridge.core.values import frozen, replace

SCORES = {"high": 0.9, "med": 0.7, "low": 0.5}
MOST = 200  # longest list
_PUBLIC = ("type", "excerpt", "screen", "choices", "evidence", "safe_default", "question", "whole", "says")
GONE = "gone"  # the server's state for prompts that a removed machine left open
_HEX = re.compile(r"[0-9a-f]{8}")

Key = tuple[str, str]  # the machine, and the id that it uses


@frozen
class FleetPrompt:
    """A prompt of a machine, as the chats use it."""

    key: Key
    seq: int
    machine: str
    folder: str
    state: str  # set by the machine or the server
    record: PromptRecord
    raised_at: float  # wall-clock time
    agreed: tuple[str, ...] = ()
    last_key_at: float | None = None  # wall-clock time
    readers: frozenset[str] = frozenset()  # chat users who are allowed to see it
    deciding: str = ""  # the person whose answer the machine has not confirmed yet

    @property
    def chat_id(self) -> str:
        return self.record.prompt_id


def chat_id(key: Key, own: bool = True) -> str:
    """The id that chats show. It starts like the machine's own id, so that people can type it there. The rest is a
    digest, which a machine cannot choose.
    """
    digest = hashlib.sha256("\0".join(key).encode()).hexdigest()
    first = key[1][:8].lower()
    text = (first if own and _HEX.fullmatch(first) else digest[:8]) + digest[8:32]
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def nonce_of(secret: str, key: Key) -> str:
    """The nonce of a prompt. It is the same in every server process and after a restart."""
    return hmac.digest(secret.encode(), "\0".join(("nonce", *key)).encode(), "sha256").hex()[:32]


def read_asked(row: Mapping[str, Any], secret: str, clock: Clock) -> FleetPrompt:
    body, key = row["body"], (str(row["machine_id"]), str(row["prompt_id"]))
    session = (key[0], str(row["session_id"]))
    raised, expires = _wall(row["raised_at"]), _wall(row["expires_at"]) or _wall(row["raised_at"])
    record = PromptRecord(
        chat_id(key),
        chat_id(session),
        read_prompt(body),
        read_state(str(row["state"])),
        nonce_of(secret, key),
        iso(raised),
        iso(expires),
        clock.now() + expires - clock.wall(),
        decided_by=_text(body.get("decided_by"), 200),
        decided_at=_moment(body.get("decided_at")),
        decided_value=_text(body.get("decided_value"), 1000),
        decided_from=_text(body.get("decided_from"), 200),
    )
    return FleetPrompt(
        key,
        int(row["seq"]),
        str(row["machine"]),
        str(row["folder"]),
        str(row["state"]),
        record,
        raised,
        tuple(_text(name, 200) for name in _list(body.get("agreed"))[:MOST]),
        _wall(row["last_key_at"]) or None,
    )


def read_state(state: str) -> PromptState:
    """The state of a prompt. For a chat, an unknown state means that the prompt has ended."""
    try:
        return PromptState(state)
    except ValueError:
        return PromptState.WITHDRAWN


def read_prompt(body: Mapping[str, Any]) -> Prompt:
    """Read a prompt as a machine sent it. Of one that makes no sense only its text is left, so that one faulty machine
    does not break a chat.
    """
    given = {name: body[name] for name in _PUBLIC if name in body}
    subject, constraints = _subject(body.get("subject")), fitting_constraints(body.get("constraints"))
    rest = {"score": SCORES.get(_text(body.get("confidence")), 0.5), "constraints": constraints}
    try:
        prompt = decode_prompt({**given, **rest})
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        said = (_text(body.get("excerpt")), _text(body.get("screen")))
        question = _text(body.get("question"))
        prompt = Prompt(PromptType.TYPE_UNKNOWN, 0.5, *said, (), constraints, question=question, whole=False)
    choices = tuple(
        Choice(one.value[:200], one.label[:1000], (), one.refuses, one.always, one.default, one.detail[:4000])
        for one in prompt.choices[:MOST]
    )
    whole = prompt.whole and len(prompt.choices) <= MOST
    return replace(prompt, excerpt=prompt.excerpt[:EXCERPT_LIMIT], choices=choices, subject=subject, whole=whole)


def _subject(told: Any) -> Subject | None:
    """The subject of a prompt. The machine sends only what people are allowed to see, so all of it is shown."""
    found = told_subject(told)
    return found and replace(found, shown=found.text)


def read_session(row: Mapping[str, Any]) -> SessionRecord:
    body, key = row["body"], (str(row["machine_id"]), str(row["session_id"]))
    return SessionRecord(
        chat_id(key),
        _text(body.get("tool"), 100),
        tuple(_text(word, 1000) for word in _list(body.get("command"))[:MOST]),
        _text(body.get("cwd"), 1000),
        0,
        0,
        _moment(body.get("started_at")),
        _session_state(str(row["state"])),
        label=_text(body.get("label"), 200),
        machine=str(row["machine"]),
    )


def _session_state(state: str) -> SessionState:
    try:
        return SessionState(state)
    except ValueError:
        return SessionState.TERMINATED


def _text(value: Any, most: int | None = None) -> str:
    return value[:most] if isinstance(value, str) else ""


def _moment(value: Any) -> str:
    """The time, if it has the format that machines use, or "" otherwise."""
    try:
        parse_iso(_text(value, 40))
    except (ValueError, OverflowError):
        return ""
    return _text(value, 40)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _wall(moment: datetime | None) -> float:
    return moment.timestamp() if moment is not None else 0.0
