"""Coming to a hub before whose door many stand: who waits gets in, and nobody is told that no hub is there."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from atlasbridge.core.daemon.request import connect
from atlasbridge.core.errors import HubUnavailable
from atlasbridge.core.home import Home


@pytest.fixture
def crowded(tmp_path: Path) -> Iterator[tuple[Home, socket.socket]]:
    """A hub that accepts nobody yet, and whose queue is full."""
    home = Home(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as first:
        listener.bind(str(home.socket))
        listener.listen(0)
        first.connect(str(home.socket))
        yield home, listener


def test_who_comes_when_the_queue_is_full_waits(crowded: tuple[Home, socket.socket]) -> None:
    home, listener = crowded
    accepted = threading.Timer(0.2, lambda: [listener.accept()[0].close() for _ in range(2)])
    accepted.start()
    with connect(home, timeout_s=20) as link:
        assert link.gettimeout() == 20
    accepted.join()


def test_who_waits_too_long_hears_that_it_does_not_answer(crowded: tuple[Home, socket.socket]) -> None:
    home, _ = crowded
    with pytest.raises(HubUnavailable, match="does not answer"):
        connect(home, timeout_s=0.1)


def test_where_no_hub_is_it_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(HubUnavailable, match="not running"):
        connect(Home(tmp_path), timeout_s=20)
