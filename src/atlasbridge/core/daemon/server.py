"""The hub's server: accepts connections, identifies the peer, and serves session hosts and commands."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from atlasbridge.core import wire
from atlasbridge.core.daemon.parts import HostLink, Rounds
from atlasbridge.core.daemon.session_processes import CallerCheck
from atlasbridge.core.daemon.sessions import AWAITED, UNRECORDED, SessionLife
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.hub_connection import (
    CARD,
    HOST,
    NONCE,
    NOTED,
    PATIENCE_S,
    PROOF,
    Pass,
    bind_alone,
    card_of,
    has_introductions,
    hub_proof,
    is_proof,
    meeting_place,
    new_key,
    pass_file,
    peer_proof,
    read_pass,
    wants_loopback,
    write_pass,
)
from atlasbridge.core.peer import UNPROVEN, Peer, look_at, meet, own_tool, own_uid, read_peer

# Where clients of the hub's TCP port say which process they are. The kernel's information about each is kept until its
# connection has completed the handshake.
#
# Only connections in a handshake are accepted here, so nobody can fill this up with others.

_MOST_CALLERS = 1024
Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def listen_at(path: str, connected: Connected, backlog: int) -> asyncio.Server:
    """At a Unix socket; `connected` calls `meet_caller` first."""
    return await asyncio.start_unix_server(connected, path, limit=wire.MAX_LINE, backlog=backlog)


async def meet_caller(writer: asyncio.StreamWriter) -> Peer:
    """Must be called in the first step of a connection's task: the event loop has read nothing yet. A pause in
    `connection_made` would come too early, because Python before 3.11.4 adds the reader after it all the same."""
    sock = writer.get_extra_info("socket")
    peer = read_peer(sock)
    if peer.started == UNPROVEN:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        with socket.socket(fileno=os.dup(sock.fileno())) as link:
            peer = await asyncio.to_thread(meet, link, listens=True)
            link.setblocking(False)  # the two share that
        writer.transport.resume_reading()  # type: ignore[attr-defined]
    return peer


class Card:
    def __init__(self) -> None:
        self.peer = Peer(0, own_uid())


class Handshake:
    def __init__(self) -> None:
        self._pass: Pass | None = None
        self._server: asyncio.Server | None = None
        self._cards: dict[bytes, Card] = {}
        self._callers = 0

    async def open(self, issued: Pass) -> None:
        self._pass = issued
        if has_introductions():
            self._server = await listen_at(meeting_place(issued), self._receive, _MOST_CALLERS)

    @contextmanager
    def expect(self, of_peer: bytes, of_hub: bytes) -> Iterator[Card]:
        assert self._pass is not None
        name, card = card_of(self._pass, of_peer, of_hub), Card()
        self._cards[name] = card
        try:
            yield card
        finally:
            del self._cards[name]

    async def _receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._callers += 1
        try:
            if self._callers <= _MOST_CALLERS:
                await self._note(reader, writer)
        except (TimeoutError, asyncio.IncompleteReadError, ConnectionError):
            pass  # the peer is gone or silent: the port decides without it
        finally:
            self._callers -= 1
            writer.close()

    async def _note(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(PATIENCE_S):
            peer = await meet_caller(writer)
            card = self._cards.get(await reader.readexactly(CARD))
            if card is None or card.peer.pid:
                return  # unknown, or already claimed
            card.peer = peer
            writer.write(NOTED)
            await writer.drain()

    def close(self) -> None:
        if self._server is not None:
            self._server.close()


# How peers connect: through the Unix socket, where the kernel identifies them, or through a loopback port, where each
# must first prove that it can read the hub's key.
#
# This part only admits or refuses a connection. The permissions of a peer are decided elsewhere.

log = logging.getLogger(__name__)
_WAITING = 4096  # a thousand hosts reconnect at once after a restart of the hub
MOST_UNPROVEN = 1024  # connections that have not completed the handshake; beyond this, the oldest is closed

Address = tuple[str, int]


class SocketListener:
    """`guests`: other users who are allowed to connect. Any other user that the folder's mode lets through is refused
    here.

    `open` is called only while the hub's lock is held, so an existing address belongs to a dead hub. `admit` returns
    the peer, or None if it is refused. `is_ours` says whether the address still leads to this hub. `close` removes the
    address, so that nobody connects any more.
    """

    def __init__(self, path: Path, guests: Callable[[], frozenset[int]]) -> None:
        self._path = path
        self._guests = guests
        self._made = (0, 0)

    async def open(self, connected: Connected) -> asyncio.Server:
        self.close()
        pass_file(self._path).unlink(missing_ok=True)
        before = os.umask(0o177)
        try:
            server = await listen_at(str(self._path), connected, _WAITING)
        except OSError as error:
            raise _cannot_listen(self._path, error) from error
        finally:
            os.umask(before)
        if self._guests():
            self._path.chmod(0o666)  # the folder's mode restricts who can connect, and the kernel identifies the user
        self._made = self._found()
        return server

    def is_ours(self) -> bool:
        return self._found() == self._made

    def _found(self) -> tuple[int, int]:
        try:
            status = self._path.lstat()
        except OSError:
            return (0, 0)
        return status.st_dev, status.st_ino

    async def admit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Peer | None:
        peer = await meet_caller(writer)
        if peer.uid != own_uid() and peer.uid not in self._guests():
            log.warning("a connection of user %s was refused", peer.uid)
            return None
        return peer

    def close(self) -> None:
        self._path.unlink(missing_ok=True)


class LoopbackListener:
    """The same at a port. It uses a new key at every start, so that the file of a dead hub is useless.

    `whose` finds the process of a connection that has not introduced itself, as far as the system can tell.
    """

    def __init__(self, path: Path, whose: Callable[[Address, Address], Awaitable[Peer]]) -> None:
        self._socket = path
        self._path = pass_file(path)
        self._whose = whose
        self._pass = Pass(0, new_key())
        self._handshake = Handshake()
        self._unproven: dict[asyncio.StreamWriter, None] = {}

    async def open(self, connected: Connected) -> asyncio.Server:
        self._path.unlink(missing_ok=True)
        self._socket.unlink(missing_ok=True)
        self._handshake.close()
        try:
            port = bind_alone(HOST, 0)
            server = await asyncio.start_server(connected, sock=port, limit=wire.MAX_LINE, backlog=_WAITING)
            self._pass = Pass(int(server.sockets[0].getsockname()[1]), self._pass.key)
            await self._handshake.open(self._pass)  # before anybody can know its name
            write_pass(self._path, self._pass)
        except OSError as error:
            raise _cannot_listen(self._path, error) from error
        return server

    async def admit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Peer | None:
        self._unproven[writer] = None
        if len(self._unproven) > MOST_UNPROVEN:
            next(iter(self._unproven)).transport.abort()
        try:
            async with asyncio.timeout(PATIENCE_S):
                introduced = await self._prove(reader, writer)
        except (TimeoutError, asyncio.IncompleteReadError):
            introduced = None
        finally:
            self._unproven.pop(writer, None)
        if introduced is None:
            log.warning("a connection that does not know the hub's key was refused")
            return None
        if introduced.pid <= 0 and has_introductions():
            log.warning("a connection that does not say which process it is was refused")
            return None
        peer = introduced if introduced.pid > 0 else await self._find(writer)
        if peer.uid != own_uid():
            log.warning("a connection of user %s was refused", peer.uid)
            return None
        return peer

    async def _prove(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Peer | None:
        """Returns None if the peer does not have the key; pid 0 if it has, but did not say which process it is."""
        theirs = await reader.readexactly(NONCE)
        ours = os.urandom(NONCE)
        with self._handshake.expect(theirs, ours) as card:
            writer.write(ours + hub_proof(self._pass, theirs, ours))
            await writer.drain()
            proof = await reader.readexactly(PROOF)
            return card.peer if is_proof(proof, peer_proof(self._pass, theirs, ours)) else None

    async def _find(self, writer: asyncio.StreamWriter) -> Peer:
        client, server = writer.get_extra_info("peername"), writer.get_extra_info("sockname")
        return await self._whose((str(client[0]), int(client[1])), (str(server[0]), int(server[1])))

    def is_ours(self) -> bool:
        return read_pass(self._path) == self._pass

    def close(self) -> None:
        self._handshake.close()
        self._path.unlink(missing_ok=True)


Listener = SocketListener | LoopbackListener


def make_listener(
    path: Path,
    transport: str,
    guests: Callable[[], frozenset[int]],
    whose: Callable[[Address, Address], Awaitable[Peer]],
) -> Listener:
    return LoopbackListener(path, whose) if wants_loopback(transport) else SocketListener(path, guests)


def _cannot_listen(path: Path, error: OSError) -> AtlasBridgeError:
    return AtlasBridgeError(
        f"the hub cannot listen at {path}: {error.strerror or error}", "look at the folder's owner and mode"
    )


_HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")  # a lone surrogate, escaped or as bytes

Operate = Callable[[dict[str, Any], Peer], Awaitable[dict[str, Any] | AsyncIterator[dict[str, Any]]]]


class HubServer:
    def __init__(
        self, listener: Listener, sessions: SessionLife, operate: Operate, caller_check: CallerCheck, rounds: Rounds
    ) -> None:
        self._listener = listener
        self._caller_check = caller_check
        self._rounds = rounds
        self._sessions = sessions
        self._operate = operate
        self._server: asyncio.Server | None = None
        self._peers: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._server = await self._listener.open(self._connected)

    @property
    def is_reachable(self) -> bool:
        """False if another file has replaced our socket."""
        return self._server is None or self._listener.is_ours()

    async def listen_again(self) -> None:
        """Existing connections stay open."""
        if self._server is not None:
            self._server.close()
            self._server = await self._listener.open(self._connected)

    async def stop(self) -> None:
        if self._server is None:
            return
        self._server.close()
        self._listener.close()
        for peer in tuple(self._peers):
            peer.cancel()
        await asyncio.gather(*self._peers, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._peers.add(task)
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass  # the peer disconnected, or the hub stops; the connection is closed below
        except Exception:  # the session boundary: an error ends only this connection
            log.exception("a connection failed")
        finally:
            self._peers.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = await self._listener.admit(reader, writer)
        if peer is None:
            return
        first = await _read(reader)
        if first is None:
            return
        if first.get("m") == "hello":
            await self._serve_host(first, peer, reader, writer)
        else:
            await self._serve_command(first, peer, reader, writer)

    async def _serve_host(
        self, hello: dict[str, Any], peer: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Takes the host's pid and ancestry from the kernel, not from the host's own message. So no process can speak
        for a session that another process runs, whatever it claims to be."""
        session = hello["session"]
        hello.setdefault("integration", hello.get("door"))  # as versions before 0.1.0 say it
        session["host_pid"] = peer.pid or int(session["host_pid"])
        session["label"] = self._caller_check.mark(
            str(session.get("label", "")), self._caller_check.session_of_asker(peer)
        )
        session["pid"] = own_tool(int(session["pid"]), session["host_pid"], hello.get("integration"))
        tool = look_at(session["pid"])
        link = HostLink(
            str(session["session_id"]),
            session["host_pid"],
            writer,
            peer.started,
            tool.tty if tool is not None else "",
            tool.started if tool is not None else 0,
            peer.uid,
        )
        try:
            if not await self._rounds.take(lambda: self._welcome(link, hello)):
                log.warning("process %s said hello for session %s of another host", peer.pid, link.session_id)
                return
            while (message := await _read(reader)) is not None:
                await self._hear(link, message)
        finally:
            self._sessions.lost(link)
            link.close()

    def _welcome(self, link: HostLink, hello: dict[str, Any]) -> bool:
        """Returns False if another process is the host of that session, and is alive."""
        if self._sessions.is_impostor(link):
            return False
        self._sessions.hello(link, hello)
        return True

    async def _hear(self, link: HostLink, message: dict[str, Any]) -> None:
        if message.get("m") in UNRECORDED:
            self._sessions.handle(link, message)
        else:
            urgent = message.get("m") in AWAITED
            await self._rounds.take(lambda: self._sessions.handle(link, message), urgent)

    async def _serve_command(
        self, first: dict[str, Any], peer: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        message: dict[str, Any] | None = first
        while message is not None:
            answer = await self._operate(message, peer)
            if isinstance(answer, dict):
                writer.write(wire.encode(answer))
                await writer.drain()
            else:
                await _pour(answer, reader, writer)
                return
            message = await _read(reader)


async def _pour(
    events: AsyncIterator[dict[str, Any]], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    async def send() -> None:
        async for event in events:
            writer.write(wire.encode(event))
            await writer.drain()

    sending = asyncio.create_task(send(), name="events")
    gone = asyncio.create_task(reader.read(1), name="events-peer")
    try:
        await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        sending.cancel()
        gone.cancel()
        await asyncio.gather(sending, gone, return_exceptions=True)


async def _read(reader: asyncio.StreamReader) -> dict[str, Any] | None:
    """Returns the next message; None if the peer has closed the connection. A line that is too long raises
    ValueError."""
    line = await reader.readline()
    if not line.endswith(b"\n"):
        return None
    message = wire.decode(line)
    return _as_text(message) if _HALF_PAIR.search(line) else message


def _as_text(value: Any) -> Any:
    """Replaces lone surrogates, which occur in file names with arbitrary bytes and cannot be stored or sent. Otherwise
    one such name would break the list of sessions for everybody."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_as_text(name): _as_text(item) for name, item in value.items()}
    return [_as_text(item) for item in value] if isinstance(value, list) else value
