"""The errors of ptypool: what went wrong, and what the caller can do about it.

PtyError
 ├── AtCapacity        all slots of the pool are in use
 ├── HandleNotFound    the pool has no such handle, or no longer has it
 ├── SpawnFailed       the program could not be started
 ├── PtyIoError        reading from or writing to a child failed
 ├── CommandTimeout    a session's command did not end in time (also a TimeoutError)
 └── PtyInternalError  the pool cannot be used in this state or process
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:
    from uuid import UUID  # slow to import

SpawnStage = Literal["program", "cwd", "terminal", "fork"]

_SPAWN_ADVICE: dict[SpawnStage, str] = {
    "program": "Check the program's name, PATH, its execute permission and its #! line.",
    "cwd": "Check that the working directory exists and that you may enter it.",
    "terminal": "Check the limits on open files and on pseudo-terminals, or close some handles.",
    "fork": "Check the limits on processes and memory.",
}


class PtyError(Exception):
    """Base class of all errors of this package; `advice` says what to do."""

    advice: ClassVar[str] = ""

    # `except PtyError.AtCapacity as full`, as the specification writes `PtyError::AtCapacity`.
    AtCapacity: ClassVar[type[_AtCapacity]]
    HandleNotFound: ClassVar[type[_HandleNotFound]]
    SpawnFailed: ClassVar[type[_SpawnFailed]]
    Io: ClassVar[type[PtyIoError]]
    Internal: ClassVar[type[PtyInternalError]]

    def what(self) -> str:
        return Exception.__str__(self)

    def what_to_do(self) -> str:
        return self.advice

    def __str__(self) -> str:
        return f"{self.what()}. {self.what_to_do()}"


class AtCapacity(PtyError):
    advice = "Release or kill a handle, wait with acquire(), or make the pool larger."

    def __init__(self, max: int) -> None:
        super().__init__(max)
        self.max = max

    def what(self) -> str:
        return f"all {self.max} PTYs of the pool are in use"


class HandleNotFound(PtyError):
    advice = "Check the id: the handle may have been released or killed already."

    def __init__(self, id: UUID) -> None:
        super().__init__(id)
        self.id = id

    def what(self) -> str:
        return f"the pool holds no PTY {self.id}"


class SpawnFailed(PtyError):
    """The program was not started; `stage` tells a bad program from a bad working directory."""

    def __init__(self, reason: str, errno: int | None = None, stage: SpawnStage = "program") -> None:
        super().__init__(reason, errno, stage)
        self.reason = reason
        self.errno = errno
        self.stage: SpawnStage = stage

    def what(self) -> str:
        return self.reason

    def what_to_do(self) -> str:
        return _SPAWN_ADVICE[self.stage]


class PtyIoError(PtyError):
    advice = "Check whether the child is still alive, then retry or release the handle."

    def __init__(self, reason: str, errno: int | None = None, advice: str | None = None) -> None:
        super().__init__(reason, errno, advice)
        self.reason = reason
        self.errno = errno
        self._own_advice = advice

    @classmethod
    def from_os(cls, doing: str, error: OSError) -> PtyIoError:
        return cls(f"{doing}: {os.strerror(error.errno or 0)}", error.errno)

    def what(self) -> str:
        return self.reason

    def what_to_do(self) -> str:
        return self._own_advice or self.advice


class CommandTimeout(PtyError, TimeoutError):
    """The command was stopped; `output` is its output until then."""

    advice = "Allow more time, or start it in the background of the shell."

    def __init__(self, timeout_s: float, output: str) -> None:
        super().__init__(timeout_s, output)
        self.timeout_s = timeout_s
        self.output = output

    def what(self) -> str:
        return f"the command was not over after {self.timeout_s:g} s"


class PtyInternalError(PtyError):
    advice = "Make a new pool in the running event loop of this process."


_AtCapacity = AtCapacity
_HandleNotFound = HandleNotFound
_SpawnFailed = SpawnFailed
PtyError.AtCapacity = AtCapacity
PtyError.HandleNotFound = HandleNotFound
PtyError.SpawnFailed = SpawnFailed
PtyError.Io = PtyIoError
PtyError.Internal = PtyInternalError
