"""What the commands about a desk of many machines have in common: its parts may be missing, the hub may be away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from atlasbridge.core.daemon.request import HubClient
from atlasbridge.core.distribution import install_line
from atlasbridge.core.errors import ConfigError, HubUnavailable
from atlasbridge.core.home import Home


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Around imports of what only this extra brings."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise ConfigError(f"this needs {missing.name}", install_line(extra)) from None


def refuse_tools(home: Home) -> None:
    """Who may change the hub may make it listen to a desk; a program inside a session may not."""
    from atlasbridge.core.daemon.starter import ensure_hub

    ensure_hub(home)
    with HubClient(home) as hub:
        hub.ask("reload")


def tell_hub(home: Home) -> None:
    """A hub that runs takes it over at once; the next one finds it."""
    try:
        with HubClient(home) as hub:
            hub.ask("reload")
    except HubUnavailable:
        pass
