"""The hub's peers: who connects, and whether it is a session host or a command.  How they come in is `entrance`'s."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from atlasbridge.core import wire
from atlasbridge.core.daemon.entrance import Entrance
from atlasbridge.core.daemon.hosts import HostLink
from atlasbridge.core.daemon.kinship import Kinship
from atlasbridge.core.daemon.sessions import AWAITED, UNRECORDED, SessionLife
from atlasbridge.core.kin import look_at, own_tool, started_at
from atlasbridge.core.peer import Peer
from atlasbridge.core.store.rounds import Rounds
from atlasbridge.core.values import replace

log = logging.getLogger(__name__)
_HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")  # escaped, or in the bytes themselves

Operate = Callable[[dict[str, Any], Peer], Awaitable[dict[str, Any] | AsyncIterator[dict[str, Any]]]]


class HubServer:
    def __init__(
        self, entrance: Entrance, sessions: SessionLife, operate: Operate, kinship: Kinship, rounds: Rounds
    ) -> None:
        self._entrance = entrance
        self._kinship = kinship
        self._rounds = rounds
        self._sessions = sessions
        self._operate = operate
        self._server: asyncio.Server | None = None
        self._peers: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._server = await self._entrance.open(self._connected)

    async def stop(self) -> None:
        if self._server is None:
            return
        self._server.close()
        self._entrance.close()
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
        peer = await self._entrance.admit(reader, writer)
        if peer is None:
            return
        peer = replace(peer, started=started_at(peer.pid))
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
        """Which process a host is, the kernel says, not the host: nobody speaks for a session that another one runs.
        Where it comes from, the kernel says, too: whatever it calls itself, a door, a tool, or anything else."""
        session = hello["session"]
        session["host_pid"] = peer.pid or int(session["host_pid"])
        session["label"] = self._kinship.mark(str(session.get("label", "")), self._kinship.whence(peer))
        session["pid"] = own_tool(int(session["pid"]), session["host_pid"], hello.get("door"))
        tool = look_at(session["pid"])
        link = HostLink(
            str(session["session_id"]), session["host_pid"], writer, peer.started, tool.tty if tool is not None else ""
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
        """False: another process is the host of that session, and lives."""
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
    if not line.endswith(b"\n"):
        return None
    message = wire.decode(line)
    return _as_text(message) if _HALF_PAIR.search(line) else message


def _as_text(value: Any) -> Any:
    """What is no text (a file's name may be any bytes, and whoever speaks may say anything) can neither be kept nor
    told: one session with such a name would keep everybody from seeing any."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_as_text(name): _as_text(item) for name, item in value.items()}
    return [_as_text(item) for item in value] if isinstance(value, list) else value
