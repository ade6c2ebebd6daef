"""The tamper-evident audit log: its events, its hash chain and its file."""

from __future__ import annotations

from atlasbridge.core.fast_imports import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from atlasbridge.core.audit.log import AuditWriter, verify_chain

__all__ = ["AuditWriter", "verify_chain"]

__getattr__ = lazy_exports(
    __name__, AuditWriter="atlasbridge.core.audit.log", verify_chain="atlasbridge.core.audit.log"
)
