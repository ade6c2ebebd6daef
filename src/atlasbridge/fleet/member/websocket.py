"""A WebSocket client: text messages, over TLS if the address says https. It knows nothing of servers.

wsproto implements the protocol and asyncio moves the bytes: together a sixth of the size of a client library.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from urllib.parse import urlsplit

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, CloseConnection, Event, Ping, RejectConnection, Request, TextMessage
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from atlasbridge.core.errors import ChannelError
from atlasbridge.core.fleet_wire import LONGEST_MESSAGE

_CHUNK = 65_536
DIAL_S = 15.0


class WebSocket:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._protocol = WSConnection(ConnectionType.CLIENT)
        self._ready: deque[str] = deque()
        self._parts: list[str] = []
        self._size = 0
        self._accepted = False
        self._over = False

    @classmethod
    async def dial(cls, url: str, path: str, ca: str = "") -> WebSocket:
        """Raises ChannelError if the server cannot be reached, or does not speak the protocol."""
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        port = parts.port or (443 if secure else 80)
        try:
            async with asyncio.timeout(DIAL_S):
                trust = _trust(ca) if secure else None
                reader, writer = await asyncio.open_connection(parts.hostname, port, ssl=trust, limit=_CHUNK)
                link = cls(reader, writer)
                await link._begin(parts.netloc, parts.path.rstrip("/") + path)
        except TimeoutError:
            raise ChannelError(f"{url} does not answer", "is the server running?") from None
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise ChannelError(f"{url} cannot be reached: {error}", "is the server running?") from None
        return link

    async def _begin(self, host: str, target: str) -> None:
        self._writer.write(self._protocol.send(Request(host=host, target=target)))
        await self._writer.drain()
        while not self._accepted:
            await self._more()
            if self._over:
                self._writer.close()
                raise ChannelError(f"{host} is no server", "check the address")

    async def send(self, text: str) -> None:
        """Waits while the other side does not read."""
        if self._over:
            raise ChannelError("the link has ended")
        try:
            self._writer.write(self._protocol.send(TextMessage(data=text)))
            await self._writer.drain()
        except (OSError, LocalProtocolError) as error:
            raise ChannelError(f"the link was cut: {error}") from None

    async def receive(self) -> str | None:
        """The next message; None after the end of the connection."""
        while not self._ready:
            if self._over:
                return None
            try:
                await self._more()
            except OSError:
                self._over = True
        return self._ready.popleft()

    async def close(self) -> None:
        try:
            if not self._over:
                self._over = True
                self._writer.write(self._protocol.send(CloseConnection(code=1000)))
            self._writer.close()
            async with asyncio.timeout(1):
                await self._writer.wait_closed()
        except (OSError, LocalProtocolError, TimeoutError):
            self._writer.transport.abort()

    async def _more(self) -> None:
        data = await self._reader.read(_CHUNK)
        try:
            self._protocol.receive_data(data or None)
            for event in self._protocol.events():
                self._take(event)
        except RemoteProtocolError:
            self._over = True
        if not data:
            self._over = True

    def _take(self, event: Event) -> None:
        match event:
            case AcceptConnection():
                self._accepted = True
            case TextMessage():
                self._take_text(event)
            case Ping():
                self._writer.write(self._protocol.send(event.response()))
            case CloseConnection() | RejectConnection():
                self._over = True

    def _take_text(self, event: TextMessage) -> None:
        self._parts.append(event.data)
        self._size += len(event.data)
        if self._size > LONGEST_MESSAGE:
            self._over = True
        elif event.message_finished:
            self._ready.append("".join(self._parts))
            self._parts, self._size = [], 0


def _trust(ca: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if ca:
        context.load_verify_locations(cadata=ca)
    return context
