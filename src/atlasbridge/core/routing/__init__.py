"""Routes prompts to channels and replies back: who is notified, where and when."""

from __future__ import annotations

from atlasbridge.core.fast_imports import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from atlasbridge.core.routing.router import PromptRouter

__all__ = ["PromptRouter"]

__getattr__ = lazy_exports(__name__, PromptRouter="atlasbridge.core.routing.router")
