"""A port that is ours alone: which option of the system says so, and how it says that another has it."""

from __future__ import annotations

import errno
import os
import socket

import pytest

from atlasbridge.core.hub_connection import bind_alone, is_taken


def test_a_port_that_another_has_is_taken() -> None:
    with bind_alone("127.0.0.1", 0) as first:
        first.listen()
        with pytest.raises(OSError) as taken:
            bind_alone("127.0.0.1", first.getsockname()[1]).listen()
        assert is_taken(taken.value)


def test_a_port_is_there_again_after_a_restart() -> None:
    with bind_alone("127.0.0.1", 0) as first:
        first.listen()
        port = first.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        served, _ = first.accept()
        served.close()  # the side that closes first leaves the port behind for a while
        client.close()
    with bind_alone("127.0.0.1", port) as second:
        second.listen()


def test_on_windows_nobody_else_may_listen_there_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """There the usual option would let another program take the port over."""
    asked: list[int] = []

    class Socket(socket.socket):
        def setsockopt(self, level: int, option: int, value: object, *rest: int) -> None:
            asked.append(option)

    monkeypatch.setattr(socket, "SO_EXCLUSIVEADDRUSE", -5, raising=False)
    monkeypatch.setattr(socket, "socket", Socket)
    bind_alone("127.0.0.1", 0).close()
    assert asked == [-5]


@pytest.mark.parametrize(("system", "taken"), [("nt", True), ("posix", False)])
def test_denied_means_taken_on_windows_alone(monkeypatch: pytest.MonkeyPatch, system: str, taken: bool) -> None:
    """On Unix it means that the port is one of those that only root may have."""
    denied = PermissionError(errno.EACCES, "denied")
    monkeypatch.setattr(os, "name", system)
    assert is_taken(denied) is taken
