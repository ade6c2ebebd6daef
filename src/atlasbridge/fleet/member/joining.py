"""Joins and leaves a server, and handles the keys that identify both sides (needs the `fleet` extra)."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import deque
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, CloseConnection, Event, Ping, RejectConnection, Request, TextMessage
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from atlasbridge.core.errors import ChannelError
from atlasbridge.core.fleet_wire import (
    DEAD_S,
    LONGEST_MESSAGE,
    PATH,
    Invitation,
    crosses_in_the_clear,
    decode_message,
    encode_message,
    rotation_text,
    signing_text,
)
from atlasbridge.core.ids import new_nonce
from atlasbridge.fleet.keys import is_signed, new_key, public_of, sign
from atlasbridge.fleet.member.membership import FleetMembership

# How the server's key is verified.


def follow_key(known: str, challenge: dict[str, Any]) -> str:
    """The server's current key, if each key since the `known` one has signed the next; otherwise the known one."""
    steps = challenge.get("keys")
    signed = [one for one in steps if isinstance(one, list) and len(one) == 3] if isinstance(steps, list) else []
    for old, new, signature in signed:
        if old == known and is_signed(str(old), str(signature), rotation_text(str(old), str(new))):
            known = str(new)
    return known


# Joining and leaving a server: one short exchange each. `channel.py` does the rest.


async def join(
    invitation: Invitation, name: str, *, ca: str, screens: bool, rules: str, ephemeral: bool
) -> FleetMembership:
    """Join a server; the token is then used up. Raises ChannelError if the server refused, or is not the one that
    invited."""
    key, nonce = new_key(), new_nonce()
    link = await dial(invitation.url, ca)
    try:
        challenge = await hear(link, "challenge")
        public = public_of(key)
        text = signing_text("join", challenge["nonce"], invitation.token, public)
        await link.send(
            encode_message(
                "join",
                token=invitation.token,
                name=name,
                key=public,
                nonce=nonce,
                ephemeral=ephemeral,
                signature=sign(key, text),
            )
        )
        answer = await hear(link, "joined")
    finally:
        await link.close()
    machine_id, server_key = str(answer["machine"]), follow_key(invitation.server_key, challenge)
    if not is_signed(server_key, str(answer["signature"]), signing_text("joined", nonce, machine_id)):
        raise ChannelError(
            "another server answers there than the one that invited", "check the address and the network"
        )
    told = str(answer["name"])
    return FleetMembership(invitation.url, machine_id, told, key, server_key, ca, screens, rules, ephemeral)


async def dial(url: str, ca: str) -> WebSocket:
    """Nothing is sent to a server without protection against an attacker in between."""
    if crosses_in_the_clear(url):
        raise ChannelError(f"{url} would be spoken to in the clear", "join it again by its https address")
    return await WebSocket.dial(url, PATH, ca)


async def enter(
    link: WebSocket, membership: FleetMembership, recall: Callable[[], dict[str, Any]] = dict, **about: Any
) -> dict[str, Any]:
    """Both sides prove their identity. Return the server's welcome message with its current key (`server_key`).
    `recall` returns the stored state of this machine."""
    server_key, proof = await _prove(link, membership, "enter")
    await link.send(encode_message("enter", **proof, **{**about, **recall()}))
    welcome = await hear(link, "welcome", "recall")
    if welcome["m"] == "recall":
        await link.send(encode_message("recalled", nonce=welcome["nonce"], **recall()))
        welcome = await hear(link, "welcome")
    _check(server_key, welcome, proof)
    return {**welcome, "server_key": server_key}


async def ask_heads(membership: FleetMembership) -> list[str]:
    """The heads of this machine's audit log that the server has kept, as `COUNT:HASH`."""
    link = await dial(membership.url, membership.ca)
    try:
        server_key, proof = await _prove(link, membership, "heads")
        await link.send(encode_message("heads", **proof))
        answer = await hear(link, "heads")
    finally:
        await link.close()
    heads = [str(one) for one in answer["heads"]]
    _check(server_key, answer, proof, *heads)
    return heads


async def _prove(link: WebSocket, membership: FleetMembership, kind: str) -> tuple[str, dict[str, str]]:
    """The server's current key, and this machine's proof for the server's challenge."""
    challenge = await hear(link, "challenge")
    server_key = follow_key(membership.server_key, challenge)
    text = signing_text(kind, str(challenge["nonce"]), membership.machine_id, server_key)
    signature = sign(membership.key, text)
    return server_key, {"machine": membership.machine_id, "nonce": new_nonce(), "signature": signature}


def _check(server_key: str, answer: dict[str, Any], proof: dict[str, str], *more: str) -> None:
    text = signing_text(str(answer["m"]), proof["nonce"], proof["machine"], *more)
    if not is_signed(server_key, str(answer["signature"]), text):
        raise ChannelError("another server answers there than the one this machine joined", "check the network")


async def leave(membership: FleetMembership) -> None:
    """Leave the server. Raises ChannelError if it was not reached, or had already removed this machine."""
    link = await dial(membership.url, membership.ca)
    try:
        await enter(link, membership, leaving=True)
        await link.send(encode_message("leave"))
        await hear(link, "ack")
    finally:
        await link.close()


async def hear(link: WebSocket, *kinds: str) -> dict[str, Any]:
    """Return the next message, which must be of one of these kinds."""
    try:
        async with asyncio.timeout(DEAD_S):
            text = await link.receive()
    except TimeoutError:
        text = None
    if text is None:
        raise ChannelError("the server says nothing", "try again; look at the server's log")
    try:
        message = decode_message(text)
    except ValueError:
        raise ChannelError("it does not answer like a fleet server", "check the address") from None
    if message["m"] == "refused":
        raise RefusedByServer(str(message.get("sentence", "the server refuses")), str(message.get("reason", "")))
    if message["m"] not in kinds:
        raise ChannelError("the server speaks another version", "are both the same version of AtlasBridge?")
    return message


class RefusedByServer(ChannelError):
    """The server refused; `reason` is for machines."""

    def __init__(self, sentence: str, reason: str) -> None:
        super().__init__(sentence, "ask who runs the server: atlasbridge fleet machines")
        self.reason = reason


# A WebSocket client: text messages, over TLS if the address says https. It knows nothing of servers.
#
# wsproto implements the protocol and asyncio moves the bytes: together a sixth of the size of a client library.

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
                with contextlib.ExitStack() as unless_begun:
                    unless_begun.callback(writer.close)
                    link = cls(reader, writer)
                    await link._begin(parts.netloc, parts.path.rstrip("/") + path)
                    unless_begun.pop_all()
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
                raise ChannelError(f"{host} is not a fleet server", "check the address")

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
