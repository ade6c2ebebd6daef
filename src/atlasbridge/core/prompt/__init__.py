"""What a prompt is, how it lives, what answers it, and who may.  All of it is pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from atlasbridge.core.prompt.model import Confidence, PromptType
    from atlasbridge.core.prompt.written_event import PromptEvent

_PLACES = {
    "Confidence": ("atlasbridge.core.prompt.model", "Confidence"),
    "PromptEvent": ("atlasbridge.core.prompt.written_event", "PromptEvent"),
    "PromptType": ("atlasbridge.core.prompt.model", "PromptType"),
}

__all__ = ["Confidence", "PromptEvent", "PromptType"]


def __getattr__(name: str) -> object:
    """What the architecture document has here, imported by those who ask for it alone."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _PLACES[name]
    return getattr(import_module(module), attribute)
