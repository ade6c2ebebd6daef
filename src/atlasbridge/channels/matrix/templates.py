"""How a prompt looks in a room, which reaction stands for which answer, and how replies are parsed. Pure."""

from __future__ import annotations

from typing import Any

from atlasbridge.channels.excerpt import asked_text, count_missing, is_ambiguous, lines_above, quotes_of, render_effects
from atlasbridge.channels.grant_card import GrantWords
from atlasbridge.channels.language import t
from atlasbridge.channels.templates import Button, Role, render_buttons, render_deadline, render_header, render_headline
from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import short_id
from atlasbridge.core.prompt.model import Prompt, PromptRecord
from atlasbridge.core.session.model import SessionRecord

LONGEST = 16_000
KEYCAPS = [f"{digit}\ufe0f\u20e3" for digit in range(1, 10)]
YES, NO = "✅", "❌"
CANCEL, SHOW = "✖", "🔎"  # for a prompt whose question is unknown
WHILE = "⏱"  # the reaction that asks for a grant
PLAIN = str.maketrans("", "", "\ufe0f")  # some clients send it, others do not


def reactions(prompt: Prompt) -> dict[str, Button]:
    """Return the meaning of each reaction. A question that is not shown completely gets no reaction that agrees."""
    if is_ambiguous(prompt) and not prompt.secret:
        keys = {Role.ANSWER: YES, Role.CANCEL: CANCEL, Role.SHOW: SHOW}
        return {keys[one.role]: one for one in render_buttons(prompt) if one.role in keys}
    offered = [one for one in render_buttons(prompt) if one.role in (Role.ANSWER, Role.ALWAYS, Role.REFUSE)]
    if not is_whole(prompt):
        offered = [one for one in offered if one.role is Role.REFUSE]
    if not prompt.choices:
        return {(NO if one.role is Role.REFUSE else YES): one for one in offered[:2]}
    return dict(zip(KEYCAPS, offered, strict=False))


def offers_grant(prompt: Prompt) -> bool:
    return is_whole(prompt) and any(one.role is Role.GRANT for one in render_buttons(prompt))


def is_while(key: str) -> bool:
    return key.translate(PLAIN) == WHILE


def grant_choice(values: list[str], key: str) -> str | None:
    """Return the value behind a keycap reaction to an offer."""
    keys = [name.translate(PLAIN) for name in KEYCAPS]
    place = keys.index(key.translate(PLAIN)) if key.translate(PLAIN) in keys else len(values)
    return values[place] if place < len(values) else None


def render_grant(words: GrantWords) -> str:
    choices = [f"{key} {label}" for key, (label, _) in zip(KEYCAPS, words.buttons, strict=False)]
    return "\n".join([words.text, "", *choices]) if choices else words.text


def is_whole(prompt: Prompt) -> bool:
    """Whether the message shows everything that a reaction would agree to: no part is missing or omitted above it."""
    return prompt.asked_whole and not lines_above(prompt) and len(escape_controls(prompt.asked)) <= LONGEST


def find_reaction(prompt: Prompt, key: str) -> Button | None:
    return {name.translate(PLAIN): button for name, button in reactions(prompt).items()}.get(key.translate(PLAIN))


def render_prompt(record: PromptRecord, session: SessionRecord, host: str) -> str:
    prompt = record.prompt
    asked = asked_text(prompt) or t("(the screen shows no text)")
    missing = count_missing(quotes_of(prompt), "atlasbridge approvals")
    cut = f"\n{missing}" if missing else ""
    if not is_whole(prompt):
        cut += f"\n({t('cut, or not whole')}: atlasbridge reply {short_id(record.prompt_id)})"
    lines = [f"{key} {button.label}" for key, button in reactions(prompt).items()]
    lines += [f"{WHILE} {t('Allow for a while …')}"] if offers_grant(prompt) else []
    ways = t("React, or reply to this message.") if lines else t("Reply to this message.")
    head = f"{render_headline(prompt, session)}\n{render_header(prompt, session, host)}"
    head += f"\n{effects}" if (effects := render_effects(prompt)) else ""
    return "\n".join([head, "", asked[:LONGEST] + cut, "", *lines, f"{ways} {render_deadline(record)}"])


def text_message(body: str, loud: bool) -> dict[str, Any]:
    """A message that is not loud is a notice, which makes no sound."""
    return {"msgtype": "m.text" if loud else "m.notice", "body": body}


def edit_message(event_id: str, body: str) -> dict[str, Any]:
    fresh = text_message(body, loud=False)
    return {**text_message(f"* {body}", False), "m.new_content": fresh, "m.relates_to": _relates("m.replace", event_id)}


def reply_message(event_id: str, body: str, loud: bool) -> dict[str, Any]:
    return {**text_message(body, loud), "m.relates_to": {"m.in_reply_to": {"event_id": event_id}}}


def reaction(event_id: str, key: str) -> dict[str, Any]:
    return {"m.relates_to": {**_relates("m.annotation", event_id), "key": key}}


def _relates(kind: str, event_id: str) -> dict[str, Any]:
    return {"rel_type": kind, "event_id": event_id}


def parse_target(event: dict[str, Any]) -> tuple[str, str, bool]:
    """Return the event it refers to, the text, and whether it is a reaction. The event is "" if there is no
    reference."""
    content = event.get("content")
    relates = content.get("m.relates_to") if isinstance(content, dict) else None
    if not isinstance(relates, dict) or not isinstance(content, dict):
        return "", "", False
    if event.get("type") == "m.reaction":
        return str(relates.get("event_id", "")), str(relates.get("key", "")), True
    meant = relates.get("m.in_reply_to")
    said = strip_quote(str(content.get("body", ""))) if content.get("msgtype") == "m.text" else ""
    if event.get("type") != "m.room.message" or relates.get("rel_type") or not isinstance(meant, dict) or not said:
        return "", "", False  # neither the name of a picture nor an empty message is an answer
    return str(meant.get("event_id", "")), said, False


def strip_quote(body: str) -> str:
    """Remove the quote that older clients put before a reply, each line with `> `."""
    lines = body.split("\n")
    while lines and lines[0].startswith("> "):
        lines.pop(0)
    return "\n".join(lines).strip()
