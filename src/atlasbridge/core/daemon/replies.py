"""A reply's way: rate limit, gate, claim, typing.  Audit comes before typing; a refusal is told in one sentence."""

from __future__ import annotations

from collections import defaultdict, deque

from atlasbridge.core.daemon.parts import HubParts
from atlasbridge.core.daemon.prompts import PromptLife
from atlasbridge.core.daemon.refusals import RefusalLog
from atlasbridge.core.daemon.settings import HubSettings
from atlasbridge.core.errors import StoreError
from atlasbridge.core.prompt.answer import decide_answer
from atlasbridge.core.prompt.gate import refuse_reply
from atlasbridge.core.prompt.machine import OPEN
from atlasbridge.core.prompt.model import Answer, PromptRecord, Refusal, Reject
from atlasbridge.core.prompt.redact import leaves
from atlasbridge.core.prompt.reply import InboundReply, Receipt
from atlasbridge.core.routing.policy import decide_allowed
from atlasbridge.core.routing.router import LOCAL
from atlasbridge.core.visible import visible


class ReplyDesk:
    def __init__(self, hub: HubParts, life: PromptLife, settings: HubSettings) -> None:
        self._hub = hub
        self._life = life
        self._refusals = RefusalLog(hub.ledger, hub.clock, hub.scheduler)
        self.settings = settings
        self._recent: defaultdict[str, deque[float]] = defaultdict(deque)

    async def reply(self, reply: InboundReply) -> Receipt | Reject:
        """Returns when the keys are typed, or with the reason why they are not."""
        record = await self._find(reply)
        outcome = self._claim(record, reply)
        if record is None or isinstance(outcome, Reject):
            return self._refused(record, reply, outcome)
        if isinstance(outcome, Receipt):
            return outcome
        self._life.send(record, outcome)
        typed = await self._life.wait_typed(record.prompt_id, self.settings.type_timeout_s)
        if isinstance(typed, Receipt):
            return typed
        if typed is None:
            return Receipt("received", _NO_WORD, reply.identity)
        return self._refused(record, reply, typed)

    async def _find(self, reply: InboundReply) -> PromptRecord | None:
        """The prompt, once its session is connected: a reply may be faster than a host that comes back."""
        record = self._hub.ledger.prompt(reply.prompt_id)
        if record is None or record.state not in OPEN or self._hub.hosts.get(record.session_id) is not None:
            return record
        await self._hub.hosts.wait(record.session_id, self.settings.host_patience_s)
        return self._hub.ledger.prompt(record.prompt_id)

    def _claim(self, record: PromptRecord | None, reply: InboundReply) -> Answer | Receipt | Reject:
        """All that happens before typing, without waiting: no other reply can come in between."""
        if record is not None and self._too_fast(record, reply):
            return Reject(Refusal.RATE_LIMITED, "Too many replies to this session within a minute; wait a little.")
        refusal = refuse_reply(record, reply, allowed=self._allowed(record, reply), now=self._hub.clock.now())
        if record is None or refusal is not None:
            return refusal or _UNKNOWN
        if _cancels(record, reply):
            return self._cancel(record, reply)
        answer = decide_answer(record.prompt, reply.value, as_text=reply.as_text, as_keys=reply.as_keys)
        if isinstance(answer, Reject):
            return answer
        if self._hub.hosts.get(record.session_id) is None:
            return Reject(Refusal.UNAVAILABLE, "The session is not connected to the hub right now; try again.")
        return self._write(record, reply, answer)

    def _cancel(self, record: PromptRecord, reply: InboundReply) -> Receipt | Reject:
        try:
            return self._life.cancel(record.prompt_id, reply.identity) or _LATE
        except StoreError as error:
            return Reject(Refusal.UNAVAILABLE, f"It is as it was, because nothing could be recorded: {error}.")

    def _write(self, record: PromptRecord, reply: InboundReply, answer: Answer) -> Answer | Reject:
        try:
            claimed = self._hub.ledger.claim(
                record.prompt_id, record.session_id, reply.nonce or None, answer, reply.identity
            )
        except StoreError as error:
            return Reject(Refusal.UNAVAILABLE, f"Nothing was typed, because it could not be recorded: {error}.")
        if isinstance(claimed, Reject):
            return claimed
        self._hub.stream.publish(
            "reply.received",
            session_id=record.session_id,
            prompt_id=record.prompt_id,
            by=reply.identity,
            channel=reply.channel,
            value=None if record.prompt.secret else leaves(answer.value or answer.kind.value),
        )
        receipt = Receipt("received", f"Answered by {reply.identity}.", reply.identity)
        self._hub.router.update(claimed, receipt, answered_in=reply.channel)
        return answer

    def _allowed(self, record: PromptRecord | None, reply: InboundReply) -> bool:
        if reply.channel == LOCAL:
            return True  # the socket has checked that it is the same user
        if record is None or reply.as_keys:
            return False
        return decide_allowed(
            reply.channel,
            reply.identity,
            remote=self._hub.router.remote(reply.channel),
            prompt=record.prompt,
            settings=self._hub.router.policy,
        )

    def _too_fast(self, record: PromptRecord, reply: InboundReply) -> bool:
        """More than the limit within a minute, through channels that leave this machine."""
        if not self._hub.router.remote(reply.channel):
            return False
        now = self._hub.clock.now()
        times = self._recent[record.session_id]
        while times and times[0] <= now - 60:
            times.popleft()
        if len(times) >= self.settings.rate_limit_per_minute:
            return True
        times.append(now)
        return False

    def _refused(self, record: PromptRecord | None, reply: InboundReply, why: Answer | Receipt | Reject) -> Reject:
        refusal = why if isinstance(why, Reject) else _UNKNOWN
        ids = {
            "session_id": record.session_id if record else "",
            "prompt_id": record.prompt_id if record else visible(reply.prompt_id[:64], keep_lines=False),
        }
        self._hub.stream.publish(
            "reply.refused", **ids, reason=refusal.reason.value, sentence=refusal.sentence, by=reply.identity
        )
        self._refusals.record(refusal.reason, reply.identity, **ids)
        return refusal

    def close(self) -> None:
        self._refusals.close_window()

    def forget(self, session_id: str) -> None:
        self._recent.pop(session_id, None)


_NO_WORD = "Accepted and recorded, but the session has not yet said that it was typed. Look at it."
_LATE = Reject(Refusal.NOT_OPEN, "This prompt is no longer open.")

_UNKNOWN = Reject(Refusal.UNKNOWN_PROMPT, "There is no such prompt.")


def _cancels(record: PromptRecord, reply: InboundReply) -> bool:
    """The word that leaves a prompt alone, unless the prompt itself offers it as an answer."""
    if reply.as_text or reply.as_keys or reply.value.strip().lower() != "cancel":
        return False
    return not any("cancel" in (choice.value.lower(), choice.label.lower()) for choice in record.prompt.choices)
