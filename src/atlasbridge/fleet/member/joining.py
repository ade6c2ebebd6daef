"""Joins and leaves a server, and handles the keys that identify both sides (needs the `fleet` extra)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from atlasbridge.core.errors import ChannelError
from atlasbridge.core.fleet_wire import (
    DEAD_S,
    PATH,
    Invitation,
    crosses_in_the_clear,
    decode_message,
    encode_message,
    from_text,
    rotation_text,
    signing_text,
    to_text,
)
from atlasbridge.core.ids import new_nonce
from atlasbridge.fleet.member.membership import FleetMembership
from atlasbridge.fleet.member.websocket import WebSocket

# This machine's Ed25519 key, and how the server's key is verified.


def new_key() -> str:
    return to_text(Ed25519PrivateKey.generate().private_bytes_raw())


def public_of(key: str) -> str:
    return to_text(_private(key).public_key().public_bytes_raw())


def sign(key: str, text: bytes) -> str:
    return to_text(_private(key).sign(text))


def is_signed(public_key: str, signature: str, text: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(from_text(public_key)).verify(from_text(signature), text)
    except (InvalidSignature, ValueError):
        return False
    return True


def _private(key: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(from_text(key))


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
    nonce = new_nonce()
    challenge = await hear(link, "challenge")
    server_key = follow_key(membership.server_key, challenge)
    text = signing_text("enter", str(challenge["nonce"]), membership.machine_id, server_key)
    proof = {"machine": membership.machine_id, "nonce": nonce, "signature": sign(membership.key, text)}
    await link.send(encode_message("enter", **proof, **{**about, **recall()}))
    welcome = await hear(link, "welcome", "recall")
    if welcome["m"] == "recall":
        await link.send(encode_message("recalled", nonce=welcome["nonce"], **recall()))
        welcome = await hear(link, "welcome")
    if not is_signed(server_key, str(welcome["signature"]), signing_text("welcome", nonce, membership.machine_id)):
        raise ChannelError("another server answers there than the one this machine joined", "check the network")
    return {**welcome, "server_key": server_key}


async def ask_heads(membership: FleetMembership) -> list[str]:
    """The heads of this machine's audit log that the server has kept, as `COUNT:HASH`."""
    link = await dial(membership.url, membership.ca)
    try:
        nonce = new_nonce()
        challenge = await hear(link, "challenge")
        server_key = follow_key(membership.server_key, challenge)
        text = signing_text("heads", str(challenge["nonce"]), membership.machine_id, server_key)
        proof = {"machine": membership.machine_id, "nonce": nonce, "signature": sign(membership.key, text)}
        await link.send(encode_message("heads", **proof))
        answer = await hear(link, "heads")
    finally:
        await link.close()
    heads = [str(one) for one in answer["heads"]]
    if not is_signed(server_key, str(answer["signature"]), signing_text("heads", nonce, membership.machine_id, *heads)):
        raise ChannelError("another server answers there than the one this machine joined", "check the network")
    return heads


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
        raise ChannelError("it does not speak like a server", "check the address") from None
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
