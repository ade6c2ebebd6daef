"""The attach port of a session on a console: who is let in, who speaks for the tool, and a console that is slow."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import DEADLINE_S, wait_for

from atlasbridge.core import wire
from atlasbridge.core.host.relay import DetachKey
from atlasbridge.core.hub_connection import HOST, Pass, Stranger, connect_loopback, new_key, pass_file, read_pass
from atlasbridge.core.peer import Peer, own_uid
from atlasbridge.core.tty import Size
from atlasbridge.os.windows.attach_port import AttachPort, PortCaller, is_inside, is_inside_session
from atlasbridge.os.windows.session import Viewer


class Session:
    """A session with an attach port: it notes what it hears."""

    def __init__(self, path: Path, uid: int | None = None) -> None:
        self.heard: list[dict[str, Any]] = []
        self.left = threading.Event()
        self.peers: list[Peer] = []
        self.attach_socket = AttachPort(
            {"m": "started"},
            lambda *_: Peer(os.getpid(), own_uid() if uid is None else uid),
            self._hear,
            lambda _: self.left.set(),
        )
        self.attach_socket.open(path)
        self.file = pass_file(path)

    def _hear(self, caller: PortCaller, message: dict[str, Any]) -> None:
        self.heard.append(message)
        self.peers.append(caller.peer)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    made = Session(tmp_path / "01234567.sock")
    yield made
    made.attach_socket.close()


def test_who_has_the_key_comes_in_is_greeted_and_heard(session: Session) -> None:
    issued = read_pass(session.file)
    assert issued is not None and session.file.stat().st_mode & 0o077 == 0
    with connect_loopback(issued, 5.0) as link:
        lines = link.makefile("rb")
        assert wire.decode(lines.readline()) == {"m": "started"}
        link.sendall(wire.encode({"m": "size", "rows": 5}))
        wait_for(lambda: session.heard, "its word")
        session.attach_socket.tell_all({"m": "ended"})
        assert wire.decode(lines.readline()) == {"m": "ended"}
        lines.close()
    assert session.left.wait()
    session.attach_socket.close()
    assert not session.file.exists()
    with pytest.raises(OSError):
        socket.create_connection((HOST, issued.port), 5.0)


def test_who_does_not_have_it_is_not_greeted(session: Session) -> None:
    issued = read_pass(session.file)
    assert issued is not None
    with pytest.raises(Stranger):
        connect_loopback(Pass(issued.port, new_key()), 5.0)
    with socket.create_connection((HOST, issued.port), 5.0) as link:
        link.sendall(b"x" * 64)
        challenge = b""
        while data := link.recv(4096):
            challenge += data
    assert len(challenge) == 64 and not session.heard  # the session's proof, and nothing behind it


def test_another_users_process_is_nobody(tmp_path: Path) -> None:
    session = Session(tmp_path / "01234567.sock", uid=own_uid() + 1)
    issued = read_pass(session.file)
    assert issued is not None
    with connect_loopback(issued, 5.0) as link:
        link.sendall(wire.encode({"m": "attach"}))
        wait_for(lambda: session.peers, "its word")
    assert session.peers[0].pid == 0, "and so it decides nothing"
    session.attach_socket.close()


def test_words_that_are_none_of_ours_end_the_connection(session: Session) -> None:
    issued = read_pass(session.file)
    assert issued is not None
    with connect_loopback(issued, 5.0) as link:
        link.sendall(b"GET / HTTP/1.1\r\n\r\n")
        while link.recv(4096):
            pass
    assert session.left.wait() and not session.heard


@pytest.mark.skipif(sys.platform == "win32", reason="plays Windows on Unix")
def test_only_what_the_tool_started_speaks_for_it_whoever_started_the_session() -> None:
    tool = subprocess.Popen(["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE, text=True)
    assert tool.stdout is not None
    child = int(tool.stdout.readline())
    try:
        for pid in (tool.pid, child):
            assert is_inside(Peer(pid, own_uid()), tool.pid)
        for pid in (os.getpid(), os.getppid(), 0):
            assert not is_inside(Peer(pid, own_uid()), tool.pid)
    finally:
        os.kill(child, 9)
        tool.kill()
        tool.wait()
        tool.stdout.close()


@pytest.mark.skipif(sys.platform == "win32", reason="plays Windows on Unix")
def test_who_cannot_be_followed_or_comes_from_a_session_is_no_person(tmp_path: Path) -> None:
    own, other = tmp_path / "01234567.sock", Session(tmp_path / "89abcdef.sock")

    def nobody(*_: Any) -> Peer:
        return Peer(0, own_uid())

    def init(*_: Any) -> Peer:
        return Peer(os.getppid(), own_uid())

    here = Peer(os.getpid(), own_uid())
    assert is_inside_session(Peer(0, own_uid()), 1 << 22, own, nobody), "nobody knows who that is"
    assert is_inside_session(here, 1 << 22, own, nobody), "below the host itself"
    parent = Peer(os.getppid(), own_uid())
    assert not is_inside_session(parent, 1 << 22, own, nobody)
    assert is_inside_session(parent, 1 << 22, own, init), "another session's host is above it"
    other.attach_socket.close()


class Slow:
    """A console that takes nothing until it is told to."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.shown = b""
        self.words: list[str] = []

    def tell(self, message: dict[str, Any]) -> bool:
        self.open.wait()
        if message["m"] == "out":
            self.shown += message["data"].encode("latin-1")
        else:
            self.words.append(message["m"])
        return True

    def say(self, message: dict[str, Any]) -> None:
        self.tell(message)


def test_a_slow_console_holds_nobody_up_and_is_shown_the_screen_instead_of_what_it_missed() -> None:
    slow = Slow()
    viewer = Viewer(slow, Size(), DetachKey("^] d"), lambda draw: draw(b"[screen]"), lambda _: None)  # type: ignore[arg-type]
    viewer.begin(b"[first]")
    for _ in range(100):
        viewer.show(b"x" * 65536)  # none of them waits
    slow.open.set()
    wait_for(lambda: slow.shown.endswith(b"[screen]"), "the screen")
    viewer.show("größer".encode())
    viewer.finish(b"[bye]", {"m": "ended"})
    viewer.join(DEADLINE_S)
    assert slow.shown.endswith("[screen]größer[bye]".encode()) and slow.words == ["ended"]
    assert len(slow.shown) < 2 << 20


def test_a_console_that_is_gone_is_told_of_once() -> None:
    class Gone(Slow):
        def tell(self, message: dict[str, Any]) -> bool:
            return False

    left: list[object] = []
    gone = Gone()
    viewer = Viewer(gone, Size(), DetachKey("^] d"), lambda draw: draw(b""), left.append)  # type: ignore[arg-type]
    viewer.begin(b"screen")
    viewer.join(DEADLINE_S)
    viewer.show(b"more")
    viewer.finish(b"", {"m": "ended"})
    assert left == [gone] and gone.words == []
