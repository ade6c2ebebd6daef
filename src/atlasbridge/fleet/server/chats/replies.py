"""A reply from a chat becomes a proposal like one from the page: the same row picks the winner, the machine decides.

Here is checked what only a chat has (whose identity, which key of a button); rights and the race are PostgreSQL's.
"""

from __future__ import annotations

import asyncio
import logging

from atlasbridge.core.clock import Clock
from atlasbridge.core.errors import StoreError
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import new_id
from atlasbridge.core.prompt.gate import refuse_moment
from atlasbridge.core.prompt.model import InboundReply, Receipt, Refusal, Reject
from atlasbridge.fleet.server import decisions
from atlasbridge.fleet.server.audit import note_alone
from atlasbridge.fleet.server.chats.cache import ChatCache
from atlasbridge.fleet.server.chats.directory import HERE
from atlasbridge.fleet.server.chats.mapping import FleetPrompt
from atlasbridge.fleet.server.context import ServerContext
from atlasbridge.fleet.server.decisions import Decision, Proposal
from atlasbridge.fleet.server.machines import Refused

log = logging.getLogger(__name__)

AGAIN_S = 1.0
WAIT_S = 8.0  # a toast that comes later is lost
SECRET = "A secret is never taken in a chat: answer at the machine itself."
_UNKNOWN = Reject(Refusal.UNKNOWN_PROMPT, "There is no such prompt.")
_REASONS = {"secret": Refusal.NOT_ALLOWED, "unknown_prompt": Refusal.UNKNOWN_PROMPT, "bad_request": Refusal.BAD_VALUE}


class ChatReplies:
    def __init__(self, context: ServerContext, cache: ChatCache, clock: Clock) -> None:
        self._context = context
        self._cache = cache
        self._clock = clock

    async def answer(self, reply: InboundReply) -> Receipt | Reject:
        asked = self._cache.asked(reply.prompt_id)
        person = self._cache.directory.find(reply.identity) if not reply.identity.startswith(f"{HERE}:") else ""
        refusal = self._refuse(asked, reply, person)
        if refusal is not None or asked is None:
            await self._note(asked, reply, person, refusal or _UNKNOWN)
            return refusal or _UNKNOWN
        key = reply.request_key or new_id()
        wish = Proposal(*asked.key, person, reply.value, reply.as_text, reply.place or reply.channel, key)
        try:
            made = await self._propose(wish)
        except StoreError as error:
            log.warning("what became of an answer is asked about again: %s", error)
            made = await self._find_out(person, key)
        if isinstance(made, Refused):
            return Reject(_reason(made.reason), made.sentence)
        if made is None:
            return Reject(Refusal.UNAVAILABLE, "Your answer did not arrive. Answer again.")
        return self._tell(asked, reply, person, made)

    async def _propose(self, wish: Proposal) -> Decision | Refused | None:
        made = await decisions.propose(self._context.database, wish)
        return made if isinstance(made, Refused) else await self._context.pass_on(made, wish.person, WAIT_S)

    async def _find_out(self, person: str, key: str) -> Decision | None:
        """The connection broke while it was written down: the database is asked until it says whether it was."""
        while True:
            await asyncio.sleep(AGAIN_S)
            try:
                return await decisions.find_by_key(self._context.database, person, key)
            except StoreError as error:
                log.warning("what became of an answer is not known yet: %s", error)

    def _refuse(self, asked: FleetPrompt | None, reply: InboundReply, person: str) -> Reject | None:
        """What the rows cannot know.  First of all whether there is such a thing for this person."""
        if not person or asked is None or person not in asked.readers:
            return _UNKNOWN
        record = asked.record
        if reply.session_id and not record.session_id.startswith(reply.session_id):
            return Reject(Refusal.WRONG_SESSION, "That prompt belongs to another session.")
        if record.prompt.secret:
            return Reject(Refusal.NOT_ALLOWED, SECRET)
        if reply.as_keys:
            return Reject(Refusal.NOT_ALLOWED, "Raw keys are taken from a terminal of that machine only.")
        return refuse_moment(record, nonce=reply.nonce, now=self._clock.now())

    async def _note(self, asked: FleetPrompt | None, reply: InboundReply, person: str, refusal: Reject) -> None:
        """The machine and the prompt are named as the server knows them."""
        machine, prompt_id = asked.key if asked else ("", reply.prompt_id[:64])
        who = person or escape_controls(reply.identity[:80], keep_lines=False)
        await note_alone(
            self._context.database,
            "DECISION_REFUSED",
            machine=machine,
            prompt_id=escape_controls(prompt_id, keep_lines=False),
            decided_by=who,
            reason="not_allowed" if asked and person not in asked.readers else refusal.reason.value,
            place=reply.channel,
        )

    def _tell(self, asked: FleetPrompt, reply: InboundReply, person: str, decision: Decision) -> Receipt | Reject:
        by, machine = f"{HERE}:{person}", escape_controls(asked.machine, keep_lines=False)
        if not decision.settled:
            sentence = f"Passed on to {machine}, which has not said anything yet."
            return Receipt("received", sentence, by, reply.value, reply.place)
        if not decision.ok:
            return Reject(_reason(decision.stage), escape_controls(decision.sentence, keep_lines=False))
        return Receipt(
            decision.stage, escape_controls(decision.sentence, keep_lines=False), by, reply.value, reply.place
        )


def _reason(reason: str) -> Refusal:
    try:
        return _REASONS.get(reason) or Refusal(reason)
    except ValueError:
        return Refusal.UNAVAILABLE
