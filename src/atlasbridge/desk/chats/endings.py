"""What a chat's message is to say of a prompt, from the words of its machine.  Pure."""

from __future__ import annotations

from atlasbridge.core.prompt.model import PromptState
from atlasbridge.core.prompt.reply import Receipt
from atlasbridge.core.prompt.spoken import TIMER, quote_answer
from atlasbridge.desk.chats.readout import GONE, FleetPrompt

FINAL = frozenset({"resolved", "withdrawn", "canceled", "failed", GONE})
_STAGES = {
    PromptState.REPLY_RECEIVED: "received",
    PromptState.INJECTED: "typed",
    PromptState.RESOLVED: "taken",
    PromptState.EXPIRED: "expired",
    PromptState.CANCELED: "canceled",
    PromptState.WITHDRAWN: "withdrawn",
    PromptState.FAILED: "failed",
}
_SENTENCES = {
    "received": "Answered with {answer} by {who}.",
    "typed": "Typed {answer}, the answer of {who}.",
    "default_typed": "Nobody answered in time: typed the safe default {answer}.",
    "taken": "The tool took {answer}, the answer of {who}.",
    "expired": "Nobody answered in time.",
    "canceled": "Left as it is by {who}; nothing was typed.",
    "withdrawn": "It is not on that screen any more.",
    "failed": "It could not be answered.",
}


def is_over(asked: FleetPrompt) -> bool:
    """Nothing more will be said of it; a time that ran out may still be followed by the safe default."""
    return asked.state in FINAL or (asked.state == "expired" and not asked.record.decided_value)


def receipt_of(asked: FleetPrompt) -> Receipt:
    """For a prompt that is not open any more."""
    record = asked.record
    if asked.state == GONE:
        return Receipt("withdrawn", f"The machine {asked.machine} has left the desk.")
    stage = _STAGES.get(record.state, "withdrawn")
    if stage == "typed" and record.decided_by == TIMER:
        stage = "default_typed"
    answer = quote_answer(record.decided_value) if record.decided_value else "an answer"
    sentence = _SENTENCES[stage].format(answer=answer, who=record.decided_by or "somebody")
    by, place = record.decided_by, record.decided_from
    return Receipt(stage, sentence, by, record.decided_value, place, record.decided_at)
