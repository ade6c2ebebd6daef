"""The names of the audit events: those of the specification, and those that this implementation adds.

`EVENT_OF_MOVE` maps each transition of a prompt to its event. The store writes the entries. The comments are the text
of docs/reference/audit-events.md.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from atlasbridge.core.prompt.machine import PromptMoved


class AuditEvent(StrEnum):
    SESSION_START = "SESSION_START"  # `run` has spawned the tool
    SESSION_RESUMED = "SESSION_RESUMED"  # a session taken for dead has reported again
    SESSION_LAUNCHED = "SESSION_LAUNCHED"  # a person started a configured session remotely
    SESSION_STOPPED = "SESSION_STOPPED"  # a person told a session to end, remotely
    SESSION_RENAMED = "SESSION_RENAMED"  # a person gave it another name
    SESSION_END = "SESSION_END"  # the tool has ended, or its host has died
    PROMPT_DETECTED = "PROMPT_DETECTED"  # the detector has raised a prompt
    PROMPT_ROUTED = "PROMPT_ROUTED"  # handed to the channels
    PROMPT_DELIVERED = "PROMPT_DELIVERED"  # a channel has shown it
    REPLY_RECEIVED = "REPLY_RECEIVED"  # a valid reply was claimed; nothing is typed before this is committed
    REPLY_REFUSED = "REPLY_REFUSED"  # a reply was turned away
    SELF_REFUSED = "SELF_REFUSED"  # a session's own program tried to decide: to answer, to log in, to change the hub
    REPLY_INJECTED = "REPLY_INJECTED"  # the keys were typed
    REPLY_POSTPONED = "REPLY_POSTPONED"  # a person gave an answer for a later moment; it is decided then
    REPLY_REVOKED = "REPLY_REVOKED"  # an answer for later came to nothing: taken back, overtaken, refused
    PROMPT_SNOOZED = "PROMPT_SNOOZED"  # a person wants to be asked again in a while
    INSTRUCTION_QUEUED = "INSTRUCTION_QUEUED"  # a person gave an instruction for the session's next idle input box
    INSTRUCTION_DROPPED = "INSTRUCTION_DROPPED"  # it came to nothing: taken back, refused, or the session has ended
    FILE_SENT = "FILE_SENT"  # a person had a file of the session's folder sent into a chat
    FILE_RECEIVED = "FILE_RECEIVED"  # a person put a file into the session's folder, from a chat
    VOTE_CAST = "VOTE_CAST"  # one of several people who must agree has agreed
    VOTE_DROPPED = "VOTE_DROPPED"  # who had agreed is not let in any more: it does not count
    PROMPT_RESOLVED = "PROMPT_RESOLVED"  # the prompt left the screen after the reply
    PROMPT_EXPIRED = "PROMPT_EXPIRED"  # its time was over
    PROMPT_WITHDRAWN = "PROMPT_WITHDRAWN"  # the tool moved on, or it was answered at the terminal
    PROMPT_CANCELED = "PROMPT_CANCELED"  # a person said: leave it alone
    PROMPT_FAILED = "PROMPT_FAILED"  # it cannot be answered any more
    AUDIT_REPAIRED = "AUDIT_REPAIRED"  # audit.log was torn, cut or lost, and was made whole from the table
    AUDIT_ADOPTED = "AUDIT_ADOPTED"  # the store was lost; it took over audit.log's entries
    AUDIT_CUT = "AUDIT_CUT"  # the log was longer once: audit.head knows entries that neither store nor log has
    HUB_START = "HUB_START"  # the hub has opened the store
    SOCKET_TAKEN = "SOCKET_TAKEN"  # another program was in the place of the hub's socket
    TYPED_UNASKED = "TYPED_UNASKED"  # a session typed something that no decision of this hub explains
    HUB_STOP = "HUB_STOP"  # the hub ends in an orderly way
    CONFIG_RELOADED = "CONFIG_RELOADED"  # the configuration was read again and taken over
    GRANT_ADDED = "GRANT_ADDED"  # a person allowed a shape of question for a while
    GRANT_REVOKED = "GRANT_REVOKED"  # and took it back
    POLICY_TRUSTED = "POLICY_TRUSTED"  # a person trusted the rules that a project brings along, by their digest
    KEYS_TYPED = "KEYS_TYPED"  # by a person through a channel, outside any prompt
    CHANNEL_STRANGER = "CHANNEL_STRANGER"  # somebody who is not allowed wrote to a channel; once for each
    CHANNEL_CONFLICT = "CHANNEL_CONFLICT"  # another program listens with the same token
    CHANNEL_RATE_LIMITED = "CHANNEL_RATE_LIMITED"  # too many replies in a minute for one session
    CHANNEL_UNAUTHORIZED = "CHANNEL_UNAUTHORIZED"  # the service no longer takes the token
    WEB_LOGIN = "WEB_LOGIN"  # a browser was let in, by a link or the password
    WEB_LOGOUT = "WEB_LOGOUT"  # one browser's login was ended, by itself, by a person, or by its time
    WEB_RENAMED = "WEB_RENAMED"  # a browser got another name
    WEB_PORT_TAKEN = "WEB_PORT_TAKEN"  # another program listens where the page should be
    WEB_LOGOUT_ALL = "WEB_LOGOUT_ALL"  # every browser's login was ended
    WEB_TYPING = "WEB_TYPING"  # typing into a session remotely was switched on or off
    TOKEN_CREATED = "TOKEN_CREATED"  # a token for the HTTP API; its secret is nowhere kept
    TOKEN_REVOKED = "TOKEN_REVOKED"  # a token of the HTTP API was made worthless
    PASSKEY_ADDED = "PASSKEY_ADDED"  # a person enrolled a key with which they agree
    PASSKEY_REMOVED = "PASSKEY_REMOVED"  # a lost or old one: it agrees to nothing any more
    FLEET_JOINED = "FLEET_JOINED"  # this machine belongs to a fleet server from now on
    FLEET_LEFT = "FLEET_LEFT"  # and does not any more: it left, or was sent away
    FLEET_TOLD_AGAIN = "FLEET_TOLD_AGAIN"  # this store or the fleet server's went back: what is open was told again
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
