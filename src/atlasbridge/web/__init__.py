"""The web page and the HTTP API, served by the hub itself. Enabled by default, on loopback, without any account."""

from __future__ import annotations

from atlasbridge.core.fast_imports import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from atlasbridge.web.channel import WebChannel

__all__ = ["WebChannel"]

__getattr__ = lazy_exports(__name__, WebChannel="atlasbridge.web.channel")
