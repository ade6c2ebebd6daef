"""A session's attach socket under a flood: descriptors that nobody takes, and callers without end."""

from __future__ import annotations

import os
import select
import socket
from pathlib import Path

from atlasbridge.core.host.attachment import AttachSocket, Caller

_SEEN = Path("/proc/self/fd") if Path("/proc/self/fd").exists() else Path("/dev/fd")


def held() -> int:
    return len(list(_SEEN.iterdir()))


def test_descriptors_that_are_sent_without_end_do_not_pile_up() -> None:
    ours, theirs = socket.socketpair()
    caller = Caller(ours)
    with theirs, open(os.devnull, "rb") as null:
        before = held()
        for _ in range(50):
            socket.send_fds(theirs, [b'{"m": "nothing"}\n'], [null.fileno()] * 4)
            assert caller.read() == [{"m": "nothing"}]
        assert held() <= before + 4
        caller.close()
        assert held() < before


def test_callers_without_end_are_turned_away_and_those_inside_stay(tmp_path: Path) -> None:
    path = Path(os.path.relpath(tmp_path / "d"))
    attach_socket = AttachSocket({"m": "hello"})
    attach_socket.open(path)
    callers = []
    try:
        for _ in range(200):
            callers.append(socket.socket(socket.AF_UNIX))
            callers[-1].connect(str(path))
            waiter = select.poll()
            attach_socket.register(waiter)
            list(attach_socket.serve([fd for fd, _ in waiter.poll(1000)]))
        heard = [caller.recv(100) for caller in callers]
        inside = [words for words in heard if words]
        assert inside == [b'{"m":"hello"}\n'] * len(inside) and 10 < len(inside) < 100
        assert heard[: len(inside)] == inside
    finally:
        attach_socket.close()
        for caller in callers:
            caller.close()
