"""Connecting to a hub with a full queue: a client that waits is served, and none is told that there is no hub."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from atlasbridge.core.daemon.request import HubClient, connect
from atlasbridge.core.errors import AtlasBridgeError, HubUnavailable
from atlasbridge.core.home import Home
from atlasbridge.core.wire import encode


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


@pytest.fixture
def met(tmp_path: Path) -> Iterator[tuple[HubClient, socket.socket]]:
    """A client that has just come to a hub, and the hub's end of its connection."""
    home = Home(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(home.socket))
        listener.listen()
        with HubClient(home) as client, listener.accept()[0] as theirs:
            yield client, theirs


def test_a_hub_that_ends_before_it_is_asked_tells_no_event(met: tuple[HubClient, socket.socket]) -> None:
    client, theirs = met
    theirs.close()
    assert list(client.stream("events", follow=True)) == []


def test_a_refusal_is_no_event(met: tuple[HubClient, socket.socket]) -> None:
    client, theirs = met
    theirs.sendall(encode({"ok": False, "reason": "self", "message": "this is inside a session"}))
    with pytest.raises(AtlasBridgeError, match="inside a session"):
        list(client.stream("events", follow=True))
