"""Trying an Apprise address for `atlasbridge setup`: is it known, and does a message arrive there."""

from __future__ import annotations

from atlasbridge.channels.tell.channel import services_of
from atlasbridge.core.errors import ChannelError


async def try_address(url: str) -> None:
    """Raises ConfigError for an address that Apprise does not know, ChannelError when nobody took the message."""
    told = "Here you will be told that something waits."
    if not await services_of([url]).async_notify(title="AtlasBridge", body=told):
        raise ChannelError("the service did not take a test message", "try the address with: apprise -vv URL")
