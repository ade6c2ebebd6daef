"""ptypool: a pool of pseudo-terminals for asyncio, and the synchronous primitives below it.

`import ptypool` alone imports neither asyncio nor Unix-only modules: they are loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ptypool.errors import (
    AtCapacity,
    CommandTimeout,
    HandleNotFound,
    PtyError,
    PtyInternalError,
    PtyIoError,
    SpawnFailed,
)
from ptypool.termination import terminate_group

if TYPE_CHECKING:
    from ptypool.handle import PtyHandle
    from ptypool.pool import PtyPool
    from ptypool.process import SpawnedProcess, spawn_process
    from ptypool.session import CommandResult, Session

_LAZY = {
    "CommandResult": "ptypool.session",
    "PtyHandle": "ptypool.handle",
    "PtyPool": "ptypool.pool",
    "Session": "ptypool.session",
    "SpawnedProcess": "ptypool.process",
    "spawn_process": "ptypool.process",
}

__all__ = [
    "AtCapacity",
    "CommandResult",
    "CommandTimeout",
    "HandleNotFound",
    "PtyError",
    "PtyHandle",
    "PtyInternalError",
    "PtyIoError",
    "PtyPool",
    "Session",
    "SpawnFailed",
    "SpawnedProcess",
    "spawn_process",
    "terminate_group",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LAZY[name]), name)
