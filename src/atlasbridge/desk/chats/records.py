"""Rows of the desk as the values that channels know: a prompt with its life, a session with its machine.  Pure.

A machine may call its prompts as it likes, also as another machine calls its own: here an id is made of both.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from atlasbridge.core.clock import Clock, iso
from atlasbridge.core.prompt.model import Choice, Evidence, Prompt, PromptRecord, PromptState, PromptType
from atlasbridge.core.prompt.subject import told_subject
from atlasbridge.core.session.model import SessionRecord, SessionState
from atlasbridge.core.values import frozen, replace

SCORES = {"high": 0.9, "med": 0.7, "low": 0.5}
GONE = "gone"  # the desk's own word for what a machine left open when it went
_HEX = re.compile(r"[0-9a-f]{8}")

Key = tuple[str, str]  # the machine, and its own id


@frozen
class Asked:
    """A prompt of some machine, as the chats know it."""

    key: Key
    seq: int
    machine: str
    folder: str
    state: str  # as the machine, or the desk, says
    record: PromptRecord
    raised_at: float  # on the wall
    agreed: tuple[str, ...] = ()
    last_key_at: float | None = None  # on the wall
    readers: frozenset[str] = frozenset()  # who may see it, of those who are in a chat
    deciding: str = ""  # whose answer its machine has not said anything about

    @property
    def chat_id(self) -> str:
        return self.record.prompt_id


def chat_id(key: Key, own: bool = True) -> str:
    """The beginning is the machine's own, so that what a chat shows can be typed there; the rest nobody can forge."""
    digest = hashlib.sha256("\0".join(key).encode()).hexdigest()
    first = key[1][:8].lower()
    text = (first if own and _HEX.fullmatch(first) else digest[:8]) + digest[8:32]
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def nonce_of(secret: str, key: Key) -> str:
    """The same in every desk process, and after a restart."""
    return hmac.digest(secret.encode(), "\0".join(("nonce", *key)).encode(), "sha256").hex()[:32]


def read_asked(row: Mapping[str, Any], secret: str, clock: Clock) -> Asked:
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
        decided_by=str(body.get("decided_by", "")),
        decided_at=str(body.get("decided_at", "")),
        decided_value=str(body.get("decided_value", "")),
        decided_from=str(body.get("decided_from", "")),
    )
    return Asked(
        key,
        int(row["seq"]),
        str(row["machine"]),
        str(row["folder"]),
        str(row["state"]),
        record,
        raised,
        tuple(str(name) for name in body.get("agreed") or ()),
        _wall(row["last_key_at"]) or None,
    )


def read_state(state: str) -> PromptState:
    """What this version does not know has ended, so far as a chat is concerned."""
    try:
        return PromptState(state)
    except ValueError:
        return PromptState.WITHDRAWN


def read_prompt(body: Mapping[str, Any]) -> Prompt:
    """Whatever a machine told: what makes no sense is left out, and never taken for more than text."""
    return Prompt(
        _type(body.get("type")),
        SCORES.get(str(body.get("confidence")), 0.5),
        str(body.get("excerpt", "")),
        str(body.get("screen", "")),
        tuple(_choice(one) for one in _list(body.get("choices")) if isinstance(one, dict)),
        dict(body.get("constraints") or {}),
        tuple(_evidence(one) for one in _list(body.get("evidence")) if isinstance(one, dict)),
        str(body.get("safe_default", "")),
        subject=_subject(body.get("subject")),
        question=str(body.get("question", "")),
        whole=body.get("whole") is not False,
        says=str(body.get("says", "")),
    )


def _subject(told: Any) -> Any:
    """What may be shown of it is all that came."""
    found = told_subject(told)
    return None if found is None else replace(found, shown=found.text)


def _type(told: Any) -> PromptType:
    try:
        return PromptType(str(told))
    except ValueError:
        return PromptType.TYPE_UNKNOWN


def _choice(told: Mapping[str, Any]) -> Choice:
    return Choice(
        str(told.get("value", "")),
        str(told.get("label", "")),
        refuses=told.get("refuses") is True,
        always=told.get("always") is True,
        default=told.get("default") is True,
        detail=str(told.get("detail", "")),
    )


def _evidence(told: Mapping[str, Any]) -> Evidence:
    score = told.get("score")
    number = float(score) if isinstance(score, int | float) else 0.0
    return Evidence(str(told.get("signal", "")), number, str(told.get("detail", "")))


def read_session(row: Mapping[str, Any]) -> SessionRecord:
    body, key = row["body"], (str(row["machine_id"]), str(row["session_id"]))
    return SessionRecord(
        chat_id(key),
        str(body.get("tool", "")),
        tuple(str(word) for word in _list(body.get("command"))),
        str(body.get("cwd", "")),
        0,
        0,
        str(body.get("started_at", "")),
        _session_state(str(row["state"])),
        label=str(body.get("label", "")),
        machine=str(row["machine"]),
    )


def _session_state(state: str) -> SessionState:
    try:
        return SessionState(state)
    except ValueError:
        return SessionState.TERMINATED


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _wall(moment: datetime | None) -> float:
    return moment.timestamp() if moment is not None else 0.0
