"""A reply as a channel received it, and what its sender is told.  Whether it counts is decided by `gate`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atlasbridge.core.values import field, frozen


@frozen
class InboundReply:
    """What a channel received.  The channel has checked nothing but that it could read it; the gate decides.

    `prompt_id` may be the short form (8 hexadecimal characters).  `nonce` and `session_id` are "" where the medium does
    not carry them (a text reply matched by its thread); then the channel must have found the prompt by its own message.
    """

    channel: str  # "telegram", "slack", "web", "local", ...
    identity: str  # "telegram:123456789", "slack:T1/U2", "web:alice", "cli:local"
    prompt_id: str
    value: str  # "y", "n", "enter", a choice's value or label, "default", "cancel", or text
    session_id: str = ""
    nonce: str = ""
    as_text: bool = False  # never read the value as a choice
    as_keys: bool = False  # type the keys as they are: local channel only
    token: Any = None  # whatever the channel needs to answer this very reply
    context: Mapping[str, Any] = field(default_factory=dict)


@frozen
class Receipt:
    """What became of a prompt or a reply, for the person: stage is "received", "typed", "taken", "still_there",
    "withdrawn", "expired", "default_typed", "canceled", "failed", "answered_elsewhere", "reminder"."""

    stage: str
    sentence: str
    by: str = ""
