"""A hub at a port: what its file says, and how both ends prove that they have read it."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atlasbridge.core import hub_connection
from atlasbridge.core.daemon import server
from atlasbridge.core.daemon.request import connect
from atlasbridge.core.daemon.server import LoopbackListener, SocketListener, make_listener
from atlasbridge.core.errors import HubUnavailable
from atlasbridge.core.home import Home
from atlasbridge.core.hub_connection import (
    CHALLENGE,
    NONCE,
    PROOF,
    Pass,
    Stranger,
    connect_loopback,
    has_introductions,
    hub_proof,
    introduce,
    meeting_place,
    new_key,
    pass_file,
    peer_proof,
    read_pass,
    write_pass,
)
from atlasbridge.core.peer import Peer, own_uid

NEEDS_UNIX = pytest.mark.skipif(not hub_connection.has_unix_sockets(), reason="compares both ways; Windows has one")
NEEDS_INTRODUCTIONS = pytest.mark.skipif(not has_introductions(), reason="Linux alone has Unix sockets without a file")
INTRODUCE = """import os, sys
from atlasbridge.core.hub_connection import Pass, introduce
port, *words = sys.argv[1:]
key, ours, theirs = map(bytes.fromhex, words)
print(os.getpid(), introduce(Pass(int(port), key), ours, theirs, 5.0))
"""
PASS = Pass(4711, bytes(range(32)))


def test_the_file_is_private_whole_and_says_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "hub.tcp"
    path.write_text("of a hub that is dead")
    write_pass(path, PASS)
    assert read_pass(path) == PASS
    assert os.name == "nt" or stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["hub.tcp"]


@given(st.binary(max_size=200))
def test_whatever_stands_in_the_file_it_is_a_pass_or_none(
    tmp_path_factory: pytest.TempPathFactory, text: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.tcp"
    path.write_bytes(text)
    found = read_pass(path)
    assert found is None or (0 < found.port < 65536 and len(found.key) == 32)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "80",
        "0 " + "00" * 32,
        "70000 " + "00" * 32,
        "80 " + "00" * 31,
        "80 xyz",
        "80 " + "00" * 32 + " more",
        "-1 00",
    ],
)
def test_half_a_file_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "hub.tcp"
    path.write_text(text)
    assert read_pass(path) is None


def test_a_proof_is_good_for_its_end_its_port_and_its_connection_alone() -> None:
    one, other = os.urandom(NONCE), os.urandom(NONCE)
    proofs = {
        hub_proof(PASS, one, other),
        peer_proof(PASS, one, other),
        hub_proof(PASS, other, one),
        hub_proof(Pass(4712, PASS.key), one, other),
        hub_proof(Pass(4711, new_key()), one, other),
    }
    assert len(proofs) == 5


class AttachSocket:
    """An entrance with its server; who comes in is written down, and said hello to."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "hub.sock"
        self.listener = LoopbackListener(self.path, self._whose)
        self.came: list[Peer | None] = []

    async def _whose(self, client: tuple[str, int], server: tuple[str, int]) -> Peer:
        assert client[0] == server[0] == "127.0.0.1"
        return Peer(client[1], own_uid())

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            peer = await self.listener.admit(reader, writer)
            self.came.append(peer)
            if peer is not None:
                writer.write(b"hello")
        except ConnectionError:
            self.came.append(None)
        finally:
            writer.close()

    @property
    def issued(self) -> Pass:
        found = read_pass(pass_file(self.path))
        assert found is not None
        return found


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[AttachSocket]:
    attach_socket = AttachSocket(folder)
    server = await attach_socket.listener.open(attach_socket.connected)
    try:
        yield attach_socket
    finally:
        server.close()
        attach_socket.listener.close()


async def test_who_has_the_file_comes_in(tmp_path: Path) -> None:
    async with opened(tmp_path) as attach_socket:
        with await asyncio.to_thread(hub_connection.dial, attach_socket.path, 5.0) as link:
            assert link.gettimeout() == 5.0
            assert await asyncio.to_thread(link.recv, 5) == b"hello"
            said = os.getpid() if has_introductions() else link.getsockname()[1]
            assert [(one.pid, one.uid) for one in attach_socket.came if one] == [(said, own_uid())]
    assert not pass_file(attach_socket.path).exists()


async def test_who_does_not_say_which_process_it_is_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever the system has no such sockets."""
    monkeypatch.setattr(hub_connection, "has_introductions", lambda: False)
    monkeypatch.setattr(server, "has_introductions", lambda: False)
    async with opened(tmp_path) as attach_socket:
        with await asyncio.to_thread(hub_connection.dial, attach_socket.path, 5.0) as link:
            assert await asyncio.to_thread(link.recv, 5) == b"hello"
            assert attach_socket.came == [Peer(link.getsockname()[1], own_uid())]


@NEEDS_INTRODUCTIONS
async def test_a_hub_that_does_not_show_which_process_it_is_is_told_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "has_introductions", lambda: False)
    async with opened(tmp_path) as attach_socket:
        with pytest.raises(TimeoutError):
            await asyncio.to_thread(hub_connection.dial, attach_socket.path, 5.0)
        await _until(lambda: attach_socket.came)
        assert attach_socket.came == [None]


@NEEDS_INTRODUCTIONS
async def test_only_the_process_that_connects_can_say_who_it_is(tmp_path: Path) -> None:
    """Another process with the key that knows the connection's numbers says no more than that it is itself, once."""

    def connect(issued: Pass) -> bytes:
        with socket.create_connection(("127.0.0.1", issued.port), timeout=10) as link:
            ours = os.urandom(NONCE)
            link.sendall(ours)
            theirs = link.recv(CHALLENGE, socket.MSG_WAITALL)[:NONCE]
            assert not introduce(issued, theirs, ours, 5.0)  # the wrong way round: no connection
            told = subprocess.run(
                [sys.executable, "-c", INTRODUCE, str(issued.port), issued.key.hex(), ours.hex(), theirs.hex()],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.split()
            assert told[1].startswith("Peer")
            assert not introduce(issued, ours, theirs, 5.0)  # said already
            link.sendall(peer_proof(issued, ours, theirs))
            assert _all(link) == b"hello"
            return told[0].encode()

    async with opened(tmp_path) as attach_socket:
        pid = await asyncio.to_thread(connect, attach_socket.issued)
        assert [one.pid for one in attach_socket.came if one] == [int(pid)]


@NEEDS_INTRODUCTIONS
async def test_who_holds_the_reception_up_holds_up_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PATIENCE_S", 0.3)
    async with opened(tmp_path) as attach_socket:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
            silent.settimeout(10)
            silent.connect(meeting_place(attach_socket.issued))
            silent.sendall(b"half a card")
            with await asyncio.to_thread(hub_connection.dial, attach_socket.path, 5.0) as link:
                assert await asyncio.to_thread(link.recv, 5) == b"hello"
                assert [(one.pid, one.uid) for one in attach_socket.came if one] == [(os.getpid(), own_uid())]
            assert await asyncio.to_thread(silent.recv, 1) == b""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as late, pytest.raises(ConnectionRefusedError):
        late.connect(meeting_place(PASS))


async def test_a_wrong_key_is_seen_by_the_one_who_has_it_first(tmp_path: Path) -> None:
    async with opened(tmp_path) as attach_socket:
        with pytest.raises(Stranger):
            await asyncio.to_thread(connect_loopback, Pass(attach_socket.issued.port, new_key()), 5.0)
        await _until(lambda: attach_socket.came)
        assert attach_socket.came == [None]


async def test_a_guess_at_the_proof_gets_nothing_more(tmp_path: Path) -> None:
    def guess(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as link:
            link.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: null\r\n" + b"x" * (NONCE + PROOF))
            return _all(link)

    async with opened(tmp_path) as attach_socket:
        answer = await asyncio.to_thread(guess, attach_socket.issued.port)
        assert len(answer) == CHALLENGE and attach_socket.issued.key not in answer
        assert attach_socket.came == [None]


async def test_words_that_were_overheard_open_nothing(tmp_path: Path) -> None:
    """Not the same words again, and not the hub's own handed back to it."""

    def replay(issued: Pass, back: bool) -> bytes:
        with socket.create_connection(("127.0.0.1", issued.port), timeout=10) as link:
            theirs = b"n" * NONCE
            link.sendall(theirs)
            challenge = link.recv(CHALLENGE)
            link.sendall(
                challenge[NONCE:] if back else peer_proof(issued, theirs, b"a hub's number of another time".ljust(32))
            )
            return _all(link)

    async with opened(tmp_path) as attach_socket:
        for back in (True, False):
            assert await asyncio.to_thread(replay, attach_socket.issued, back) == b""
        assert attach_socket.came == [None, None]


async def test_a_slow_stranger_is_sent_away_and_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "PATIENCE_S", 0.3)
    async with opened(tmp_path) as attach_socket:
        with socket.create_connection(("127.0.0.1", attach_socket.issued.port), timeout=10) as slow:
            slow.sendall(b"x")
            with await asyncio.to_thread(hub_connection.dial, attach_socket.path, 5.0) as link:
                assert await asyncio.to_thread(link.recv, 5) == b"hello"
            assert await asyncio.to_thread(slow.recv, 1) == b""
        assert attach_socket.came[-1] is None


async def test_of_too_many_strangers_the_oldest_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MOST_UNPROVEN", 2)
    async with opened(tmp_path) as attach_socket:
        strangers = [socket.create_connection(("127.0.0.1", attach_socket.issued.port), timeout=10) for _ in range(2)]
        with await asyncio.to_thread(hub_connection.dial, attach_socket.path, 5.0) as link:
            assert await asyncio.to_thread(link.recv, 5) == b"hello"
        assert await asyncio.to_thread(_all, strangers[0]) == b""
        for stranger in strangers:
            stranger.close()


@pytest.mark.parametrize("introduced", [True, False])
async def test_another_user_is_not_let_in_whatever_they_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, introduced: bool
) -> None:
    async def other(client: object, server: object) -> Peer:
        return Peer(1, own_uid() + 1)

    monkeypatch.setattr(hub_connection, "has_introductions", lambda: introduced and has_introductions())
    monkeypatch.setattr(server, "read_peer", lambda link: Peer(1, own_uid() + 1))
    async with opened(tmp_path) as attach_socket:
        monkeypatch.setattr(attach_socket.listener, "_whose", other)
        with await asyncio.to_thread(hub_connection.dial, attach_socket.path, 5.0) as link:
            assert await asyncio.to_thread(link.recv, 5) == b""
        assert attach_socket.came == [None]


def test_a_stranger_on_a_dead_hubs_port_learns_nothing(tmp_path: Path) -> None:
    heard: list[bytes] = []

    def pretend(listener: socket.socket) -> None:
        peer, _ = listener.accept()
        with peer:
            peer.settimeout(10)
            heard.append(peer.recv(4096))
            peer.sendall(os.urandom(CHALLENGE))
            heard.append(_all(peer))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        home = Home(tmp_path)
        write_pass(pass_file(home.socket), Pass(listener.getsockname()[1], PASS.key))
        thread = threading.Thread(target=pretend, args=(listener,))
        thread.start()
        with pytest.raises(HubUnavailable, match="not running"):
            connect(home, 5.0)
        thread.join()
    assert len(heard[0]) == NONCE and PASS.key not in heard[0] and heard[1] == b""


def test_a_port_that_says_nothing_is_given_up_in_time(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        home = Home(tmp_path)
        write_pass(pass_file(home.socket), Pass(listener.getsockname()[1], PASS.key))
        with pytest.raises(HubUnavailable, match="does not answer"):
            connect(home, 0.2)


def test_a_port_where_nobody_listens_is_no_hub(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    write_pass(pass_file(home.socket), Pass(port, PASS.key))
    with pytest.raises(HubUnavailable, match="not running"):
        connect(home, 5.0)


@NEEDS_UNIX
async def test_each_way_in_takes_away_what_the_other_left(tmp_path: Path) -> None:
    socket_path, file = tmp_path / "hub.sock", tmp_path / "hub.tcp"
    file.write_text("1 " + "00" * 32)
    way = make_listener(socket_path, "auto", frozenset, _nobody)
    assert isinstance(way, SocketListener)
    unix = await way.open(_ignore)
    assert socket_path.exists() and not file.exists() and hub_connection.left_address(socket_path) == socket_path
    unix.close()  # newer Pythons take its file away with it
    socket_path.touch()
    other = make_listener(socket_path, "loopback", frozenset, _nobody)
    (await other.open(_ignore)).close()
    assert file.exists() and not socket_path.exists() and hub_connection.left_address(socket_path) == file
    other.close()


@NEEDS_UNIX
def test_without_unix_sockets_it_is_always_the_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not hub_connection.wants_loopback("auto") and hub_connection.wants_loopback("loopback")
    monkeypatch.delattr(socket, "AF_UNIX")
    assert hub_connection.wants_loopback("auto")
    with pytest.raises(HubUnavailable, match="not running"):
        connect(Home(tmp_path), 5.0)


def _all(link: socket.socket) -> bytes:
    data = b""
    try:
        while more := link.recv(4096):
            data += more
    except ConnectionResetError:
        pass  # it closed while something of ours was unread
    return data


async def _until(look: Callable[[], object]) -> None:
    while not look():
        await asyncio.sleep(0.01)


async def _nobody(client: object, server: object) -> Peer:
    return Peer(0, own_uid())


async def _ignore(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()
