"""The names of the audit events: those of the specification, and those that this implementation adds.

`EVENT_OF_MOVE` maps each transition of a prompt to its event. The store writes the entries. The comments are the text
of docs/reference/audit-events.md.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from atlasbridge.core.prompt.model import PromptMoved


class AuditEvent(StrEnum):
    SESSION_START = "SESSION_START"  # `run` has started the tool
    SESSION_RESUMED = "SESSION_RESUMED"  # a session that seemed dead has reported again
    SESSION_LAUNCHED = "SESSION_LAUNCHED"  # a person started a configured session remotely
    SESSION_STOPPED = "SESSION_STOPPED"  # a person ended a session remotely
    SESSION_RENAMED = "SESSION_RENAMED"  # a person renamed the session
    SESSION_END = "SESSION_END"  # the tool has ended, or its host has died
    PROMPT_DETECTED = "PROMPT_DETECTED"  # the detector has raised a prompt
    PROMPT_ROUTED = "PROMPT_ROUTED"  # the hub has handed the prompt to its channels
    PROMPT_DELIVERED = "PROMPT_DELIVERED"  # a channel has shown the prompt
    REPLY_RECEIVED = "REPLY_RECEIVED"  # a valid reply was claimed; nothing is typed before this is committed
    REPLY_REFUSED = "REPLY_REFUSED"  # the hub refused a reply
    SELF_REFUSED = "SELF_REFUSED"  # a program inside a session tried to answer, log in or change the hub
    REPLY_INJECTED = "REPLY_INJECTED"  # the session host typed the keys
    REPLY_POSTPONED = "REPLY_POSTPONED"  # a person scheduled an answer; the hub decides at that time
    REPLY_REVOKED = "REPLY_REVOKED"  # a scheduled answer was removed, superseded or refused
    PROMPT_SNOOZED = "PROMPT_SNOOZED"  # a person snoozed the prompt
    INSTRUCTION_QUEUED = "INSTRUCTION_QUEUED"  # a person queued an instruction for the session's next idle input box
    INSTRUCTION_DROPPED = "INSTRUCTION_DROPPED"  # a queued instruction was removed or refused, or its session ended
    FILE_SENT = "FILE_SENT"  # a person requested a file of the session's folder, and the chat received it
    FILE_RECEIVED = "FILE_RECEIVED"  # a person put a file into the session's folder, from a chat
    VOTE_CAST = "VOTE_CAST"  # one of several people approved
    VOTE_DROPPED = "VOTE_DROPPED"  # a vote no longer counts, because its person lost access
    PROMPT_RESOLVED = "PROMPT_RESOLVED"  # the prompt left the screen after the reply
    PROMPT_EXPIRED = "PROMPT_EXPIRED"  # no answer arrived in time
    PROMPT_WITHDRAWN = "PROMPT_WITHDRAWN"  # the tool moved on, or it was answered at the terminal
    PROMPT_CANCELED = "PROMPT_CANCELED"  # a person left it alone
    PROMPT_FAILED = "PROMPT_FAILED"  # the prompt can no longer be answered
    AUDIT_REPAIRED = "AUDIT_REPAIRED"  # audit.log was damaged or lost, and was restored from the table
    AUDIT_ADOPTED = "AUDIT_ADOPTED"  # the store was lost; it took over audit.log's entries
    AUDIT_CUT = "AUDIT_CUT"  # entries are missing: audit.head is ahead of both store and log
    HUB_START = "HUB_START"  # the hub has opened the store
    SOCKET_TAKEN = "SOCKET_TAKEN"  # another program replaced the hub's socket
    TYPED_UNASKED = "TYPED_UNASKED"  # a session typed something without a decision of this hub
    HUB_STOP = "HUB_STOP"  # the hub shuts down normally
    CONFIG_RELOADED = "CONFIG_RELOADED"  # the hub read and applied the configuration again
    GRANT_ADDED = "GRANT_ADDED"  # a person allowed similar requests for a while
    GRANT_REVOKED = "GRANT_REVOKED"  # a person revoked a grant
    POLICY_TRUSTED = "POLICY_TRUSTED"  # a person trusted a project's own rules, by their digest
    KEYS_TYPED = "KEYS_TYPED"  # a person typed keys through a channel, outside any prompt
    CHANNEL_STRANGER = "CHANNEL_STRANGER"  # a person without permission wrote to a channel; logged once for each
    CHANNEL_CONFLICT = "CHANNEL_CONFLICT"  # another program listens with the same token
    CHANNEL_RATE_LIMITED = "CHANNEL_RATE_LIMITED"  # too many replies in a minute for one session
    CHANNEL_UNAUTHORIZED = "CHANNEL_UNAUTHORIZED"  # the service no longer accepts the token
    WEB_LOGIN = "WEB_LOGIN"  # a browser logged in, by a link or the password
    WEB_LOGOUT = "WEB_LOGOUT"  # a browser was logged out by its person, by another person or by expiry
    WEB_RENAMED = "WEB_RENAMED"  # a browser was renamed
    WEB_PORT_TAKEN = "WEB_PORT_TAKEN"  # another program listens where the page should be
    WEB_LOGOUT_ALL = "WEB_LOGOUT_ALL"  # every browser was logged out
    WEB_TYPING = "WEB_TYPING"  # typing into a session remotely was switched on or off
    TOKEN_CREATED = "TOKEN_CREATED"  # a person created a token for the HTTP API; its secret is not stored
    TOKEN_REVOKED = "TOKEN_REVOKED"  # a person revoked a token of the HTTP API
    PASSKEY_ADDED = "PASSKEY_ADDED"  # a person enrolled a passkey that signs approvals
    PASSKEY_REMOVED = "PASSKEY_REMOVED"  # a person removed a passkey; it can no longer approve
    FLEET_JOINED = "FLEET_JOINED"  # this machine joined a fleet server
    FLEET_LEFT = "FLEET_LEFT"  # this machine left its fleet server, or was removed from it
    FLEET_TOLD_AGAIN = "FLEET_TOLD_AGAIN"  # a store was restored: the hub sent all open prompts to the fleet again
    STORE_CLEANED = "STORE_CLEANED"  # retention removed old prompts and sessions


EVENT_OF_MOVE: Final[dict[PromptMoved, AuditEvent]] = {
    PromptMoved.ROUTE: AuditEvent.PROMPT_ROUTED,
    PromptMoved.DELIVER: AuditEvent.PROMPT_DELIVERED,
    PromptMoved.ACCEPT: AuditEvent.REPLY_RECEIVED,
    PromptMoved.INJECT: AuditEvent.REPLY_INJECTED,
    PromptMoved.RESOLVE: AuditEvent.PROMPT_RESOLVED,
    PromptMoved.EXPIRE: AuditEvent.PROMPT_EXPIRED,
    PromptMoved.WITHDRAW: AuditEvent.PROMPT_WITHDRAWN,
    PromptMoved.CANCEL: AuditEvent.PROMPT_CANCELED,
    PromptMoved.FAIL: AuditEvent.PROMPT_FAILED,
}
