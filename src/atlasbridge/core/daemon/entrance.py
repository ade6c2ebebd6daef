"""How peers come in to the hub: at its Unix socket, where the kernel says who it is, or at a port of this machine,
where each must prove first that it could read the hub's key.

What a peer may do is decided elsewhere; here it is only let in or not.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from atlasbridge.core import wire
from atlasbridge.core.daemon.reception import Reception
from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.hub_line import wants_loopback
from atlasbridge.core.loopback import (
    HOST,
    NONCE,
    PATIENCE_S,
    PROOF,
    Pass,
    hub_proof,
    is_proof,
    new_key,
    pass_file,
    peer_proof,
    write_pass,
)
from atlasbridge.core.own_port import bind_alone
from atlasbridge.core.peer import Peer, own_uid, read_peer

log = logging.getLogger(__name__)
_WAITING = 4096  # a thousand hosts come back at once when a hub has been started again
MOST_STRANGERS = 1024  # who have not proved themselves yet; beyond that the one who is there longest goes

Address = tuple[str, int]
Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Entrance(Protocol):
    async def open(self, connected: Connected) -> asyncio.Server:
        """Only the holder of the lock comes here: an address that was left behind is a dead hub's."""

    async def admit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Peer | None:
        """Who has come; None: it is not let in."""

    def close(self) -> None:
        """The address goes, so that nobody comes any more."""


class SocketEntrance:
    """`guests`: other users who may connect; whom else the folder's own modes let in is refused here."""

    def __init__(self, path: Path, guests: Callable[[], frozenset[int]]) -> None:
        self._path = path
        self._guests = guests

    async def open(self, connected: Connected) -> asyncio.Server:
        self.close()
        pass_file(self._path).unlink(missing_ok=True)
        before = os.umask(0o177)
        try:
            server = await asyncio.start_unix_server(connected, str(self._path), limit=wire.MAX_LINE, backlog=_WAITING)
        except OSError as error:
            raise _cannot_listen(self._path, error) from error
        finally:
            os.umask(before)
        if self._guests():
            self._path.chmod(0o666)  # its folder says who comes near, the kernel who it is
        return server

    async def admit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Peer | None:
        peer = read_peer(writer.get_extra_info("socket"))
        if peer.uid != own_uid() and peer.uid not in self._guests():
            log.warning("a connection of user %s was refused", peer.uid)
            return None
        return peer

    def close(self) -> None:
        self._path.unlink(missing_ok=True)


class LoopbackEntrance:
    """A new key at every start: what a dead hub's file said opens nothing.  `whose` finds out whose end of a connection
    it is, as far as the system tells, of those who have not introduced themselves."""

    def __init__(self, path: Path, whose: Callable[[Address, Address], Awaitable[Peer]]) -> None:
        self._socket = path
        self._path = pass_file(path)
        self._whose = whose
        self._pass = Pass(0, new_key())
        self._reception = Reception()
        self._strangers: dict[asyncio.StreamWriter, None] = {}

    async def open(self, connected: Connected) -> asyncio.Server:
        self._path.unlink(missing_ok=True)
        self._socket.unlink(missing_ok=True)
        try:
            port = bind_alone(HOST, 0)
            server = await asyncio.start_server(connected, sock=port, limit=wire.MAX_LINE, backlog=_WAITING)
            self._pass = Pass(int(server.sockets[0].getsockname()[1]), self._pass.key)
            await self._reception.open(self._pass)  # before anybody can know its name
            write_pass(self._path, self._pass)
        except OSError as error:
            raise _cannot_listen(self._path, error) from error
        return server

    async def admit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Peer | None:
        self._strangers[writer] = None
        if len(self._strangers) > MOST_STRANGERS:
            next(iter(self._strangers)).transport.abort()
        try:
            async with asyncio.timeout(PATIENCE_S):
                introduced = await self._prove(reader, writer)
        except (TimeoutError, asyncio.IncompleteReadError):
            introduced = None
        finally:
            self._strangers.pop(writer, None)
        if introduced is None:
            log.warning("a connection that does not know the hub's key was refused")
            return None
        peer = introduced if introduced.pid > 0 else await self._find(writer)
        if peer.uid != own_uid():
            log.warning("a connection of user %s was refused", peer.uid)
            return None
        return peer

    async def _prove(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Peer | None:
        """None: it does not have the key.  Pid 0: it has, and has not said which process it is."""
        theirs = await reader.readexactly(NONCE)
        ours = os.urandom(NONCE)
        with self._reception.expect(theirs, ours) as card:
            writer.write(ours + hub_proof(self._pass, theirs, ours))
            await writer.drain()
            proof = await reader.readexactly(PROOF)
            return card.peer if is_proof(proof, peer_proof(self._pass, theirs, ours)) else None

    async def _find(self, writer: asyncio.StreamWriter) -> Peer:
        client, server = writer.get_extra_info("peername"), writer.get_extra_info("sockname")
        return await self._whose((str(client[0]), int(client[1])), (str(server[0]), int(server[1])))

    def close(self) -> None:
        self._reception.close()
        self._path.unlink(missing_ok=True)


def make_entrance(
    path: Path,
    transport: str,
    guests: Callable[[], frozenset[int]],
    whose: Callable[[Address, Address], Awaitable[Peer]],
) -> Entrance:
    return LoopbackEntrance(path, whose) if wants_loopback(transport) else SocketEntrance(path, guests)


def _cannot_listen(path: Path, error: OSError) -> AtlasBridgeError:
    return AtlasBridgeError(
        f"the hub cannot listen at {path}: {error.strerror or error}", "look at the folder's owner and mode"
    )
