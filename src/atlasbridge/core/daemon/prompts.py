"""The life cycle of every prompt in the hub: raised, routed, typed, taken, expired, withdrawn.

Each transition is one transaction of the ledger. People and listeners are notified only after it succeeds. `replies.py`
decides whether a reply is accepted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from atlasbridge.core.clock import iso
from atlasbridge.core.daemon.escalation import ANSWER_S, Escalation
from atlasbridge.core.daemon.parts import HubParts
from atlasbridge.core.daemon.receipts import Receipts, decision_of, describe_raised
from atlasbridge.core.daemon.rules import describe_decision
from atlasbridge.core.operations import fitting_constraints
from atlasbridge.core.policy.approval import PAGE, PROOF, with_card, with_proof, with_quorum
from atlasbridge.core.policy.rule import Say, Verdict
from atlasbridge.core.prompt.answer import decide_answer, label_answer
from atlasbridge.core.prompt.gate import UNKNOWN, fate
from atlasbridge.core.prompt.model import (
    FIRST_KEY,
    OPEN,
    Answer,
    Prompt,
    PromptRecord,
    PromptState,
    Receipt,
    Refusal,
    Reject,
    SubjectKind,
)
from atlasbridge.core.prompt.redact import redact_prompt
from atlasbridge.core.prompt.timer import WARNING_S
from atlasbridge.core.routing.policy import decide_timer_default, decide_ttl
from atlasbridge.core.scheduler.times import LIMIT, find_reset, find_zone
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.store.prompts import Decider
from atlasbridge.core.values import replace

log = logging.getLogger(__name__)

AGAIN_S = 3.0  # how long a host can take to raise a prompt again

_WITHDRAWN = {
    "answered_at_terminal": "It was answered at the terminal.",
    "moved_on": "The tool moved on.",
    "answered": "It was answered.",
    "asked_again": "It was asked again.",
    "exited": "The tool has ended.",
    "host_lost": "The session has crashed.",
    "caller_left": "The program that asked no longer waits.",
}
_STALE = Reject(Refusal.STALE, "This prompt is no longer on the screen; nothing was typed.")


class PromptLife:
    def __init__(self, hub: HubParts) -> None:
        self.hub = hub
        self.receipts = Receipts(hub.ledger)
        self._ttl: dict[str, float] = {}
        self._asking_again: dict[str, asyncio.Future[PromptRecord]] = {}
        self.escalation = Escalation(hub)
        self.on_end: Callable[[str], None] = lambda prompt_id: None  # cancels the scheduled answers of the prompt
        # returns whether a queued instruction is typed into an idle box; then nobody is notified
        self.on_idle: Callable[[PromptRecord, SessionRecord], bool] = lambda record, session: False

    def use_ttl(self, session_id: str, ttl_s: float | None) -> None:
        """`run --ttl`: how long this session's prompts wait; None: as configured."""
        if ttl_s is None:
            self._ttl.pop(session_id, None)
        else:
            self._ttl[session_id] = float(ttl_s)

    def _ttl_s(self, session_id: str, prompt: Prompt) -> float:
        return self._ttl.get(session_id) or decide_ttl(prompt, self.hub.router.policy)

    def raise_prompt(self, session: SessionRecord, prompt_id: str, prompt: Prompt, detect_s: float = 0.0) -> None:
        """A host found a prompt, or a caller asks a question. Raising the same id again changes nothing.

        A host has already removed its session's secrets. The redaction here applies to every question.
        """
        if self.hub.ledger.prompt(prompt_id) is not None:
            return
        prompt = replace(prompt, constraints=fitting_constraints(prompt.constraints))
        prompt = self._with_effects(self._with_limit(redact_prompt(prompt)))
        if not decide_timer_default(prompt, self.hub.router.policy):
            prompt = replace(prompt, safe_default="")  # so that nobody is told of a timer that will not answer
        waiting = self.hub.ledger.open_prompts, self.hub.ledger.still_waiting
        for older in [one for select in waiting for one in select(session.session_id)]:
            self.withdraw(older.prompt_id, "asked_again" if older.prompt.digest == prompt.digest else "moved_on")
        ttl_s = self._ttl_s(session.session_id, prompt)
        verdict = self.hub.rules.judge(prompt, session)
        if verdict.verdict is Say.ASK:
            prompt = with_quorum(prompt, verdict)
            page = self.hub.ledger.recall(PAGE)
            card = f"{page}/#prompt/{prompt_id}" if page else ""
            prompt = with_proof(prompt, verdict, card)
            prompt = with_card(prompt, card)
        record = self.hub.ledger.raise_prompt(session.session_id, prompt_id, prompt, ttl_s)
        self.hub.stream.publish("prompt.raised", **describe_raised(record, session), detect_s=detect_s)
        self._watch(record)
        if not self._answer_by(verdict, record, session) and not self.on_idle(record, session):
            self.escalation.begin(record, session)
        self.hub.ledger.when_durable(lambda: self._finish_asking_again(record))

    def _finish_asking_again(self, record: PromptRecord) -> None:
        again = self._asking_again.pop(record.session_id, None)
        if again is not None and not again.done():
            again.set_result(record)

    def _with_limit(self, prompt: Prompt) -> Prompt:
        """Adds the time at which the usage limit on its screen resets, so that an answer can be scheduled for it."""
        resets = None if prompt.secret else find_reset(prompt.screen, self.hub.clock.wall(), find_zone)
        return prompt if resets is None else replace(prompt, constraints={**prompt.constraints, LIMIT: iso(resets)})

    def _with_effects(self, prompt: Prompt) -> Prompt:
        """Adds the effects of its command. The knowledge about programs is loaded with the first command."""
        if prompt.subject is None or prompt.subject.kind is not SubjectKind.COMMAND:
            return prompt
        from atlasbridge.core.policy.effects import with_effects

        return with_effects(prompt, self.hub.rules.parse)

    async def ask_again(self, prompt_id: str) -> Receipt | Reject:
        """Raises an expired prompt that is still on the screen again, under a new id, which is the receipt's answer."""
        refusal = self.request_again(prompt_id)
        record = self.hub.ledger.prompt(prompt_id)
        if refusal is not None or record is None:
            return refusal or _STALE
        future = self._asking_again.setdefault(record.session_id, asyncio.get_running_loop().create_future())
        try:
            async with asyncio.timeout(AGAIN_S):
                raised = await asyncio.shield(future)
        except TimeoutError:
            return Reject(Refusal.STALE, "The session did not show it again; check the terminal.")
        finally:
            self._asking_again.pop(record.session_id, None)
        return self.receipts.make("asked_again", "Asked again.", replace(raised, decided_value=raised.prompt_id))

    def request_again(self, prompt_id: str) -> Reject | None:
        """Asks the host to raise the prompt again. Returns None on success."""
        record = self.hub.ledger.prompt(prompt_id)
        if record is None:
            return UNKNOWN
        if record.state in OPEN:
            return Reject(Refusal.NOT_OPEN, "This is already being asked.")
        if record.prompt_id not in {one.prompt_id for one in self.hub.ledger.still_waiting(record.session_id)}:
            return Reject(Refusal.NOT_OPEN, f"This prompt no longer waits. {fate(record)}")
        link = self.hub.hosts.get(record.session_id)
        if link is None:
            return Reject(Refusal.UNAVAILABLE, "The session is not connected to the hub right now; try again.")
        link.send("renew", prompt_id=record.prompt_id)
        return None

    def answer_by_rule(self, record: PromptRecord, session: SessionRecord) -> bool:
        """Tries the rules again for an open prompt, because a grant was added."""
        if record.state not in OPEN or self.hub.hosts.get(session.session_id) is None:
            return False
        return self._answer_by(self.hub.rules.judge(record.prompt, session), record, session)

    def _answer_by(self, verdict: Verdict, record: PromptRecord, session: SessionRecord) -> bool:
        """Claims, records and types the decision of a rule or a grant like any reply."""
        decided = self.hub.rules.answer(record.prompt, verdict)
        if verdict.verdict is Say.ALLOW and PROOF in record.prompt.constraints:
            return False  # the prompt asks for a signature, and rules sign nothing
        if decided is None:
            return False
        answer, decider = decided
        claimed = self.hub.ledger.claim(record.prompt_id, session.session_id, None, answer, decider)
        if isinstance(claimed, Reject):
            return False
        channel = "rule" if decider.source.startswith("rule:") else "grant"
        value = answer.value or answer.kind.value
        self._publish("reply.received", claimed, channel=channel, value=value, **decision_of(claimed))
        self.hub.router.update(claimed, self.receipts.received(claimed))
        if self.hub.rules.rules.tell == "at_once":
            self.hub.router.notify(describe_decision(claimed, session, verdict), session)
        return self.hub.hosts.order(claimed, answer)

    def delivered(self, record: PromptRecord, channel: str) -> None:
        self._publish("prompt.routed", record, channel=channel)

    def withdraw(self, prompt_id: str, reason: str, refusal: Reject = _STALE) -> None:
        """The prompt is no longer on the screen. After our own typing, this is the expected effect."""
        known = self.hub.ledger.prompt(prompt_id)
        if known is not None and known.state is PromptState.INJECTED:
            self.take(prompt_id)
            return
        record = self.hub.ledger.withdraw(prompt_id, reason)
        if record is None:
            return
        self._end(record, "prompt.withdrawn", "withdrawn", _WITHDRAWN.get(reason, reason), reason=reason)
        self.hub.hosts.tell_result(prompt_id, refusal)

    def cancel(self, prompt_id: str, decider: Decider) -> Receipt | None:
        record = self.hub.ledger.cancel(prompt_id, decider.identity, decider.place, decider.request)
        if record is None:
            return None
        receipt = self.receipts.canceled(record)
        self._finish(record, "prompt.canceled", receipt, by=record.decided_by)
        self._tell_host(record)
        return receipt

    def expire(self, prompt_id: str) -> None:
        """The prompt's time is over: types the safe default if a timer is allowed to, otherwise nothing.

        While a person uses the terminal, the timer types nothing into it, because the person can answer there.
        """
        record = self.hub.ledger.prompt(prompt_id)
        if record is None or record.state not in OPEN:
            return
        default = self._default(record)
        session = self.hub.ledger.session(record.session_id) if default is not None else None
        if session is not None and self.escalation.ask_keyboard(session):
            again_at = self.hub.clock.now() + ANSWER_S
            self.hub.scheduler.set(f"expire:{prompt_id}", again_at, lambda: self.expire(prompt_id))
            return
        in_use = session is not None and self.escalation.used_within(session, self.ttl_of(record))
        default = None if in_use else default
        expired = self.hub.ledger.expire(prompt_id, default)
        if expired is None:
            return
        said = record.prompt.safe_default if default else ""
        self._finish(expired, "prompt.expired", self.receipts.expired(expired, in_use), default=said or None)
        if default is not None:
            self._signal(expired, self.receipts.expired(expired).sentence)
            self.hub.hosts.order(expired, default)
        else:
            self._tell_host(expired)

    def warn(self, prompt_id: str) -> None:
        """A timer will answer soon: tells the terminal and the channels what and when."""
        record = self.hub.ledger.prompt(prompt_id)
        session = self.hub.ledger.session(record.session_id) if record is not None else None
        if record is None or session is None or record.state not in OPEN:
            return
        default = self._default(record)
        if default is None or self.escalation.used_within(session, self.ttl_of(record)):
            return
        left_s = record.deadline - self.hub.clock.now()
        sentence = self.receipts.soon(record, label_answer(record.prompt, default), left_s)
        self._signal(record, sentence)
        self.hub.router.notify(sentence, session)

    def _signal(self, record: PromptRecord, sentence: str) -> None:
        link, signal = self.hub.hosts.get(record.session_id), self.hub.router.policy.timer_signal
        if link is not None and signal != "none":
            link.send("notice", signal=signal, text=f"AtlasBridge: {sentence}")

    def _tell_host(self, record: PromptRecord) -> None:
        """The prompt ended here and nothing will be typed. A caller without a terminal waits for this message."""
        link = self.hub.hosts.get(record.session_id)
        if link is not None:
            link.send("closed", prompt_id=record.prompt_id, outcome=record.state.value)

    def typed(self, prompt_id: str, outcome: str, detail: str = "") -> None:
        """Handles the host's report after a `type`, after an `ask`, or in its `hello`."""
        match outcome:
            case "typed":
                self._injected(prompt_id, detail)
            case "taken" | "still_there":
                self.effect(prompt_id, outcome, detail)
            case "stale":
                why = Reject(Refusal.STALE, f"Nothing was typed: {detail}.") if detail else _STALE
                self.withdraw(prompt_id, "moved_on", why)
            case "failed":
                self.fail(prompt_id, detail or "the keys could not be typed")
            case _:
                log.warning("a host said %r of prompt %s", outcome, prompt_id)

    def effect(self, prompt_id: str, outcome: str, detail: str = "") -> None:
        if outcome == "taken" and self.take(prompt_id, detail):
            return
        self._injected(prompt_id, detail)  # an effect implies that the answer was typed, whichever report arrives first
        if outcome == "taken":
            self.take(prompt_id, detail)
        else:
            record = self.hub.ledger.fail(prompt_id, "still_there")
            if record is not None:
                sentence = "It was typed, but the prompt is still there. Check the terminal."
                self._end(record, "prompt.failed", "still_there", sentence, reason="still_there")

    def take(self, prompt_id: str, detail: str = "") -> bool:
        record = self.hub.ledger.resolve(prompt_id)
        if record is not None:
            self._taken(record, detail)
        return record is not None

    def _taken(self, record: PromptRecord, detail: str = "") -> None:
        way = {"way": detail} if detail == FIRST_KEY else {}
        self._finish(record, "prompt.resolved", self.receipts.taken(record, detail), **decision_of(record), **way)

    def fail(self, prompt_id: str, reason: str) -> None:
        record = self.hub.ledger.fail(prompt_id, reason)
        if record is not None:
            self._end(
                record, "prompt.failed", "failed", f"This prompt can no longer be answered: {reason}.", reason=reason
            )
            self.hub.hosts.tell_result(prompt_id, Reject(Refusal.UNAVAILABLE, f"It was not answered: {reason}."))

    def close(self, record: PromptRecord, reason: str) -> None:
        """The ledger has ended this prompt together with its session."""
        match record.state:
            case PromptState.RESOLVED:
                self._taken(record)
            case PromptState.FAILED:
                self._end(record, "prompt.failed", "failed", f"Nothing was typed: {reason}.", reason=reason)
            case _:
                self._end(record, "prompt.withdrawn", "withdrawn", _WITHDRAWN.get(reason, reason), reason=reason)
        self.hub.hosts.tell_result(record.prompt_id, _STALE)

    def deadline_moved(self, record: PromptRecord) -> None:
        self._watch(record)
        self.escalation.look(record.prompt_id)

    def ttl_of(self, record: PromptRecord) -> float:
        return self._ttl_s(record.session_id, record.prompt)

    def watch_again(self, record: PromptRecord, session: SessionRecord) -> None:
        """After a restart of the hub: restores the deadline and the escalation of an open prompt."""
        self._watch(record)
        if not self.on_idle(record, session):
            self.escalation.resume(record, session)

    def _injected(self, prompt_id: str, detail: str = "") -> None:
        way = detail if detail in ("hook", FIRST_KEY) else "keys"
        record = self.hub.ledger.inject(prompt_id, way)
        if record is None:
            return
        receipt = self.receipts.typed(record, way)
        self._publish("prompt.injected", record, **decision_of(record), way=way)
        self.hub.router.update(record, receipt)
        self.hub.hosts.tell_result(prompt_id, receipt)

    def _default(self, record: PromptRecord) -> Answer | None:
        if not decide_timer_default(record.prompt, self.hub.router.policy):
            return None
        answer = decide_answer(record.prompt, "default")
        return answer if isinstance(answer, Answer) else None

    def _watch(self, record: PromptRecord) -> None:
        prompt_id = record.prompt_id
        self.hub.scheduler.set(f"expire:{prompt_id}", record.deadline, lambda: self.expire(prompt_id))
        if self.ttl_of(record) > WARNING_S and self._default(record) is not None:
            self.hub.scheduler.set(f"warn:{prompt_id}", record.deadline - WARNING_S, lambda: self.warn(prompt_id))

    def _end(self, record: PromptRecord, event: str, stage: str, sentence: str, **fields: Any) -> None:
        self._finish(record, event, self.receipts.make(stage, sentence, record), **fields)

    def _finish(self, record: PromptRecord, event: str, receipt: Receipt, **fields: Any) -> None:
        def tell() -> None:
            self.hub.scheduler.cancel(f"expire:{record.prompt_id}")
            self.hub.scheduler.cancel(f"warn:{record.prompt_id}")
            self.escalation.end(record.prompt_id)
            self.on_end(record.prompt_id)
            self._publish(event, record, **fields)
            self.hub.router.update(record, receipt)

        # Only when durable: if the end is not recorded, the deadline and the escalation continue.
        self.hub.ledger.when_durable(tell)

    def _publish(self, event: str, record: PromptRecord, **fields: Any) -> None:
        if name := self.hub.ledger.name_of(str(fields.get("by") or "")):
            fields["by_name"] = name
        self.hub.stream.publish(event, session_id=record.session_id, prompt_id=record.prompt_id, **fields)
