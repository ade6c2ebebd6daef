"""The hub's socket: who connects, whether it is the same user, and whether it is a session host or a command."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import struct
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from atlasbridge.core import wire
from atlasbridge.core.daemon.hosts import HostLink
from atlasbridge.core.daemon.sessions import SessionLife

log = logging.getLogger(__name__)

Operate = Callable[[dict[str, Any]], Awaitable[dict[str, Any] | AsyncIterator[dict[str, Any]]]]


class HubServer:
    def __init__(self, path: Path, sessions: SessionLife, operate: Operate) -> None:
        self._path = path
        self._sessions = sessions
        self._operate = operate
        self._server: asyncio.Server | None = None
        self._peers: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Only the holder of the lock comes here: a socket file that is there is a dead hub's."""
        self._path.unlink(missing_ok=True)
        before = os.umask(0o177)
        try:
            self._server = await asyncio.start_unix_server(self._connected, str(self._path), limit=wire.MAX_LINE)
        finally:
            os.umask(before)

    async def stop(self) -> None:
        if self._server is None:
            return
        self._server.close()
        self._path.unlink(missing_ok=True)
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
            pass  # the peer went, or the hub ends: both close the connection below
        except Exception:  # the session boundary: one peer's fault, or ours with it, ends one connection
            log.exception("a connection failed")
        finally:
            self._peers.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        uid = peer_uid(writer.get_extra_info("socket"))
        if uid != os.getuid():
            log.warning("a connection of user %s was refused", uid)
            return
        first = await _read(reader)
        if first is None:
            return
        if first.get("m") == "hello":
            await self._serve_host(first, reader, writer)
        else:
            await self._serve_command(first, reader, writer)

    async def _serve_host(
        self, hello: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        session = hello["session"]
        link = HostLink(str(session["session_id"]), int(session["host_pid"]), writer)
        try:
            self._sessions.hello(link, hello)
            while (message := await _read(reader)) is not None:
                self._sessions.handle(link, message)
        finally:
            self._sessions.lost(link)
            link.close()

    async def _serve_command(
        self, first: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        message: dict[str, Any] | None = first
        while message is not None:
            answer = await self._operate(message)
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
    """Send events until they end or the peer goes, whichever is first."""

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
    """The next message; None: the peer has closed.  A line that is too long raises ValueError."""
    line = await reader.readline()
    return wire.decode(line) if line.endswith(b"\n") else None


def peer_uid(link: socket.socket) -> int:
    """The user at the other end of a Unix socket, as the kernel knows it."""
    if sys.platform == "linux":
        credentials = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", credentials)[1])
    local_peercred, version_and_uid = 0x001, "IIh"  # struct xucred of the BSDs and macOS: version, uid, group count
    credentials = link.getsockopt(0, local_peercred, 256)
    return int(struct.unpack_from(version_and_uid, credentials)[1])
