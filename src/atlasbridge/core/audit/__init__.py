"""The log that shows when somebody changed it: its events, its chain, its file."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from atlasbridge.core.audit.log import AuditFile as AuditWriter
    from atlasbridge.core.audit.log import verify_chain

_PLACES = {
    "AuditWriter": ("atlasbridge.core.audit.log", "AuditFile"),
    "verify_chain": ("atlasbridge.core.audit.log", "verify_chain"),
}

__all__ = ["AuditWriter", "verify_chain"]


def __getattr__(name: str) -> object:
    """What the architecture document has here, imported by those who ask for it alone."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _PLACES[name]
    return getattr(import_module(module), attribute)
