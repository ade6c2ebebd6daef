"""Joining a desk and leaving it: one short conversation each.  What the hub does afterwards is `channel.py`."""

from __future__ import annotations

import asyncio
from typing import Any

from atlasbridge.core.errors import ChannelError
from atlasbridge.core.fleet_wire import (
    DEAD_S,
    PATH,
    Invitation,
    crosses_in_the_clear,
    decode_message,
    encode_message,
    signing_text,
)
from atlasbridge.core.ids import new_nonce
from atlasbridge.fleet.belonging import Belonging
from atlasbridge.fleet.own_key import is_signed, new_key, public_of, sign
from atlasbridge.fleet.websocket import WebSocket


async def join(invitation: Invitation, name: str, *, ca: str, screens: bool, rules: str, ephemeral: bool) -> Belonging:
    """The token is spent when this returns.  ChannelError: the desk refused, or is not the one that invited."""
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
    machine_id = str(answer["machine"])
    if not is_signed(invitation.desk_key, str(answer["signature"]), signing_text("joined", nonce, machine_id)):
        raise ChannelError("another desk answers there than the one that invited", "check the address and the network")
    told = str(answer["name"])
    return Belonging(invitation.url, machine_id, told, key, invitation.desk_key, ca, screens, rules, ephemeral)


async def dial(url: str, ca: str) -> WebSocket:
    """Nothing is said to a desk where somebody in between could answer for it."""
    if crosses_in_the_clear(url):
        raise ChannelError(f"{url} would be spoken to in the clear", "join it again by its https address")
    return await WebSocket.dial(url, PATH, ca)


async def enter(link: WebSocket, belonging: Belonging, **about: Any) -> dict[str, Any]:
    """Both prove who they are; what the desk says to begin with."""
    nonce = new_nonce()
    challenge = await hear(link, "challenge")
    text = signing_text("enter", str(challenge["nonce"]), belonging.machine_id, belonging.desk_key)
    await link.send(
        encode_message("enter", machine=belonging.machine_id, nonce=nonce, signature=sign(belonging.key, text), **about)
    )
    welcome = await hear(link, "welcome")
    if not is_signed(
        belonging.desk_key, str(welcome["signature"]), signing_text("welcome", nonce, belonging.machine_id)
    ):
        raise ChannelError("another desk answers there than the one this machine joined", "check the network")
    return welcome


async def leave(belonging: Belonging) -> None:
    """Say good-bye; ChannelError: the desk was not reached, or had sent this machine away already."""
    link = await dial(belonging.url, belonging.ca)
    try:
        await enter(link, belonging, leaving=True)
        await link.send(encode_message("leave"))
        await hear(link, "ack")
    finally:
        await link.close()


async def hear(link: WebSocket, kind: str) -> dict[str, Any]:
    """The next message, which must be of that kind."""
    try:
        async with asyncio.timeout(DEAD_S):
            text = await link.receive()
    except TimeoutError:
        text = None
    if text is None:
        raise ChannelError("the desk says nothing", "try again; look at the desk's log")
    try:
        message = decode_message(text)
    except ValueError:
        raise ChannelError("it does not speak like a desk", "check the address") from None
    if message["m"] == "refused":
        raise RefusedByDesk(str(message.get("sentence", "the desk refuses")), str(message.get("reason", "")))
    if message["m"] != kind:
        raise ChannelError("the desk speaks another version", "are both the same version of AtlasBridge?")
    return message


class RefusedByDesk(ChannelError):
    """It answered, and said no; `reason` is for machines."""

    def __init__(self, sentence: str, reason: str) -> None:
        super().__init__(sentence, "ask who runs the desk: atlasbridge desk machines")
        self.reason = reason
