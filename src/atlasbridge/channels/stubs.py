"""Channels that reach nobody: `NullChannel` for tests, and the local one, where the architecture document has them."""

from __future__ import annotations

from typing import ClassVar

from atlasbridge.channels.local import LocalChannel

__all__ = ["LocalChannel", "NullChannel"]


class NullChannel(LocalChannel):
    """Takes every prompt and every notice, shows nothing, and never answers."""

    name: ClassVar[str] = "null"
