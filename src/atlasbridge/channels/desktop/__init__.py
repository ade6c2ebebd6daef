"""Desktop notifications on this machine. They cannot be answered."""

from __future__ import annotations

from atlasbridge.core.lazy_exports import offered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from atlasbridge.channels.desktop.channel import DesktopChannel

__all__ = ["DesktopChannel"]

__getattr__ = offered(__name__, DesktopChannel="atlasbridge.channels.desktop.channel")
