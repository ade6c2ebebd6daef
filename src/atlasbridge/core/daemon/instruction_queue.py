"""Instructions that people give while a tool is busy: stored in order, listed, removed, and typed into its next idle
input box.

An instruction is typed only into an idle input box, never into a question, and only into the kind of box for which it
was given: text for an agent must not become a command of the shell below it. It passes the same steps as every reply:
gate, claim, audit, comparison with the screen. The queue is kept in the store's notes and ends with its session.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.clock import iso, local_clock
from atlasbridge.core.daemon.parts import HubParts
from atlasbridge.core.daemon.prompts import PromptLife
from atlasbridge.core.daemon.replies import ReplyService
from atlasbridge.core.escape import escape_controls, is_plain_line
from atlasbridge.core.ids import new_id, short_id
from atlasbridge.core.prompt.answer import INSTRUCTION_LIMIT, quote_answer
from atlasbridge.core.prompt.model import OPEN, InboundReply, PromptRecord, Receipt, Refusal, Reject
from atlasbridge.core.session.model import SessionRecord, SessionState

MOST_QUEUED = 20
LOOKED_BACK = 20  # prompts to search
NEXT_BOX = (Refusal.STALE, Refusal.NOT_OPEN, Refusal.EXPIRED, Refusal.UNAVAILABLE, Refusal.RATE_LIMITED)
Item = dict[str, Any]


class InstructionQueue:
    def __init__(self, hub: HubParts, life: PromptLife, replies: ReplyService) -> None:
        self._hub, self._life, self._replies = hub, life, replies
        self._under_way: dict[str, asyncio.Task[None]] = {}
        life.on_idle = self.offer

    # requests from people

    def add(self, reply: InboundReply) -> Receipt | Reject:
        """Adds an instruction. It belongs to the reply's session, not to a prompt."""
        session = self._hub.ledger.session(reply.session_id)
        if session is None or session.state is not SessionState.ACTIVE:
            return Reject(Refusal.WRONG_SESSION, "That session no longer exists.")
        refusal = self._replies.refuse_stranger(reply) or _bad_text(reply.value)
        items = self._items(session.session_id)
        if refusal is None and len(items) >= MOST_QUEUED:
            refusal = Reject(Refusal.RATE_LIMITED, f"{MOST_QUEUED} instructions wait already; take one back first.")
        if refusal is not None:
            return refusal
        item = self._item(reply)
        self._hub.ledger.note(
            AuditEvent.INSTRUCTION_QUEUED, session_id=session.session_id, decided_by=reply.identity, queue_id=item["id"]
        )
        self._keep(session.session_id, [*items, item])
        for record in self._hub.ledger.open_prompts(session.session_id):
            self.offer(record, session)
        sentence = f"Queued as number {len(items) + 1} ({short_id(item['id'])}): typed at its next idle input box."
        return Receipt("queued", sentence, reply.identity, item["id"])

    def remove(self, reply: InboundReply, beginning: str) -> Receipt | Reject:
        """Removes an instruction by its id or the beginning of its id."""
        if refusal := self._replies.refuse_stranger(reply):
            return refusal
        found = [one for one in self.listed() if beginning and one["queue_id"].startswith(beginning)]
        if len(found) != 1:
            return Reject(Refusal.UNKNOWN_PROMPT, "There is no such instruction, or more than one begins like that.")
        session_id, queue_id = found[0]["session_id"], found[0]["queue_id"]
        if session_id in self._under_way and self._items(session_id)[0]["id"] == queue_id:
            return Reject(Refusal.NOT_OPEN, "It is being typed already.")
        self._drop(session_id, queue_id, "revoked", reply.identity)
        return Receipt("revoked", f"Taken back: {quote_answer(found[0]['text'])} is not typed.", reply.identity)

    def drop(self, gone: Callable[[str], bool]) -> int:
        """Removes the instructions of identities that have lost access."""
        found = [one for one in self.listed() if gone(one["by"])]
        for one in found:
            self._drop(one["session_id"], one["queue_id"], "revoked", one["by"])
        return len(found)

    def listed(self, session_id: str = "") -> list[dict[str, Any]]:
        """Returns the instructions in the order in which they are typed."""
        wanted = [one for one in self._hub.ledger.sessions() if session_id in ("", one.session_id)]
        return [
            {
                "queue_id": item["id"],
                "session_id": session.session_id,
                "name": escape_controls(session.label or session.tool, keep_lines=False),
                "text": item["text"],
                "by": item["identity"],
                "by_name": self._hub.ledger.name_of(item["identity"]) or item["place"] or item["identity"],
                "created_at": item["created_at"],
            }
            for session in wanted
            for item in self._items(session.session_id)
        ]

    # notifications from the hub

    def offer(self, record: PromptRecord, session: SessionRecord) -> bool:
        """Called for an open prompt. Returns True if it is an idle input box and an instruction is being typed into
        it."""
        items = self._items(session.session_id) if record.prompt.idle and not record.prompt.secret else []
        if items and items[0].get("commands", False) is not _runs(record):
            # ask a person instead: the shell would run text meant for an agent, or an agent would get a shell command
            return False
        if not items or record.state not in OPEN or session.session_id in self._under_way:
            return False
        task = asyncio.get_running_loop().create_task(self._type(items[0], record, session), name="queued-instruction")
        self._under_way[session.session_id] = task
        task.add_done_callback(lambda done: self._done(record, session, done.cancelled()))
        return True

    def _done(self, record: PromptRecord, session: SessionRecord, stopping: bool) -> None:
        """Handles an input box that appeared while the previous instruction was being finished."""
        self._under_way.pop(session.session_id, None)
        for later in () if stopping else self._hub.ledger.open_prompts(session.session_id):
            if later.prompt_id != record.prompt_id:
                self.offer(later, session)

    def session_ended(self, session: SessionRecord) -> None:
        items = self._items(session.session_id)
        for item in items:
            self._drop(session.session_id, item["id"], "session_ended")
        if items:
            count = "1 queued instruction was" if len(items) == 1 else f"{len(items)} queued instructions were"
            self._hub.router.notify(f"{count} not typed: the session has ended.", session)

    async def close(self) -> None:
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _type(self, item: Item, record: PromptRecord, session: SessionRecord) -> None:
        """The request key makes the instruction count once, even if this hub dies and the next one tries again."""
        reply = InboundReply(
            item["channel"],
            item["identity"],
            record.prompt_id,
            item["text"],
            session_id=session.session_id,
            as_text=True,
            place=f"{item['place']}, queued at {local_clock(item['created_at'])}".lstrip(", "),
            request_key=f"queue/{item['id']}/{item['attempt']}",
        )
        if self._hub.ledger.prompt(record.prompt_id) is None:
            return  # the box could not be recorded; its host will report it again
        outcome = await self._replies.reply(reply)
        if isinstance(outcome, Reject) and outcome.reason in NEXT_BOX:
            self._try_again(session.session_id, item["id"])
        else:
            self._drop(session.session_id, item["id"], "typed" if isinstance(outcome, Receipt) else "refused")
        self._tell(item, outcome, session)
        now = self._hub.ledger.prompt(record.prompt_id)
        if isinstance(outcome, Reject) and now is not None and now.state in OPEN:
            self._life.escalation.begin(now, session)  # notify people of the box after all

    def _tell(self, item: Item, outcome: Receipt | Reject, session: SessionRecord) -> None:
        text = escape_controls(item["text"], keep_lines=False)
        said = quote_answer(text if len(text) <= 80 else f"{text[:79]}…")
        if isinstance(outcome, Receipt):
            self._hub.router.notify(f"▶ Typed the queued instruction {said}.", session)
        elif outcome.reason not in (*NEXT_BOX, Refusal.BAD_NONCE):  # BAD_NONCE: it was typed before the hub restarted
            self._hub.router.notify(f"The queued instruction {said} was not typed: {outcome.sentence}", session)

    def _item(self, reply: InboundReply) -> Item:
        return {
            "id": new_id(),
            "text": reply.value,
            "channel": reply.channel,
            "identity": reply.identity,
            "place": reply.place,
            "created_at": iso(self._hub.clock.wall()),
            "commands": self._takes_commands(reply.session_id),
            "attempt": 0,
        }

    def _takes_commands(self, session_id: str) -> bool:
        """Whether the session's last idle box runs what is typed. If none is known yet, the instruction is meant for an
        agent."""
        known = self._hub.ledger.history(limit=LOOKED_BACK, session_id=session_id)
        return next((_runs(record) for record in known if record.prompt.idle), False)

    def _items(self, session_id: str) -> list[Item]:
        return list(json.loads(self._hub.ledger.recall(_key(session_id)) or "[]"))

    def _keep(self, session_id: str, items: list[Item]) -> None:
        self._hub.ledger.remember(_key(session_id), json.dumps(items) if items else "")

    def _try_again(self, session_id: str, queue_id: str) -> None:
        items = self._items(session_id)
        self._keep(session_id, [{**one, "attempt": one["attempt"] + (one["id"] == queue_id)} for one in items])

    def _drop(self, session_id: str, queue_id: str, why: str, by: str = "") -> None:
        self._keep(session_id, [one for one in self._items(session_id) if one["id"] != queue_id])
        if why != "typed":
            fields = {"session_id": session_id, "queue_id": queue_id, "reason": why}
            self._hub.ledger.note(AuditEvent.INSTRUCTION_DROPPED, decided_by=by, **fields)


def _runs(record: PromptRecord) -> bool:
    """Whether the box runs input at once, such as a shell, a pager or an editor."""
    return bool(record.prompt.constraints.get("commands"))


def _bad_text(text: str) -> Reject | None:
    if not text.strip():
        return Reject(Refusal.BAD_VALUE, "An instruction needs words.")
    if len(text) > INSTRUCTION_LIMIT:
        sentence = f"Text can have at most {INSTRUCTION_LIMIT} characters; this has {len(text)}."
        return Reject(Refusal.BAD_VALUE, sentence)
    if not all(is_plain_line(line) for line in text.split("\n")):
        return Reject(Refusal.BAD_VALUE, "Text must not contain control, bidirectional or invisible characters.")
    return None


def _key(session_id: str) -> str:
    return f"queue.{session_id}"
