"""What people give ahead of time: scheduled answers, snoozes, and instructions for a busy tool.

When it is due, each passes the same steps as every reply: gate, claim, audit, comparison with the screen.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from atlasbridge.core.audit.events import AuditEvent
from atlasbridge.core.clock import iso, local_clock, parse_iso
from atlasbridge.core.daemon.parts import HubParts
from atlasbridge.core.daemon.prompts import PromptLife
from atlasbridge.core.daemon.replies import ReplyService
from atlasbridge.core.escape import escape_controls, is_plain_line
from atlasbridge.core.ids import new_id, short_id
from atlasbridge.core.policy.escalation import ANSWER, SHORTEST_SNOOZE_S, SNOOZE, ScheduledItem
from atlasbridge.core.prompt.answer import INSTRUCTION_LIMIT, decide_answer, label_answer, quote_answer
from atlasbridge.core.prompt.gate import UNKNOWN
from atlasbridge.core.prompt.model import OPEN, Answer, InboundReply, PromptRecord, Receipt, Refusal, Reject
from atlasbridge.core.scheduler.times import LIMIT, LONGEST_S, find_reset, find_zone, parse_when, say_moment
from atlasbridge.core.session.model import SessionRecord, SessionState, session_name
from atlasbridge.core.values import replace

LIMIT_RESETS = "limit-resets"
AFTER_RESET_S = 60.0  # clocks differ, so wait a little after the limit should have reset
LATE_S = 3600.0  # a hub that was not running when an answer was due still gives it, at most this much later
AGAIN_S = 5.0  # delay before a retry when the session is not connected or the store cannot be written
LOOK_S = 60.0  # maximum interval between checks, because the wall clock can be changed
LONGEST_SNOOZE_S = 24 * 3600.0


class ScheduledAnswers:
    def __init__(self, hub: HubParts, life: PromptLife, replies: ReplyService) -> None:
        self._hub, self._life, self._replies = hub, life, replies
        self._under_way: set[asyncio.Task[None]] = set()
        self._known: set[str] = set()  # prompts with a scheduled answer or a snooze
        life.on_end = self.prompt_ended

    # requests from people

    def postpone(self, reply: InboundReply, when: str) -> Receipt | Reject:
        """Schedules the reply for a time: "06:00", "in 2h", or "limit-resets"."""
        judged = self._replies.judge(reply)
        if isinstance(judged, Reject):
            return judged
        record, answer = judged
        if record.prompt.secret or reply.as_keys:
            return Reject(Refusal.NOT_ALLOWED, "Secrets and raw keys cannot be scheduled: answer now.")
        due = self._moment(record, when, reply.identity)
        if isinstance(due, Reject):
            return due
        wanted = self._new_item(ANSWER, record, due, reply)
        stored = self._store(wanted, LATE_S)
        if isinstance(stored, Reject):
            return stored
        said = quote_answer(label_answer(record.prompt, answer))
        who, when = self._name_of(stored), self._describe_moment(stored)
        sentence = f"{who} answers {said} {when}, if the prompt is still open then."
        return self._report(record, "postponed", sentence, stored)

    def snooze(self, reply: InboundReply, for_s: float) -> Receipt | Reject:
        """Notifies people again in `for_s` seconds. Until then nobody is notified, and the prompt does not expire."""
        record = self._hub.ledger.prompt(reply.prompt_id)
        if record is None or record.state not in OPEN:
            return Reject(Refusal.NOT_OPEN, "It is no longer open.")
        if refusal := self._replies.refuse_person(record, reply):
            return refusal
        if not SHORTEST_SNOOZE_S <= for_s <= LONGEST_SNOOZE_S:
            return Reject(Refusal.BAD_VALUE, "You can snooze a prompt for a minute to a day.")
        due = self._hub.clock.wall() + for_s
        stored = self._store(self._new_item(SNOOZE, record, due, reply), self._life.ttl_of(record))
        if isinstance(stored, Reject):
            return stored
        who, when = self._name_of(stored), self._describe_moment(stored)
        return self._report(record, "snoozed", f"{who} snoozed this. AtlasBridge asks again {when}.", stored)

    def revoke(self, reply: InboundReply, beginning: str) -> Receipt | Reject:
        """Revokes a scheduled answer or a snooze. Everybody who is allowed to answer the prompt can do that."""
        found = [item for item in self._hub.ledger.pending_scheduled() if item.later_id.startswith(beginning)]
        if not beginning or len(found) != 1:
            return Reject(Refusal.UNKNOWN_PROMPT, "There is no such answer, or several start like that.")
        record = self._hub.ledger.prompt(found[0].prompt_id)
        if record is None:
            return UNKNOWN
        if refusal := self._replies.refuse_person(record, reply):
            return refusal
        ended = self._hub.ledger.end_scheduled(found[0].later_id, "revoked", reply.identity, self._life.ttl_of(record))
        if ended is None:
            return Reject(Refusal.NOT_OPEN, "Its time has already come.")
        self._hub.scheduler.cancel(f"later:{ended.later_id}")
        self._life.deadline_moved(self._hub.ledger.prompt(record.prompt_id) or record)
        sentence = f"Removed{'' if ended.kind == SNOOZE else f': {_quote(ended, record)} will not be sent'}."
        return self._report(record, "revoked", sentence, ended)

    def drop(self, gone: Callable[[str], bool]) -> int:
        ended = 0
        for item in [item for item in self._hub.ledger.pending_scheduled() if gone(item.identity)]:
            record = self._hub.ledger.prompt(item.prompt_id)
            ttl_s = self._life.ttl_of(record) if record else None
            if record is None or self._hub.ledger.end_scheduled(item.later_id, "revoked", item.identity, ttl_s) is None:
                continue
            self._hub.scheduler.cancel(f"later:{item.later_id}")
            now = self._hub.ledger.prompt(record.prompt_id) or record
            self._life.deadline_moved(now)
            self._report(now, "revoked", f"Dropped: {self._name_of(item)} is no longer logged in.", item)
            ended += 1
        return ended

    def list_all(self) -> list[dict[str, Any]]:
        return [self._describe(item) for item in self._hub.ledger.pending_scheduled()]

    def of_prompt(self, prompt_id: str) -> list[dict[str, Any]]:
        """What is scheduled for a prompt. Prompts without anything scheduled cause no query."""
        if prompt_id not in self._known:
            return []
        return [self._describe(item) for item in self._hub.ledger.pending_scheduled(prompt_id)]

    # timing

    def recover(self) -> None:
        """Restores the timers after a start of the hub. Entries whose prompt has ended in the meantime are ended."""
        for item in self._hub.ledger.pending_scheduled():
            record = self._hub.ledger.prompt(item.prompt_id)
            if record is None or record.state not in OPEN:
                done = record is not None and record.decided_by == item.identity and record.decided_at >= item.due_at
                self._hub.ledger.end_scheduled(item.later_id, "answered" if done else "overtaken")
            else:
                self._watch(item)

    def prompt_ended(self, prompt_id: str) -> None:
        if prompt_id not in self._known:
            return
        self._known.discard(prompt_id)
        for item in self._hub.ledger.pending_scheduled(prompt_id):
            self._hub.scheduler.cancel(f"later:{item.later_id}")
            self._hub.ledger.end_scheduled(item.later_id, "overtaken")

    def _watch(self, item: ScheduledItem) -> None:
        self._known.add(item.prompt_id)
        left_s = parse_iso(item.due_at) - self._hub.clock.wall()
        at = self._hub.clock.now() + max(0.0, min(left_s, LOOK_S))
        self._hub.scheduler.set(f"later:{item.later_id}", at, lambda: self._look(item))

    def _look(self, item: ScheduledItem) -> None:
        if parse_iso(item.due_at) > self._hub.clock.wall():
            self._watch(item)
        elif item.kind == SNOOZE:
            if self._hub.ledger.end_scheduled(item.later_id, "woken"):
                self._life.escalation.look(item.prompt_id)
        else:
            task = asyncio.get_running_loop().create_task(self._answer(item), name="later-answer")
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def _answer(self, item: ScheduledItem, attempt: int = 0) -> None:
        """The request key makes the answer count once, even if this hub dies and the next one tries again."""
        reply = InboundReply(
            item.channel,
            item.identity,
            item.prompt_id,
            item.value,
            as_text=item.as_text,
            place=_given_at(item),
            request_key=f"later/{item.later_id}/{attempt}",
        )
        outcome = await self._replies.reply(reply)
        if isinstance(outcome, Reject) and outcome.reason is Refusal.UNAVAILABLE and self._is_open(item):
            await asyncio.sleep(AGAIN_S)  # until its session reconnects or the prompt expires
            await self._answer(item, attempt + 1)
            return
        given = isinstance(outcome, Receipt)
        self._hub.ledger.end_scheduled(item.later_id, "answered" if given else f"refused: {outcome.sentence}")
        if isinstance(outcome, Reject):
            name = self._describe(item)["name"]
            said = _quote(item, self._hub.ledger.prompt(item.prompt_id))
            self._hub.router.notify(f"{name}: {said} was not sent: {outcome.sentence}")

    async def close(self) -> None:
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    def _moment(self, record: PromptRecord, when: str, identity: str) -> float | Reject:
        wall = self._hub.clock.wall()
        if when.strip().lower() in (LIMIT_RESETS, "limit"):
            said = record.prompt.constraints.get(LIMIT)
            resets = parse_iso(str(said)) if said else find_reset(record.prompt.screen, wall, find_zone)
            return resets + AFTER_RESET_S if resets is not None else Reject(Refusal.BAD_VALUE, _NO_LIMIT)
        person = self._hub.router.policy.attention.people.find(identity)
        due = parse_when(when, wall, person.zone if person else "", find_zone)
        return due if due is not None else Reject(Refusal.BAD_VALUE, _NO_MOMENT)

    def _new_item(self, kind: str, record: PromptRecord, due: float, reply: InboundReply) -> ScheduledItem:
        answer = (reply.value, reply.as_text) if kind == ANSWER else ("", False)
        return ScheduledItem(
            new_id(), record.prompt_id, kind, iso(due), reply.channel, reply.identity, *answer, reply.place
        )

    def _store(self, wanted: ScheduledItem, open_s: float) -> ScheduledItem | Reject:
        left_s = parse_iso(wanted.due_at) - self._hub.clock.wall()
        stored = self._hub.ledger.postpone(wanted, left_s + open_s)
        if stored is None:
            return Reject(Refusal.NOT_OPEN, "It is no longer open.")
        made, record = stored
        self._watch(made)
        self._life.deadline_moved(record)
        return made

    def _report(self, record: PromptRecord, stage: str, sentence: str, item: ScheduledItem) -> Receipt:
        """Updates every message that shows the prompt; its deadline has changed."""
        now = self._hub.ledger.prompt(record.prompt_id) or record
        receipt = replace(self._life.receipts.make(stage, sentence, now), by=item.identity, answer=item.later_id)
        self._hub.stream.publish(
            f"reply.{stage}" if item.kind == ANSWER else f"prompt.{stage}",
            session_id=record.session_id,
            prompt_id=record.prompt_id,
            later_id=item.later_id,
            due_at=item.due_at,
            by=item.identity,
        )
        self._hub.router.update(now, receipt)
        return receipt

    def _describe(self, item: ScheduledItem) -> dict[str, Any]:
        session, record = self._session(item.prompt_id), self._hub.ledger.prompt(item.prompt_id)
        zone = self._zone(item.identity)
        return {
            **item.to_json(),
            "by_name": self._name_of(item),
            "what": "ask again" if item.kind == SNOOZE else f"answer {_quote(item, record)}",
            "when": say_moment(parse_iso(item.due_at), zone, self._hub.clock.wall()),
            "session_id": session.session_id if session else "",
            "name": session_name(session) if session else "",
            "excerpt": record.prompt.excerpt if record else "",
        }

    def _name_of(self, item: ScheduledItem) -> str:
        return self._hub.ledger.name_of(item.identity) or item.place or item.identity

    def _describe_moment(self, item: ScheduledItem) -> str:
        moment = say_moment(parse_iso(item.due_at), self._zone(item.identity), self._hub.clock.wall())
        return f"at {moment} ({short_id(item.later_id)})"

    def _zone(self, identity: str) -> str:
        person = self._hub.router.policy.attention.people.find(identity)
        return person.zone if person else ""

    def _is_open(self, item: ScheduledItem) -> bool:
        record = self._hub.ledger.prompt(item.prompt_id)
        return record is not None and record.state in OPEN

    def _session(self, prompt_id: str) -> Any:
        record = self._hub.ledger.prompt(prompt_id)
        return self._hub.ledger.session(record.session_id) if record else None


_NO_LIMIT = "Its screen shows no usage limit with a reset time; give a time instead."
_NO_MOMENT = f"Give a time: 06:00, tomorrow 9am, fri 12:00, in 2h; at most {LONGEST_S / 86400:.0f} days ahead."


def _quote(item: ScheduledItem, record: PromptRecord | None) -> str:
    """The answer as its receipt will show it."""
    if record is None:
        return quote_answer(item.value)
    answer = decide_answer(record.prompt, item.value, as_text=item.as_text)
    return quote_answer(label_answer(record.prompt, answer) if isinstance(answer, Answer) else item.value)


def _given_at(item: ScheduledItem) -> str:
    return f"{item.place}, given for later at {local_clock(item.created_at)}".lstrip(", ")


MOST_QUEUED = 20
LOOKED_BACK = 20  # prompts to search
NEXT_BOX = (Refusal.STALE, Refusal.NOT_OPEN, Refusal.EXPIRED, Refusal.UNAVAILABLE, Refusal.RATE_LIMITED)
Item = dict[str, Any]


class InstructionQueue:
    """Instructions that people give while a tool is busy, typed in order into its next idle input box.

    Never into a question, and only into the kind of box for which an instruction was given: text for an agent must not
    become a command of the shell below it. The queue is kept in the store's notes and ends with its session.
    """

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
            refusal = Reject(Refusal.RATE_LIMITED, f"{MOST_QUEUED} instructions are queued already; remove one first.")
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
        if refusal := self._replies.refuse_stranger(reply):
            return refusal
        found = [item for item in self.list_all() if beginning and item["queue_id"].startswith(beginning)]
        if len(found) != 1:
            return Reject(Refusal.UNKNOWN_PROMPT, "There is no such instruction, or several start like that.")
        session_id, queue_id = found[0]["session_id"], found[0]["queue_id"]
        if session_id in self._under_way and self._items(session_id)[0]["id"] == queue_id:
            return Reject(Refusal.NOT_OPEN, "This is already being typed.")
        self._drop(session_id, queue_id, "revoked", reply.identity)
        return Receipt("revoked", f"Removed: {quote_answer(found[0]['text'])} will not be typed.", reply.identity)

    def drop(self, gone: Callable[[str], bool]) -> int:
        found = [one for one in self.list_all() if gone(one["by"])]
        for one in found:
            self._drop(one["session_id"], one["queue_id"], "revoked", one["by"])
        return len(found)

    def list_all(self, session_id: str = "") -> list[dict[str, Any]]:
        """Returns the instructions in the order in which they are typed."""
        wanted = [one for one in self._hub.ledger.sessions() if session_id in ("", one.session_id)]
        return [
            {
                "queue_id": item["id"],
                "session_id": session.session_id,
                "name": session_name(session),
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
        self._keep(session_id, [{**item, "attempt": item["attempt"] + (item["id"] == queue_id)} for item in items])

    def _drop(self, session_id: str, queue_id: str, why: str, by: str = "") -> None:
        self._keep(session_id, [item for item in self._items(session_id) if item["id"] != queue_id])
        if why != "typed":
            fields = {"session_id": session_id, "queue_id": queue_id, "reason": why}
            self._hub.ledger.note(AuditEvent.INSTRUCTION_DROPPED, decided_by=by, **fields)


def _runs(record: PromptRecord) -> bool:
    """Whether the box runs input at once, such as a shell, a pager or an editor."""
    return bool(record.prompt.constraints.get("commands"))


def _bad_text(text: str) -> Reject | None:
    if not text.strip():
        return Reject(Refusal.BAD_VALUE, "Write the instruction.")
    if len(text) > INSTRUCTION_LIMIT:
        sentence = f"Text can have at most {INSTRUCTION_LIMIT} characters; yours has {len(text)}."
        return Reject(Refusal.BAD_VALUE, sentence)
    if not all(is_plain_line(line) for line in text.split("\n")):
        return Reject(Refusal.BAD_VALUE, "Text must not contain control, bidirectional or invisible characters.")
    return None


def _key(session_id: str) -> str:
    return f"queue.{session_id}"
