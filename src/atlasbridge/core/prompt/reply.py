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
    kin: str = ""  # the session whose own program sends this, so far as the kernel knows; "": a person
    place: str = ""  # the device or chat it came from, in words; "": the channel says it all
    request_key: str = ""  # of the sender's choice: the same key again gets the first outcome and does nothing more
    token: Any = None  # whatever the channel needs to answer this very reply
    context: Mapping[str, Any] = field(default_factory=dict)


@frozen
class Receipt:
    """What became of a prompt or a reply, for the person: stage is "received", "typed", "taken", "still_there",
    "withdrawn", "expired", "default_typed", "canceled", "failed", "answered_elsewhere", "reminder",
    "voted" (others must agree, too), "postponed", "snoozed", "revoked" (something for later; it is still open)."""

    stage: str
    sentence: str
    by: str = ""
    answer: str = ""  # which answer, in the words of its choice; never a secret's value
    place: str = ""  # the device or chat it came from
    at: str = ""  # when it was decided
    audit_head: str = ""  # "COUNT:HASH" of the audit log at this moment: a chat that keeps it anchors the log
