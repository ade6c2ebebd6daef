"""The link to the server: connects, keeps the connection alive, reconnects. It sends the outbox and receives decisions.

Nothing is decided here. Messages without an acknowledgement are sent again; `channel.py` recognises duplicates from the
server. The number of unacknowledged batches is limited: a slow server slows the link, and nothing else.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from random import random
from socket import gethostname
from typing import Any

from atlasbridge import __version__
from atlasbridge.core.errors import ChannelError, StoreError
from atlasbridge.core.fleet_wire import BATCH, BEAT_S, DEAD_S, decode_message, encode_message
from atlasbridge.core.ports import LinkApi
from atlasbridge.core.values import replace
from atlasbridge.fleet.member.joining import RefusedByServer, dial, enter
from atlasbridge.fleet.member.membership import FleetMembership, write_membership
from atlasbridge.fleet.member.websocket import WebSocket

log = logging.getLogger(__name__)

WINDOW = 4  # unacknowledged batches
GATHER_S = 0.01  # events that happen together are sent together
BATCH_CHARACTERS = 1_000_000
FIRST_RETRY_S, LAST_RETRY_S, SENT_AWAY_S, HELD_S = 0.5, 30.0, 300.0, 15.0
HELD = ("restored", "cloned")  # a person must decide, then it continues
PROOF_LINES = 500

Hear = Callable[[dict[str, Any]], None]


class FleetLink:
    """`hear` gets every message that is not about the link itself."""

    def __init__(
        self, server: LinkApi, membership: FleetMembership, hear: Hear, rules_digest: Callable[[], str]
    ) -> None:
        self._server = server
        self._membership = membership
        self._hear = hear
        self._rules_digest = rules_digest
        self._socket: WebSocket | None = None
        self._poked = asyncio.Event()
        self._again = asyncio.Event()
        self._sent = 0
        self._epoch = ""
        self._under_way: deque[int] = deque()
        self._whole_at: int | None = None  # after this number, everything open was sent
        self.fault = "not connected yet"
        self.notice = ""
        self._dials = 0

    @property
    def connected(self) -> bool:
        return self._socket is not None

    def poke(self) -> None:
        """There could be something in the outbox."""
        self._poked.set()

    def enter_again(self) -> None:
        """Reconnect, so that both sides compare the open prompts again."""
        self._again.set()

    async def run(self) -> None:
        delay_s = FIRST_RETRY_S
        while True:
            self._dials += 1
            try:
                await self._live()
                delay_s = FIRST_RETRY_S
            except RefusedByServer as error:
                self.fault, delay_s = str(error), HELD_S if error.reason in HELD else SENT_AWAY_S
                log.error("the server refuses this machine: %s", error)
            except ChannelError as error:
                if not self.fault:
                    delay_s = FIRST_RETRY_S  # it was connected until now
                    log.warning("the link to the server ended: %s", error)
                self.fault = str(error)
            await asyncio.sleep(delay_s * (0.5 + random()))
            delay_s = min(delay_s * 2, LAST_RETRY_S)

    async def _live(self) -> None:
        socket = await dial(self._membership.url, self._membership.ca)
        try:
            welcome = await self._enter(socket)
            self._socket, self.fault = socket, ""
            log.info("connected to the server at %s", self._membership.url)
            self._server.heard_of_server(bool(welcome.get("chats")))
            await self._agree(socket, welcome)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._send_outbox(socket), name="server-outbox")
                group.create_task(self._receive(socket), name="server-inbound")
                group.create_task(self._beat(socket), name="server-beat")
                group.create_task(self._end_on_request(), name="server-again")
        except* ChannelError as group_error:
            raise _first(group_error) from None
        finally:
            self._socket = None
            await socket.close()

    async def _agree(self, socket: WebSocket, welcome: dict[str, Any]) -> None:
        """Agree whether both sides continue where they were. The token of this connection is stored before the server
        relies on it."""
        token, epoch = str(welcome["token"]), str(welcome["epoch"])
        self._whole_at = None
        try:
            if epoch != self._epoch:
                self._whole_at = self._begin_anew(epoch, str(welcome.get("notice", "")), welcome.get("open", []))
            else:
                self._acknowledged(int(welcome["acked"]))
            self._server.meet(token)
        except StoreError as error:
            raise ChannelError(f"this hub cannot write to its store: {error}", "it tries again") from None
        await socket.send(encode_message("entered", token=token))
        if self._whole_at is not None and not self._server.backlog():
            await self._tell_whole(socket)

    def _begin_anew(self, epoch: str, notice: str, known: list[Any]) -> int:
        if notice:
            log.warning("%s", notice)
            self.notice = notice
        last = self._server.tell_again(epoch, notice, [str(one) for one in known])
        self._epoch = epoch
        return last

    async def _tell_whole(self, socket: WebSocket) -> None:
        self._whole_at = None
        await socket.send(encode_message("told"))

    async def _enter(self, socket: WebSocket) -> dict[str, Any]:
        self._epoch = self._server.join(self._membership.machine_id)
        self._under_way.clear()
        self._sent = 0
        welcome = await enter(
            socket,
            self._membership,
            self._recall,
            host=gethostname(),
            version=__version__,
            policy=self._rules_digest(),
            screens=self._membership.screens,
            head=list(self._server.audit_head()),
        )
        if welcome["server_key"] != self._membership.server_key:
            self._membership = replace(self._membership, server_key=str(welcome["server_key"]))
            write_membership(self._server.home, self._membership)
            log.info("the server has a new key, which its old one has signed")
        return welcome

    def _recall(self) -> dict[str, Any]:
        return {"epoch": self._epoch, **self._server.meeting()}

    async def send(self, kind: str, **fields: Any) -> bool:
        """Return False if there is no connection now."""
        socket = self._socket
        if socket is None:
            return False
        try:
            await socket.send(encode_message(kind, **fields))
        except ChannelError:
            return False
        return True

    async def _send_outbox(self, socket: WebSocket) -> None:
        while True:
            self._poked.clear()
            items = self._next_items() if len(self._under_way) < WINDOW else []
            if not items:
                await self._poked.wait()
                await asyncio.sleep(GATHER_S)
                continue
            self._sent = items[-1]["seq"]
            self._under_way.append(self._sent)
            await socket.send(encode_message("up", seq=self._sent, items=items, head=list(self._server.audit_head())))
            if self._whole_at is not None and self._sent >= self._whole_at:
                await self._tell_whole(socket)

    def _next_items(self) -> list[dict[str, Any]]:
        items, size = [], 0
        for item in self._server.to_tell(self._sent, BATCH):
            items.append(item)
            size += len(str(item))
            if size > BATCH_CHARACTERS:
                break
        return items

    async def _receive(self, socket: WebSocket) -> None:
        while True:
            try:
                async with asyncio.timeout(DEAD_S):
                    text = await socket.receive()
            except TimeoutError:
                raise ChannelError("the server has not been heard for too long") from None
            if text is None:
                raise ChannelError("the server closed the link")
            await self._take(text)

    async def _take(self, text: str) -> None:
        try:
            message = decode_message(text)
            self._server.heard_of_server(bool(message["chats"]) if "chats" in message else None)
            match message["m"]:
                case "ack":
                    self._acknowledged(int(message["seq"]))
                case "beat":
                    pass
                case "prove":
                    await self._prove(int(message["after"]), str(message["request"]))
                case "refused":
                    raise RefusedByServer(str(message["sentence"]), str(message["reason"]))
                case _:
                    self._hear(message)
        except (ValueError, KeyError, TypeError) as error:
            raise ChannelError(f"the server said something that makes no sense: {error!r}") from None

    def _acknowledged(self, seq: int) -> None:
        while self._under_way and self._under_way[0] <= seq:
            self._under_way.popleft()
        self._sent = max(self._sent, seq)
        try:
            self._server.acknowledge(seq)
        except StoreError as error:  # sent again after the next start, which is harmless
            log.warning("what the server has taken could not be noted: %s", error)
        self._poked.set()

    async def _prove(self, after: int, request: str) -> None:
        lines = self._server.audit_lines(after, PROOF_LINES)
        await self.send("proof", request=request, lines=lines, head=list(self._server.audit_head()))

    async def _beat(self, socket: WebSocket) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            await socket.send(encode_message("beat", head=list(self._server.audit_head())))

    async def _end_on_request(self) -> None:
        self._again.clear()
        await self._again.wait()
        raise ChannelError("the server wants to hear again what is open")

    def health(self) -> dict[str, Any]:
        state = {"state": "ok" if self.connected else "cut off", "url": self._membership.url}
        told = {"fault": self.fault, "notice": self.notice}
        return {
            **state,
            **{name: text for name, text in told.items() if text},
            "waiting": self._server.backlog(),
            "machine": self._membership.name,
        }


def _first(group: BaseExceptionGroup[ChannelError]) -> ChannelError:
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    assert isinstance(found, ChannelError)
    return found
