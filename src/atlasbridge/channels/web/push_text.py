"""What a phone that sleeps is told about a prompt, and with which buttons.  Pure.

Agreeing is offered only where everything that is asked stands in the message; refusing is offered wherever there is one
way to refuse.
"""

from __future__ import annotations

from typing import Any

from atlasbridge.channels.web.push_send import Message
from atlasbridge.core.prompt.model import PromptRecord, PromptType
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.visible import visible

BODY_LIMIT = 480
WHOLE_LIMIT = 240  # what a phone shows of a message without opening it
TITLE_LIMIT = 80
BUTTON_LIMIT = 40
NOT_WHOLE = "… open it to read all of it"


def render_ask(record: PromptRecord, session: SessionRecord, until: float) -> Message:
    name = visible(session.label or session.tool, keep_lines=False)[:TITLE_LIMIT]
    prompt = record.prompt
    all_of_it = visible(prompt.asked)
    whole = prompt.asked_whole and len(all_of_it) <= WHOLE_LIMIT  # who agrees without opening it has read all of it
    text = "It asks for a secret." if prompt.secret else all_of_it if whole else visible(asked(record))
    body = {
        "kind": "ask",
        "tag": record.prompt_id,
        "title": f"{name} is finished" if prompt.idle else f"{name} asks",
        "body": _fitting(text) if whole or prompt.secret or prompt.idle else f"{_fitting(text)}\n{NOT_WHOLE}",
        "url": f"/#prompt/{record.prompt_id}",
        "actions": _actions(record, agree=whole),
        "session_id": record.session_id,
    }
    return Message(record.prompt_id, body, until, urgent=not prompt.idle)


def _fitting(text: str) -> str:
    return text if len(text) <= BODY_LIMIT else f"{text[:BODY_LIMIT]}… ({len(text) - BODY_LIMIT} characters more)"


def render_settled(record: PromptRecord, sentence: str, until: float) -> Message:
    body = {
        "kind": "settled",
        "tag": record.prompt_id,
        "title": "Settled",
        "body": visible(sentence)[:BODY_LIMIT],
        "url": f"/#prompt/{record.prompt_id}",
        "actions": [],
    }
    return Message(record.prompt_id, body, until, urgent=False)


def asked(record: PromptRecord) -> str:
    """The question, and below it what it is about where the question does not say it itself."""
    subject = record.prompt.subject
    if subject is None or not subject.shown or subject.shown in record.prompt.excerpt:
        return record.prompt.excerpt
    return f"{record.prompt.excerpt}\n{subject.shown}"


def _actions(record: PromptRecord, agree: bool) -> list[dict[str, Any]]:
    prompt = record.prompt
    if prompt.secret or prompt.constraints.get("multi_select"):
        return []
    if prompt.type is PromptType.TYPE_YES_NO and not prompt.choices:
        offered = [("refuse", "No", "n"), ("agree", "Yes", "y")]
    else:
        refusing = [choice for choice in prompt.choices if choice.refuses]
        words = bool(prompt.text_steps)  # a choice without steps of its own is then chosen by saying something
        agreeing = [
            choice for choice in prompt.choices if not (choice.refuses or choice.always or (words and not choice.steps))
        ]
        offered = [("refuse", refusing[0].label, refusing[0].value)] if len(refusing) == 1 else []
        offered += [("agree", agreeing[0].label, agreeing[0].value)] if agreeing and refusing else []
    return [
        {"action": action, "title": title, "value": value}
        for action, label, value in offered
        if (title := _title(label)) and (action == "refuse" or (agree and not title.endswith("…")))
    ]


def _title(label: str) -> str:
    """What cannot be said whole on a button is not agreed to by it."""
    flat = visible(label, keep_lines=False).strip()
    return flat if len(flat) <= BUTTON_LIMIT else f"{flat[: BUTTON_LIMIT - 1]}…"
