"""The server's side of one machine's connection: it authenticates the machine, takes its messages and sends it
decisions and requests.

Each machine has one link. A new link replaces the old one, even if that one is in another process.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from atlasbridge.core.errors import StoreError
from atlasbridge.core.fleet_wire import BEAT_S, DEAD_S, decode_message, encode_message, signing_text
from atlasbridge.core.ids import new_nonce
from atlasbridge.core.operations import Refused
from atlasbridge.core.values import frozen
from atlasbridge.fleet.keys import is_signed
from atlasbridge.fleet.server import audit, decisions, machines, reports
from atlasbridge.fleet.server.context import ServerContext
from atlasbridge.fleet.server.database import BOARD, Database, called_within, carried
from atlasbridge.fleet.server.machines import Entered, Identity
from atlasbridge.fleet.server.reports import Fenced

# The work for a machine's link besides decisions. One query finds it for all links of this process.

_LOOK = """
SELECT m.id, m.generation, m.proved_count AS proved,
       ARRAY(SELECT p.prompt_id FROM prompts p WHERE p.machine_id = m.id AND p.is_open AND p.chats_ask) AS asks,
       ARRAY(SELECT p.id FROM proofs p WHERE p.machine_id = m.id AND p.done_at IS NULL) AS proofs,
       EXISTS (SELECT 1 FROM looks l WHERE l.machine_id = m.id)
       OR EXISTS (SELECT 1 FROM screens s WHERE s.machine_id = m.id) AS is_watched,
       coalesce((SELECT r.digest FROM rulebook r ORDER BY r.made_at DESC LIMIT 1), '') AS rules
FROM machines m WHERE m.id = ANY(%s) AND m.gone_at IS NULL
"""


@frozen
class PendingWork:
    asks: frozenset[str]  # open prompts about which a chat of the server asks
    proofs: list[str]  # open requests to prove its audit log
    proved: int  # how many entries of that log are verified
    is_watched: bool  # a person watches one of its screens, or did
    rules: str  # the digest of the newest rules


async def look(database: Database, entered: Entered) -> PendingWork | None:
    """The pending work. None means that another link has replaced this one or that the machine was removed."""
    return await database.together(_look, entered)


async def _look(database: Database, links: list[Entered]) -> list[PendingWork | None]:
    found = await database.rows(_LOOK, [one.machine_id for one in links])
    current = {(one.pop("id"), one.pop("generation")): PendingWork(frozenset(one.pop("asks")), **one) for one in found}
    return [current.get((one.machine_id, one.generation)) for one in links]


log = logging.getLogger(__name__)

NONSENSE = (ValueError, KeyError, TypeError, OverflowError)  # what an invalid message can raise
KINDS = frozenset(["entered", "up", "told", "outcome", "beat", "proof", "screen", "notice", "policy", "leave"])
PART_AGAIN_S = (0.5, 1.0, 5.0, 20.0)
LOOK_S = 5.0  # how often each link checks for work without a notification


class _TurnedAway(Exception):
    """The machine is refused; the connection ends after it was told why."""

    def __init__(self, why: Refused) -> None:
        super().__init__(why.message)
        self.why = why


async def serve_link(context: ServerContext, socket: WebSocket) -> None:
    """Serve one connection from its challenge to its end."""
    await socket.accept()
    try:
        nonce, identity = new_nonce(), await context.read_identity()
        about = {"server": identity.public_key, "keys": [list(one) for one in identity.keys]}
        await socket.send_text(encode_message("challenge", nonce=nonce, **about))
        first = await _hear(socket)
        begin = {"join": _join, "enter": _enter, "heads": _tell_heads}.get(str(first["m"]))
        try:
            if begin is not None:
                await begin(context, socket, first, nonce, identity)
        except _TurnedAway as turned:
            await socket.send_text(encode_message("refused", reason=turned.why.reason, sentence=turned.why.message))
        await socket.close()
    except (WebSocketDisconnect, TimeoutError, RuntimeError):
        pass  # the machine disconnected; it will connect again
    except NONSENSE as error:
        log.warning("a machine said something that makes no sense: %.300r", error)
        await _end(socket, 1003)
    except StoreError as error:
        log.warning("a link ended: %s", error)
        await _end(socket, 1013)


async def _end(socket: WebSocket, code: int) -> None:
    try:
        await socket.close(code)
    except (RuntimeError, WebSocketDisconnect):
        pass  # the machine has closed it already


async def _hear(socket: WebSocket) -> dict[str, Any]:
    async with asyncio.timeout(DEAD_S):
        return decode_message(await socket.receive_text())


async def _join(
    context: ServerContext, socket: WebSocket, message: dict[str, Any], nonce: str, identity: Identity
) -> None:
    token, key = str(message["token"]), str(message["key"])
    if not is_signed(key, str(message["signature"]), signing_text("join", nonce, token, key)):
        raise _TurnedAway(Refused("bad_signature", "This machine does not have the key it names."))
    wanted = bool(message.get("ephemeral"))
    joined = await machines.join(context.database, token, str(message["name"]), key, wanted)
    if isinstance(joined, Refused):
        raise _TurnedAway(joined)
    machine_id, name = joined
    signature = identity.sign(signing_text("joined", str(message["nonce"]), machine_id))
    await socket.send_text(encode_message("joined", machine=machine_id, name=name, signature=signature))
    context.wakeups.tell(BOARD)


async def _recognise(context: ServerContext, message: dict[str, Any], nonce: str, identity: Identity) -> str:
    """Check that the machine has the key with which it joined. Returns its id."""
    machine_id = str(message["machine"])
    key = await machines.key_of(context.database, machine_id)
    text = signing_text(str(message["m"]), nonce, machine_id, identity.public_key)
    if not isinstance(key, Refused) and not is_signed(key, str(message["signature"]), text):
        key = Refused("bad_signature", "This machine does not have the key it joined with.")
    if isinstance(key, Refused):
        await machines.refuse_entry(context.database, machine_id, key.reason)
        raise _TurnedAway(key)
    return machine_id


async def _tell_heads(
    context: ServerContext, socket: WebSocket, message: dict[str, Any], nonce: str, identity: Identity
) -> None:
    """Send the machine the heads of its log that are stored here, for `audit verify`."""
    machine_id = await _recognise(context, message, nonce, identity)
    heads = await audit.newest_heads(context.database, machine_id)
    signature = identity.sign(signing_text("heads", str(message["nonce"]), machine_id, *heads))
    await socket.send_text(encode_message("heads", heads=heads, signature=signature))


async def _enter(
    context: ServerContext, socket: WebSocket, message: dict[str, Any], nonce: str, identity: Identity
) -> None:
    machine_id = await _recognise(context, message, nonce, identity)
    address = socket.client.host if socket.client else ""
    entered = await machines.enter(context.database, machine_id, message, context.name, address, is_there=False)
    if isinstance(entered, Refused) and entered.reason == machines.ARE_YOU_THERE:
        message |= await _ask_again(socket)
        entered = await machines.enter(context.database, machine_id, message, context.name, address)
    context.wakeups.tell(f"job:{machine_id}", BOARD)
    if isinstance(entered, Refused):
        raise _TurnedAway(entered)
    signature = identity.sign(signing_text("welcome", str(message["nonce"]), machine_id))
    chats = await carried(context.database)
    welcome = {"signature": signature, "acked": entered.acked, "beat_s": BEAT_S, "chats": chats}
    welcome |= {"epoch": entered.epoch, "token": entered.token, "notice": entered.notice}
    welcome |= {"open": list(entered.opened)}
    await socket.send_text(encode_message("welcome", **welcome))
    if message.get("leaving"):
        await _leave(context, socket, entered)
    else:
        await MachineLink(context, socket, entered).run(message)


async def _ask_again(socket: WebSocket) -> dict[str, Any]:
    """Ask the machine for its state again. Only a live connection answers, so an old message that arrives late does not
    count.
    """
    nonce = new_nonce()
    await socket.send_text(encode_message("recall", nonce=nonce))
    said = await _hear(socket)
    if said["m"] != "recalled" or said.get("nonce") != nonce:
        raise ValueError("it was asked what it remembers")
    return {name: said[name] for name in ("token", "digest", "told_until", "newest", "epoch") if name in said}


async def _leave(context: ServerContext, socket: WebSocket, entered: Entered) -> None:
    if (await _hear(socket))["m"] == "leave":
        await machines.remove(context.database, entered.machine_id, "itself", "left")
        context.wakeups.tell(BOARD)
        await socket.send_text(encode_message("ack", seq=0))


class MachineLink:
    def __init__(self, context: ServerContext, socket: WebSocket, entered: Entered) -> None:
        self._context = context
        self._socket = socket
        self._entered = entered
        self._sent: set[str] = set()  # decisions that were sent on this link and have no outcome yet
        self._asked: set[str] = set()  # proofs that were requested on this link
        self._asks: frozenset[str] = frozenset()  # the same, as far as the machine knows
        self._rules = ""
        self._is_full = False
        self._acked = entered.acked
        self._breaks = context.wakeups.breaks
        self._watched: set[str] = set()

    async def run(self, first: dict[str, Any]) -> None:
        self._rules = str(first.get("policy", ""))
        self._context.links += 1
        try:
            async with self._context.database.transaction() as connection:
                now = self._context.database.now()
                await audit.look_at_head(
                    connection, self._entered.machine_id, audit.read_head(first.get("head")), now, always=True
                )
            async with asyncio.TaskGroup() as group:
                notification = group.create_task(self._tell_loop(), name="tell")
                await self._hear_loop()
                notification.cancel()
        except* (Fenced, WebSocketDisconnect, TimeoutError, RuntimeError):
            pass  # the machine was removed, replaced by a newer link or disconnected
        except* (*NONSENSE, StoreError) as group:
            fault = group.exceptions[0]
            log.warning("the link of %s ended: %.300r", self._entered.machine_id, fault)
            await _end(self._socket, 1013 if isinstance(fault, StoreError) else 1003)
        finally:
            self._context.links -= 1
            await self._part()
            self._context.wakeups.tell(BOARD)

    async def _part(self) -> None:
        """Record that the machine has no link here. It may have ended because the database is away."""
        for pause_s in PART_AGAIN_S:
            try:
                return await machines.parted(self._context.database, self._entered)
            except StoreError:
                await asyncio.sleep(pause_s)
        return log.warning("%s is still listed as connected: the database is away", self._entered.machine_id)

    # messages from the machine

    async def _hear_loop(self) -> None:
        while True:
            message = await _hear(self._socket)
            if await self._take(message):
                return

    async def _take(self, message: dict[str, Any]) -> bool:
        """Handle one message. Returns True when the machine leaves the fleet."""
        context, entered = self._context, self._entered
        context.metrics.messages.labels(message["m"] if message["m"] in KINDS else "other").inc()
        match message["m"]:
            case "up":
                opened = await reports.take(context.database, entered, message, self._acked)
                self._acked = max(self._acked, int(message["seq"]))
                await self._send("ack", seq=int(message["seq"]))
                await self._mind_limit(opened)
                context.wakeups.tell(BOARD)
            case "entered":
                await machines.confirm(context.database, entered, str(message["token"]))
            case "told":
                await machines.sweep(context.database, entered)
                context.wakeups.tell(BOARD)
            case "outcome":
                await decisions.settle(context.database, entered, message)
                self._sent.discard(str(message["id"]))
                context.wakeups.tell(f"decision:{message['id']}", BOARD)
            case "beat":
                alive = {**message, "seq": 0, "items": ()}
                opened = await reports.take(context.database, entered, alive, self._acked)
                await self._mind_limit(opened)
                await self._send("beat", chats=await carried(context.database))
            case "proof":
                progress = await audit.take_proof(context.database, entered.machine_id, message)
                if progress.more:
                    await self._send("prove", request=message["request"], after=progress.head.entries)
                else:
                    context.wakeups.tell(f"proof:{message['request']}")
            case "screen":
                await reports.take_screen(context.database, entered, message)
                context.wakeups.tell(f"screen:{entered.machine_id}:{message['session_id']}")
            case "notice":
                await reports.take_notice(context.database, entered, str(message["message"]))
                context.wakeups.tell(BOARD)
            case "policy":
                await machines.rules_taken(context.database, entered, message)
                context.wakeups.tell(BOARD)
            case "leave":
                await machines.remove(context.database, entered.machine_id, "itself", "left")
                await self._send("ack", seq=0)
                return True
        return False

    async def _mind_limit(self, opened: int) -> None:
        """Tell the machine when it reaches the limit of open reports. When there is room again, it sends everything
        again.
        """
        if opened >= reports.MOST_OPEN and not self._is_full:
            self._is_full = True
            await machines.set_limited(self._context.database, self._entered, reports.FULL)
            await self._send("limited", sentence=reports.FULL)
        elif self._is_full and opened < reports.MOST_OPEN * 3 // 4:
            self._is_full = False
            await machines.set_limited(self._context.database, self._entered, "")
            await self._send("again")

    # messages to the machine

    async def _tell_loop(self) -> None:
        """Send decisions as soon as they are made. All other work is rarer and is also checked at regular intervals."""
        wakeups, name = self._context.wakeups, self._entered.machine_id
        rest = (f"job:{name}", f"asks:{name}")
        with wakeups.waiting(f"machine:{name}", *rest) as called, wakeups.waiting(*rest) as job:
            job.set()
            while True:
                called.clear()
                await self._tell_decisions()
                if job.is_set():
                    job.clear()
                    await self._tell_rest()
                if not await called_within(called, LOOK_S):
                    job.set()

    async def _tell_decisions(self) -> None:
        due = await decisions.release(self._context.database, self._entered.machine_id, self._sent)
        for one in due:
            if one["goes"]:
                self._sent.add(one["id"])
                told = {name: one[name] for name in ("id", "prompt_id", "value", "as_text", "place", "passkey")}
                await self._send("decision", **told, by=one["person"], only_known=not one["is_allowed"])
        if not all(one["goes"] for one in due):
            voided = await decisions.void_unallowed(self._context.database, self._entered.machine_id)
            self._context.wakeups.tell(*(f"decision:{one}" for one in voided))

    async def _tell_rest(self) -> None:
        if self._context.wakeups.breaks != self._breaks:
            raise Fenced  # this may be an older copy of the database: both sides compare again
        found = await look(self._context.database, self._entered)
        if found is None:
            raise Fenced
        if fresh := sorted(found.asks - self._asks):
            await self._send("asks", prompts=fresh)
        self._asks = found.asks
        for request in found.proofs:
            if request not in self._asked:
                self._asked.add(request)
                await self._send("prove", request=request, after=found.proved)
        if found.is_watched or self._watched:
            await self._tell_looks()
        if found.rules not in ("", self._rules) and (rules := await machines.newest_rules(self._context.database)):
            self._rules = rules.digest
            await self._send("policy", digest=rules.digest, text=rules.text)

    async def _tell_looks(self) -> None:
        wanted = await reports.watched(self._context.database, self._entered.machine_id)
        for session_id in wanted:
            await self._send("watch", session_id=session_id, on=True)
        for session_id in self._watched - wanted:
            await self._send("watch", session_id=session_id, on=False)
        self._watched = wanted

    async def _send(self, kind: str, **fields: Any) -> None:
        await self._socket.send_text(encode_message(kind, **fields))
