"""Scheduled answers and snoozes: stored, listed, revoked and carried out.

When it is due, an answer passes the same steps as every reply: gate, claim, audit, comparison with the screen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from atlasbridge.core.clock import iso, local_clock, parse_iso
from atlasbridge.core.daemon.parts import HubParts
from atlasbridge.core.daemon.prompts import PromptLife
from atlasbridge.core.daemon.replies import ReplyService
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import new_id, short_id
from atlasbridge.core.policy.escalation import ANSWER, SNOOZE, Later
from atlasbridge.core.prompt.answer import label_answer, quote_answer
from atlasbridge.core.prompt.model import OPEN, InboundReply, PromptRecord, Receipt, Refusal, Reject
from atlasbridge.core.scheduler.times import LIMIT, LONGEST_S, find_reset, find_zone, parse_when, say_moment
from atlasbridge.core.values import replace

LIMIT_RESETS = "limit-resets"
AFTER_RESET_S = 60.0  # clocks differ, so wait a little after the limit should have reset
LATE_S = 3600.0  # a hub that was not running when an answer was due still gives it, at most this much later
AGAIN_S = 5.0  # delay before a retry when the session is not connected or the store cannot be written
LOOK_S = 60.0  # maximum interval between checks, because the wall clock can be changed
SHORTEST_SNOOZE_S, LONGEST_SNOOZE_S = 60.0, 24 * 3600.0


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
            return Reject(Refusal.NOT_ALLOWED, "A secret, or raw keys, are never kept for later: answer now.")
        due = self._moment(record, when, reply.identity)
        if isinstance(due, Reject):
            return due
        wanted = self._later(ANSWER, record, due, reply)
        kept = self._keep(wanted, LATE_S)
        if isinstance(kept, Reject):
            return kept
        said = quote_answer(label_answer(record.prompt, answer))
        sentence = f"{self._who(kept)} answers {said} {self._at(kept)}, if it still waits then."
        return self._told(record, "postponed", sentence, kept)

    def snooze(self, reply: InboundReply, for_s: float) -> Receipt | Reject:
        """Notifies people again in `for_s` seconds. Until then nobody is notified, and the prompt does not expire."""
        record = self._hub.ledger.prompt(reply.prompt_id)
        if record is None or record.state not in OPEN:
            return Reject(Refusal.NOT_OPEN, "It is no longer open.")
        if refusal := self._replies.refuse_person(record, reply):
            return refusal
        if not SHORTEST_SNOOZE_S <= for_s <= LONGEST_SNOOZE_S:
            return Reject(Refusal.BAD_VALUE, "You can be asked again in a minute to a day.")
        due = self._hub.clock.wall() + for_s
        kept = self._keep(self._later(SNOOZE, record, due, reply), self._life.ttl_of(record))
        if isinstance(kept, Reject):
            return kept
        return self._told(record, "snoozed", f"{self._who(kept)} wants to be asked again {self._at(kept)}.", kept)

    def revoke(self, reply: InboundReply, beginning: str) -> Receipt | Reject:
        """Revokes a scheduled answer or a snooze. Everybody who is allowed to answer the prompt can do that."""
        found = [one for one in self._hub.ledger.waiting_later() if one.later_id.startswith(beginning)]
        if not beginning or len(found) != 1:
            return Reject(Refusal.UNKNOWN_PROMPT, "There is no such answer, or more than one begins like that.")
        record = self._hub.ledger.prompt(found[0].prompt_id)
        if record is None:
            return Reject(Refusal.UNKNOWN_PROMPT, "There is no such prompt.")
        if refusal := self._replies.refuse_person(record, reply):
            return refusal
        ended = self._hub.ledger.end_later(found[0].later_id, "revoked", reply.identity, self._life.ttl_of(record))
        if ended is None:
            return Reject(Refusal.NOT_OPEN, "Its moment has come already.")
        self._hub.scheduler.cancel(f"later:{ended.later_id}")
        self._life.prolonged(self._hub.ledger.prompt(record.prompt_id) or record)
        sentence = f"Taken back{'' if ended.kind == SNOOZE else f': {quote_answer(ended.value)} is not answered'}."
        return self._told(record, "revoked", sentence, ended)

    def drop(self, gone: Callable[[str], bool]) -> int:
        """Revokes everything scheduled by identities that have lost access; the prompts stay open."""
        ended = 0
        for one in [one for one in self._hub.ledger.waiting_later() if gone(one.identity)]:
            record = self._hub.ledger.prompt(one.prompt_id)
            ttl_s = self._life.ttl_of(record) if record else None
            if record is None or self._hub.ledger.end_later(one.later_id, "revoked", one.identity, ttl_s) is None:
                continue
            self._hub.scheduler.cancel(f"later:{one.later_id}")
            now = self._hub.ledger.prompt(record.prompt_id) or record
            self._life.prolonged(now)
            self._told(now, "revoked", f"Dropped: {self._who(one)} is no longer logged in.", one)
            ended += 1
        return ended

    def listed(self) -> list[dict[str, Any]]:
        return [self._describe(one) for one in self._hub.ledger.waiting_later()]

    def of_prompt(self, prompt_id: str) -> list[dict[str, Any]]:
        """What is scheduled for a prompt. Prompts without anything scheduled cause no query."""
        if prompt_id not in self._known:
            return []
        return [self._describe(one) for one in self._hub.ledger.waiting_later(prompt_id)]

    # timing

    def recover(self) -> None:
        """Restores the timers after a start of the hub. Entries whose prompt has ended in the meantime are ended."""
        for one in self._hub.ledger.waiting_later():
            record = self._hub.ledger.prompt(one.prompt_id)
            if record is None or record.state not in OPEN:
                done = record is not None and record.decided_by == one.identity and record.decided_at >= one.due_at
                self._hub.ledger.end_later(one.later_id, "answered" if done else "overtaken")
            else:
                self._watch(one)

    def prompt_ended(self, prompt_id: str) -> None:
        if prompt_id not in self._known:
            return
        self._known.discard(prompt_id)
        for one in self._hub.ledger.waiting_later(prompt_id):
            self._hub.scheduler.cancel(f"later:{one.later_id}")
            self._hub.ledger.end_later(one.later_id, "overtaken")

    def _watch(self, one: Later) -> None:
        self._known.add(one.prompt_id)
        left_s = parse_iso(one.due_at) - self._hub.clock.wall()
        at = self._hub.clock.now() + max(0.0, min(left_s, LOOK_S))
        self._hub.scheduler.set(f"later:{one.later_id}", at, lambda: self._look(one))

    def _look(self, one: Later) -> None:
        if parse_iso(one.due_at) > self._hub.clock.wall():
            self._watch(one)
        elif one.kind == SNOOZE:
            if self._hub.ledger.end_later(one.later_id, "woken"):
                self._life.escalation.look(one.prompt_id)
        else:
            task = asyncio.get_running_loop().create_task(self._answer(one), name="later-answer")
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def _answer(self, one: Later, attempt: int = 0) -> None:
        """The request key makes the answer count once, even if this hub dies and the next one tries again."""
        reply = InboundReply(
            one.channel,
            one.identity,
            one.prompt_id,
            one.value,
            as_text=one.as_text,
            place=_given_at(one),
            request_key=f"later/{one.later_id}/{attempt}",
        )
        outcome = await self._replies.reply(reply)
        if isinstance(outcome, Reject) and outcome.reason is Refusal.UNAVAILABLE and self._is_open(one):
            await asyncio.sleep(AGAIN_S)  # until its session reconnects or the prompt expires
            await self._answer(one, attempt + 1)
            return
        given = isinstance(outcome, Receipt)
        self._hub.ledger.end_later(one.later_id, "answered" if given else f"refused: {outcome.sentence}")
        if isinstance(outcome, Reject):
            name = self._describe(one)["name"]
            self._hub.router.notify(f"{name}: {quote_answer(one.value)} was not answered: {outcome.sentence}")

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

    def _later(self, kind: str, record: PromptRecord, due: float, reply: InboundReply) -> Later:
        answer = (reply.value, reply.as_text) if kind == ANSWER else ("", False)
        return Later(new_id(), record.prompt_id, kind, iso(due), reply.channel, reply.identity, *answer, reply.place)

    def _keep(self, wanted: Later, open_s: float) -> Later | Reject:
        left_s = parse_iso(wanted.due_at) - self._hub.clock.wall()
        kept = self._hub.ledger.postpone(wanted, left_s + open_s)
        if kept is None:
            return Reject(Refusal.NOT_OPEN, "It is no longer open.")
        made, record = kept
        self._watch(made)
        self._life.prolonged(record)
        return made

    def _told(self, record: PromptRecord, stage: str, sentence: str, one: Later) -> Receipt:
        """Updates every message that shows the prompt; its deadline has changed."""
        now = self._hub.ledger.prompt(record.prompt_id) or record
        receipt = replace(self._life.receipts.make(stage, sentence, now), by=one.identity, answer=one.later_id)
        self._hub.stream.publish(
            f"reply.{stage}" if one.kind == ANSWER else f"prompt.{stage}",
            session_id=record.session_id,
            prompt_id=record.prompt_id,
            later_id=one.later_id,
            due_at=one.due_at,
            by=one.identity,
        )
        self._hub.router.update(now, receipt)
        return receipt

    def _describe(self, one: Later) -> dict[str, Any]:
        session, record = self._session(one.prompt_id), self._hub.ledger.prompt(one.prompt_id)
        zone = self._zone(one.identity)
        return {
            **one.to_json(),
            "by_name": self._who(one),
            "what": "ask again" if one.kind == SNOOZE else f"answer {quote_answer(one.value)}",
            "when": say_moment(parse_iso(one.due_at), zone, self._hub.clock.wall()),
            "session_id": session.session_id if session else "",
            "name": escape_controls(session.label or session.tool, keep_lines=False) if session else "",
            "excerpt": record.prompt.excerpt if record else "",
        }

    def _who(self, one: Later) -> str:
        return self._hub.ledger.name_of(one.identity) or one.place or one.identity

    def _at(self, one: Later) -> str:
        moment = say_moment(parse_iso(one.due_at), self._zone(one.identity), self._hub.clock.wall())
        return f"at {moment} ({short_id(one.later_id)})"

    def _zone(self, identity: str) -> str:
        person = self._hub.router.policy.attention.people.find(identity)
        return person.zone if person else ""

    def _is_open(self, one: Later) -> bool:
        record = self._hub.ledger.prompt(one.prompt_id)
        return record is not None and record.state in OPEN

    def _session(self, prompt_id: str) -> Any:
        record = self._hub.ledger.prompt(prompt_id)
        return self._hub.ledger.session(record.session_id) if record else None


_NO_LIMIT = "Its screen speaks of no usage limit that says when it resets; name a time instead."
_NO_MOMENT = f"Say when: 06:00, tomorrow 9am, fri 12:00, in 2h; at most {LONGEST_S / 86400:.0f} days ahead."


def _given_at(one: Later) -> str:
    return f"{one.place}, given for later at {local_clock(one.created_at)}".lstrip(", ")
