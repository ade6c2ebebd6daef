"""Where those who come to the hub's port say which process they are: the kernel's word about each, kept until its
connection has proved itself.

Only a connection that is being proved is waited for, so nobody can fill this up with others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from atlasbridge.core.calling_card import CARD, NOTED, card_of, has_introductions, meeting_place
from atlasbridge.core.loopback import PATIENCE_S, Pass
from atlasbridge.core.peer import Peer, own_uid, read_peer

_MOST_CALLERS = 1024


class Card:
    """One connection, and who has said that it is theirs."""

    def __init__(self) -> None:
        self.peer = Peer(0, own_uid())


class Reception:
    def __init__(self) -> None:
        self._pass: Pass | None = None
        self._server: asyncio.Server | None = None
        self._cards: dict[bytes, Card] = {}
        self._callers = 0

    async def open(self, issued: Pass) -> None:
        self._pass = issued
        if has_introductions():
            self._server = await asyncio.start_unix_server(
                self._receive, meeting_place(issued.port, issued.key), backlog=_MOST_CALLERS
            )

    @contextmanager
    def expect(self, of_peer: bytes, of_hub: bytes) -> Iterator[Card]:
        assert self._pass is not None
        name, card = card_of(self._pass.port, self._pass.key, of_peer, of_hub), Card()
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
            pass  # whoever it was is gone, or says nothing: the port decides without it
        finally:
            self._callers -= 1
            writer.close()

    async def _note(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(PATIENCE_S):
            card = self._cards.get(await reader.readexactly(CARD))
            if card is None or card.peer.pid:
                return  # nobody's, or said already
            card.peer = read_peer(writer.get_extra_info("socket"))
            writer.write(NOTED)
            await writer.drain()

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
