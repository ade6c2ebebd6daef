"""A session's types: its record, its plan and its settings."""

from __future__ import annotations

from atlasbridge.core.fast_imports import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from atlasbridge.core.session.written_session import Session

__all__ = ["Session"]

__getattr__ = lazy_exports(__name__, Session="atlasbridge.core.session.written_session")
