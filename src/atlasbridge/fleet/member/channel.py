"""The fleet server as a channel of this hub: the link shows prompts to the server, and decisions go to the gate.

The server proposes a decision, and this hub decides: gate, claim and host work as for any reply. The decision's id is
the request key, so that a decision that is repeated after a lost connection is typed once and gets the same answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from atlasbridge.core.errors import AtlasBridgeError, ChannelError
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ports import LinkApi
from atlasbridge.core.prompt.model import InboundReply, PromptRecord, Receipt, Refusal, Reject, digest_text
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.fleet.member.link import FleetLink
from atlasbridge.fleet.member.membership import RULES, FleetMembership

# Live screens for people at the server: sent while a person looks, and a moment longer; never if forbidden.

LOOK_S = 30.0  # a view ends by itself unless the server renews it
FPS = 3.0
MOST = 8  # sessions that can be viewed at once


class ScreenViewers:
    def __init__(self, server: LinkApi, link: FleetLink, allowed: bool) -> None:
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
                if self._allowed and self._server.shows(session_id):
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


log = logging.getLogger(__name__)

NAME = "server"
LONGEST_RULES = 65_536


class FleetChannel:
    """`check_rules` raises ConfigError for rules that must not be used here."""

    name = NAME
    remote = True

    def __init__(self, membership: FleetMembership, server: LinkApi, check_rules: Callable[[str], object]) -> None:
        self._membership = membership
        self._server = server
        self._check_rules = check_rules
        self._link = FleetLink(server, membership, self._hear, self._rules_digest)
        self._screen_viewers = ScreenViewers(server, self._link, membership.screens)
        self._said: asyncio.Queue[InboundReply] = asyncio.Queue()
        self._deciding: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._spawn(self._link.run(), "server-link")
        self._spawn(self._follow(), "server-follow")

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
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def health(self) -> dict[str, Any]:
        return self._link.health()

    def _spawn(self, work: Any, name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

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
                self._server.server_asks([str(one) for one in message["prompts"]])
            case "limited":
                self._link.notice = escape_controls(str(message["sentence"])[:400], keep_lines=False)
                log.warning("%s", self._link.notice)
            case "again":
                self._link.notice = ""
                self._link.enter_again()
            case "watch":
                self._screen_viewers.watch(str(message["session_id"]), bool(message["on"]))
            case "policy":
                self._spawn(self._take_rules(str(message["digest"]), str(message["text"])), "server-rules")
            case other:
                log.warning("the server said %r, which this version does not know", other)

    def _decide(self, message: dict[str, Any]) -> None:
        decision = str(message["id"])
        if decision in self._deciding:
            return  # the first one is being processed and will be answered
        prompt_id = str(message["prompt_id"])
        if not self._server.told(prompt_id):
            refusal = Reject(Refusal.UNKNOWN_PROMPT, "There is no such prompt.")
            self._spawn(self._tell_outcome(decision, refusal), "server-outcome")
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
