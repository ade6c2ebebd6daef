"""The operator's page and the HTTP API, served by the hub itself.  On by default, on loopback, without any account."""

from atlasbridge.channels.web.channel import WebChannel

__all__ = ["WebChannel"]
