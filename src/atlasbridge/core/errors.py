"""The exceptions of AtlasBridge. Mistakes of a person are values (`Reject`), never exceptions.

AtlasBridgeError            the base class: a message and a hint
├── ConfigError             the configuration is invalid
├── DialectError            a detection rule file is invalid
├── StoreError              the database cannot be opened, migrated or written
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


class HubUnavailable(AtlasBridgeError):
    pass


class ChannelError(AtlasBridgeError):
    pass


class AdapterError(AtlasBridgeError):
    pass


def first_of(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error of a task group, however deep it is nested."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
