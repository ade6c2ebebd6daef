"""Who is asked, where, when again, and what came back."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from atlasbridge.core.routing.router import PromptRouter

_PLACES = {
    "PromptRouter": ("atlasbridge.core.routing.router", "PromptRouter"),
}

__all__ = ["PromptRouter"]


def __getattr__(name: str) -> object:
    """What the architecture document has here, imported by those who ask for it alone."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _PLACES[name]
    return getattr(import_module(module), attribute)
