"""Desktop notifications on this machine. They cannot be answered."""

from __future__ import annotations

from atlasbridge.core.fast_imports import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from atlasbridge.channels.desktop.channel import DesktopChannel

__all__ = ["DesktopChannel"]

__getattr__ = lazy_exports(__name__, DesktopChannel="atlasbridge.channels.desktop.channel")
