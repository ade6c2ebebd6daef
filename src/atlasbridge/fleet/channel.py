"""The desk as a channel of this hub: it shows what the desk is told by the link, and carries decisions to the gate.

A decision is proposed there and decided here: the hub's gate, claim and host do as with any reply.  Its id is the
request's key, so that the same decision, sent again after a cut, is typed once and gets the same answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from atlasbridge.core.errors import AtlasBridgeError
from atlasbridge.core.ports import LinkDesk
from atlasbridge.core.prompt.model import PromptRecord, Refusal, Reject
from atlasbridge.core.prompt.reply import InboundReply, Receipt
from atlasbridge.core.prompt.subject import digest_text
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.visible import visible
from atlasbridge.fleet.belonging import RULES, Belonging
from atlasbridge.fleet.link import FleetLink
from atlasbridge.fleet.onlookers import Onlookers

log = logging.getLogger(__name__)

NAME = "desk"
LONGEST_RULES = 65_536


class DeskChannel:
    """`check_rules` raises ConfigError for rules that must not be used here."""

    name = NAME
    remote = True

    def __init__(self, belonging: Belonging, desk: LinkDesk, check_rules: Callable[[str], object]) -> None:
        self._belonging = belonging
        self._desk = desk
        self._check_rules = check_rules
        self._link = FleetLink(desk, belonging, self._hear, self._rules_digest)
        self._onlookers = Onlookers(desk, self._link, belonging.screens)
        self._said: asyncio.Queue[InboundReply] = asyncio.Queue()
        self._deciding: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._spawn(self._link.run(), "desk-link")
        self._spawn(self._follow(), "desk-follow")

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
        """Whoever looks at the desk sees the prompts themselves."""

    async def tell_digest(self, key: str, text: str, loud: bool) -> None:
        """The desk has a list of its own."""

    async def close(self) -> None:
        self._onlookers.close()
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
        """Whatever happens in this hub may have left something in the outbox."""
        while True:
            async for _ in self._desk.events():
                self._link.poke()
            await asyncio.sleep(0.1)  # it lost its place in a flood: it takes a new one

    # what the desk says

    def _hear(self, message: dict[str, Any]) -> None:
        match message["m"]:
            case "decision":
                self._decide(message)
            case "asks":
                self._desk.desk_asks([str(one) for one in message["prompts"]])
            case "watch":
                self._onlookers.watch(str(message["session_id"]), bool(message["on"]))
            case "policy":
                self._spawn(self._take_rules(str(message["digest"]), str(message["text"])), "desk-rules")
            case other:
                log.warning("the desk said %r, which this version does not know", other)

    def _decide(self, message: dict[str, Any]) -> None:
        decision = str(message["id"])
        if decision in self._deciding:
            return  # the first of them is under way and will be answered
        prompt_id = str(message["prompt_id"])
        if not self._desk.told(prompt_id):
            refusal = Reject(Refusal.UNKNOWN_PROMPT, "There is no such prompt.")
            self._spawn(self._tell_outcome(decision, refusal), "desk-outcome")
            return
        self._deciding.add(decision)
        who = visible(str(message["by"])[:80], keep_lines=False)
        self._said.put_nowait(
            InboundReply(
                channel=NAME,
                identity=f"{NAME}:{who}",
                prompt_id=prompt_id,
                value=str(message["value"]),
                as_text=bool(message.get("as_text")),
                place=visible(str(message.get("place") or "the desk")[:80], keep_lines=False),
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

    # rules of the desk

    def _rules_digest(self) -> str:
        try:
            return digest_text(self._rules_path.read_text(encoding="utf-8"))
        except OSError:
            return ""

    @property
    def _rules_path(self) -> Path:
        return self._desk.home / RULES

    async def _take_rules(self, digest: str, text: str) -> None:
        """Written down, then used.  What is wrong, or not what it says it is, changes nothing and is told."""
        try:
            fault = self._refuse_rules(digest, text)
            if not fault:
                self._desk.use_rules(self._rules_path, text, digest)
        except (AtlasBridgeError, OSError) as error:
            fault = str(error)
        await self._link.send("policy", digest=digest if not fault else self._rules_digest(), fault=fault)

    def _refuse_rules(self, digest: str, text: str) -> str:
        if self._belonging.rules == "none":
            return "this machine takes no rules from the desk"
        if len(text) > LONGEST_RULES or digest_text(text) != digest:
            return "the rules are not what their digest says"
        self._check_rules(text)
        return ""
