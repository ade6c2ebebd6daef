"""Faults of the world, as one small tree.  A person's faults are values (`Reject`), never exceptions.

AtlasBridgeError            what went wrong, and what to do about it
├── ConfigError             a configuration that must not be used
├── DialectError            a detection rule file that must not be used
├── StoreError              the database cannot be opened, migrated or written
├── IllegalTransition       a prompt may not move that way; nothing was changed
├── HubUnavailable          no hub answers on its socket
├── ChannelError            a channel cannot reach its service
└── AdapterError            see adapters/base.py
"""

from __future__ import annotations


class AtlasBridgeError(Exception):
    """`str(error)` says what is wrong; `hint` says what to do."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class ConfigError(AtlasBridgeError):
    exit_code = 2


class DialectError(AtlasBridgeError):
    exit_code = 2


class StoreError(AtlasBridgeError):
    pass


class IllegalTransition(AtlasBridgeError):
    pass


class HubUnavailable(AtlasBridgeError):
    pass


class ChannelError(AtlasBridgeError):
    pass


class AdapterError(AtlasBridgeError):
    pass
