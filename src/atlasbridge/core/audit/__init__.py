"""The tamper-evident audit log: its events, its hash chain and its file."""

from __future__ import annotations

from atlasbridge.core.lazy_exports import offered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from atlasbridge.core.audit.log import AuditWriter, verify_chain

__all__ = ["AuditWriter", "verify_chain"]

__getattr__ = offered(__name__, AuditWriter="atlasbridge.core.audit.log", verify_chain="atlasbridge.core.audit.log")
