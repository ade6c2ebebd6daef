"""The fleet server as a channel of this hub: the link shows prompts to the server, and decisions go to the gate.

The server proposes a decision, and this hub decides: gate, claim and host work as for any reply. The decision's id is
the request key, so that a decision that is repeated after a lost connection is typed once and gets the same answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from pathlib import Path
from random import random
from socket import gethostname
from typing import Any

from atlasbridge import __version__
from atlasbridge.channels.base import TaskSet
from atlasbridge.core.daemon.hub_api import LocalHubApi
from atlasbridge.core.errors import AtlasBridgeError, ChannelError, StoreError, first_of
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.fleet_wire import BATCH, BEAT_S, DEAD_S, decode_message, encode_message
from atlasbridge.core.prompt.gate import UNKNOWN
from atlasbridge.core.prompt.model import InboundReply, PromptRecord, Receipt, Reject, digest_text
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.values import replace
from atlasbridge.fleet.member.joining import RefusedByServer, WebSocket, dial, enter
from atlasbridge.fleet.member.membership import RULES, FleetMembership, write_membership

log = logging.getLogger(__name__)

# The link to the server: connects, keeps the connection alive, reconnects. It sends the outbox and receives decisions.
#
# Nothing is decided here. Messages without an acknowledgement are sent again; the channel recognises duplicates from
# the server. The number of unacknowledged batches is limited: a slow server slows the link, and nothing else.

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
        self, server: LocalHubApi, membership: FleetMembership, hear: Hear, rules_digest: Callable[[], str]
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
            self._server.server_contacted(bool(welcome.get("chats")))
            await self._agree(socket, welcome)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._send_outbox(socket), name="server-outbox")
                group.create_task(self._receive(socket), name="server-inbound")
                group.create_task(self._beat(socket), name="server-beat")
                group.create_task(self._end_on_request(), name="server-again")
        except* ChannelError as group_error:
            raise first_of(group_error) from None
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
            self._server.ledger.membership.meet(token)
        except StoreError as error:
            raise ChannelError(f"this hub cannot write to its store: {error}", "it tries again") from None
        await socket.send(encode_message("entered", token=token))
        if self._whole_at is not None and not self._server.ledger.membership.backlog():
            await self._tell_whole(socket)

    def _begin_anew(self, epoch: str, notice: str, known: list[Any]) -> int:
        if notice:
            log.warning("%s", notice)
            self.notice = notice
        last = self._server.ledger.membership.tell_again(epoch, notice, [str(one) for one in known])
        self._epoch = epoch
        return last

    async def _tell_whole(self, socket: WebSocket) -> None:
        self._whole_at = None
        await socket.send(encode_message("told"))

    async def _enter(self, socket: WebSocket) -> dict[str, Any]:
        self._epoch = self._server.ledger.membership.begin(self._membership.machine_id)
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
            head=list(self._server.ledger.audit_head()),
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
            head = list(self._server.ledger.audit_head())
            await socket.send(encode_message("up", seq=self._sent, items=items, head=head))
            if self._whole_at is not None and self._sent >= self._whole_at:
                await self._tell_whole(socket)

    def _next_items(self) -> list[dict[str, Any]]:
        items, size = [], 0
        for item in self._server.changes_to_send(self._sent, BATCH):
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
            self._server.server_contacted(bool(message["chats"]) if "chats" in message else None)
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
            self._server.ledger.membership.acknowledge(seq)
        except StoreError as error:  # sent again after the next start, which is harmless
            log.warning("what the server has taken could not be noted: %s", error)
        self._poked.set()

    async def _prove(self, after: int, request: str) -> None:
        lines = self._server.ledger.membership.audit_lines(after, PROOF_LINES)
        await self.send("proof", request=request, lines=lines, head=list(self._server.ledger.audit_head()))

    async def _beat(self, socket: WebSocket) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            await socket.send(encode_message("beat", head=list(self._server.ledger.audit_head())))

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
            "waiting": self._server.ledger.membership.backlog(),
            "machine": self._membership.name,
        }


# Live screens for people at the server: sent while a person looks, and a moment longer; never if forbidden.

LOOK_S = 30.0  # a view ends by itself unless the server renews it
FPS = 3.0
MOST = 8  # sessions that can be viewed at once


class ScreenViewers:
    def __init__(self, server: LocalHubApi, link: FleetLink, allowed: bool) -> None:
        self._server = server
        self._link = link
        self._allowed = allowed
        self._looks: dict[str, asyncio.Task[None]] = {}
        self._limits: dict[str, asyncio.Timeout] = {}

    def watch(self, session_id: str, on: bool) -> None:
        if not on:
            self._end(session_id)
        elif session_id in self._limits:
            self._limits[session_id].reschedule(asyncio.get_running_loop().time() + LOOK_S)
        elif session_id not in self._looks and len(self._looks) < MOST:
            self._looks[session_id] = asyncio.create_task(self._show(session_id), name="server-screen")

    def close(self) -> None:
        for session_id in tuple(self._looks):
            self._end(session_id)

    def _end(self, session_id: str) -> None:
        if session_id in self._looks:
            self._looks.pop(session_id).cancel()

    async def _show(self, session_id: str) -> None:
        try:
            async with asyncio.timeout(LOOK_S) as limit:
                self._limits[session_id] = limit
                if self._allowed and self._server.can_share_session(session_id):
                    await self._send_all(session_id)
        except TimeoutError:
            pass  # the view has ended
        finally:
            self._looks.pop(session_id, None)
            self._limits.pop(session_id, None)
        await self._link.send("screen", session_id=session_id, screen=None, allowed=self._allowed)

    async def _send_all(self, session_id: str) -> None:
        screens = self._server.watch(session_id, FPS)
        try:
            async for screen in screens:
                await self._link.send("screen", session_id=session_id, screen=_plain(screen), allowed=True)
        finally:
            await screens.aclose()


def _plain(screen: dict[str, Any]) -> dict[str, Any]:
    """Only rows of text, because the page needs no colours."""
    styled = screen.get("styled")
    lines = screen.get("lines") or ["".join(run[0] for run in row) for row in styled or ()]
    return {"rows": screen.get("rows"), "cols": screen.get("cols"), "lines": lines, "title": screen.get("title", "")}


NAME = "server"
LONGEST_RULES = 65_536


class FleetChannel:
    """`check_rules` raises ConfigError for rules that must not be used here."""

    name = NAME
    remote = True

    def __init__(self, membership: FleetMembership, server: LocalHubApi, check_rules: Callable[[str], object]) -> None:
        self._membership = membership
        self._server = server
        self._check_rules = check_rules
        self._link = FleetLink(server, membership, self._hear, self._rules_digest)
        self._screen_viewers = ScreenViewers(server, self._link, membership.screens)
        self._said: asyncio.Queue[InboundReply] = asyncio.Queue()
        self._deciding: set[str] = set()
        self._tasks = TaskSet(NAME)

    async def start(self) -> None:
        self._tasks.hold(self._link.run())
        self._tasks.hold(self._follow())

    async def send_prompt(self, event: PromptRecord, session: SessionRecord) -> str:
        self._link.poke()
        return event.prompt_id

    async def receive_reply(self) -> InboundReply:
        return await self._said.get()

    async def answer_reply(self, reply: InboundReply, outcome: Receipt | Reject) -> None:
        self._deciding.discard(str(reply.token))
        self._link.poke()
        await self._tell_outcome(str(reply.token), outcome)

    async def update_prompt(self, message_id: str, event: PromptRecord, receipt: Receipt) -> None:
        self._link.poke()

    async def notify(self, message: str, session: SessionRecord | None = None) -> None:
        """Send a notice of a person or a program. The server learns about sessions by itself."""
        if session is None and not await self._link.send("notice", message=message):
            raise ChannelError("the fleet server is not connected", "it is told once it is")

    async def tell_digest(self, key: str, text: str, loud: bool) -> None:
        """The server has its own list."""

    async def close(self) -> None:
        self._screen_viewers.close()
        await self._tasks.close()

    def health(self) -> dict[str, Any]:
        return self._link.health()

    async def _follow(self) -> None:
        """Every event of this hub can have added something to the outbox."""
        while True:
            async for _ in self._server.events():
                self._link.poke()
            await asyncio.sleep(0.1)  # it was dropped in a flood of events, and subscribes again

    # messages from the server

    def _hear(self, message: dict[str, Any]) -> None:
        match message["m"]:
            case "decision":
                self._decide(message)
            case "asks":
                self._server.server_notifies([str(one) for one in message["prompts"]])
            case "limited":
                self._link.notice = escape_controls(str(message["sentence"])[:400], keep_lines=False)
                log.warning("%s", self._link.notice)
            case "again":
                self._link.notice = ""
                self._link.enter_again()
            case "watch":
                self._screen_viewers.watch(str(message["session_id"]), bool(message["on"]))
            case "policy":
                self._tasks.hold(self._take_rules(str(message["digest"]), str(message["text"])))
            case other:
                log.warning("the server said %r, which this version does not know", other)

    def _decide(self, message: dict[str, Any]) -> None:
        decision = str(message["id"])
        if decision in self._deciding:
            return  # the first one is being processed and will be answered
        prompt_id = str(message["prompt_id"])
        if not self._server.can_share_prompt(prompt_id):
            self._tasks.hold(self._tell_outcome(decision, UNKNOWN))
            return
        self._deciding.add(decision)
        who = escape_controls(str(message["by"])[:80], keep_lines=False)
        self._said.put_nowait(
            InboundReply(
                channel=NAME,
                identity=f"{NAME}:{who}",
                prompt_id=prompt_id,
                value=str(message["value"]),
                as_text=bool(message.get("as_text")),
                place=escape_controls(str(message.get("place") or "the server")[:80], keep_lines=False),
                request_key=decision,
                passkey=dict(message.get("passkey") or {}),  # the gate checks it; the server's word counts for nothing
                only_known=bool(message.get("only_known")),
                token=decision,
            )
        )

    async def _tell_outcome(self, decision: str, outcome: Receipt | Reject) -> None:
        if isinstance(outcome, Reject):
            told = {"ok": False, "reason": outcome.reason.value}
        else:
            told = {"ok": True, "stage": outcome.stage, "answer": outcome.answer, "audit_head": outcome.audit_head}
        await self._link.send("outcome", id=decision, sentence=outcome.sentence, **told)

    # rules from the server

    def _rules_digest(self) -> str:
        try:
            return digest_text(self._rules_path.read_text(encoding="utf-8"))
        except OSError:
            return ""

    @property
    def _rules_path(self) -> Path:
        return self._server.home / RULES

    async def _take_rules(self, digest: str, text: str) -> None:
        """Store the rules, then use them. Invalid rules, or a wrong digest, change nothing and are reported."""
        try:
            fault = self._refuse_rules(digest, text)
            if not fault:
                self._server.use_rules(self._rules_path, text, digest)
        except (AtlasBridgeError, OSError) as error:
            fault = str(error)
        await self._link.send("policy", digest=digest if not fault else self._rules_digest(), fault=fault)

    def _refuse_rules(self, digest: str, text: str) -> str:
        if self._membership.rules == "none":
            return "this machine takes no rules from the server"
        if len(text) > LONGEST_RULES or digest_text(text) != digest:
            return "the rules are not what their digest says"
        self._check_rules(text)
        return ""
