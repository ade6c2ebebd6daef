"""Routes prompts to channels and replies back: who is notified, where and when."""

from __future__ import annotations

from atlasbridge.core.lazy_exports import offered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from atlasbridge.core.routing.router import PromptRouter

__all__ = ["PromptRouter"]

__getattr__ = offered(__name__, PromptRouter="atlasbridge.core.routing.router")
