"""A session's types: its record, its plan and its settings."""

from __future__ import annotations

from atlasbridge.core.lazy_exports import offered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from atlasbridge.core.session.written_session import Session

__all__ = ["Session"]

__getattr__ = offered(__name__, Session="atlasbridge.core.session.written_session")
