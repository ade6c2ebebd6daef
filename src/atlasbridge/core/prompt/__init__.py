"""Prompts: their model, their life cycle, how they are answered, and who is allowed to answer. All of it is pure."""

from __future__ import annotations

from atlasbridge.core.fast_imports import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from atlasbridge.core.prompt.model import Confidence, PromptType
    from atlasbridge.core.prompt.written_event import PromptEvent

__all__ = ["Confidence", "PromptEvent", "PromptType"]

__getattr__ = lazy_exports(
    __name__,
    Confidence="atlasbridge.core.prompt.model",
    PromptEvent="atlasbridge.core.prompt.written_event",
    PromptType="atlasbridge.core.prompt.model",
)
