"""How a prompt looks as a notification, and what its buttons say back.  Pure.

Whoever cannot read the whole question here gets no button that agrees: only the one that refuses, and the way to all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from atlasbridge.channels.outcome import Outcome
from atlasbridge.channels.wording import (
    Button,
    Role,
    host_name,
    render_buttons,
    render_headline,
    session_name,
    tool_name,
)
from atlasbridge.core.ids import short_id
from atlasbridge.core.prompt.gate import SHORT_NONCE
from atlasbridge.core.prompt.model import PromptRecord
from atlasbridge.core.session.model import SessionRecord
from atlasbridge.core.visible import visible

MESSAGE_BYTES = 3800  # the server's limit is 4096, for the text alone
TITLE_BYTES = 240
MOST_BUTTONS = 3
HIGH, USUAL, LOW, LEAST = 4, 3, 2, 1


@dataclass(frozen=True, slots=True)
class Said:
    """What a button posted: which prompt, its nonce, and the answer."""

    prompt_id: str
    nonce: str
    value: str


def encode_said(record: PromptRecord, value: str) -> str:
    return f"{short_id(record.prompt_id)}:{record.nonce}:{value}"


def parse_said(text: str) -> Said | None:
    prompt_id, _, rest = text.partition(":")
    nonce, colon, value = rest.partition(":")
    if not (colon and len(prompt_id) == len(short_id("0" * 32)) and len(nonce) >= SHORT_NONCE):
        return None
    return Said(prompt_id, nonce, value)


def render_prompt(
    record: PromptRecord, session: SessionRecord, host: str, shows_text: bool, loud: bool
) -> dict[str, Any]:
    """The notification without its address and its buttons."""
    asked, whole = _asked(record), shows_text and _fits(record)
    where = " · ".join(filter(None, (tool_name(session), session_name(session), host_name(session, host))))
    more = f"All of it: the page, or atlasbridge reply {short_id(record.prompt_id)}"
    if shows_text:
        title = cut_bytes(render_headline(record.prompt, session), TITLE_BYTES)
        shown = asked if whole else cut_bytes(asked, MESSAGE_BYTES - 300) + "\n(cut, or not whole)"
        text = f"{shown}\n{where}" + ("" if whole else f"\n{more}")
    else:
        title, text = "AtlasBridge: a question waits", f"{where}\n{more}"
    return {
        "title": title,
        "message": text,
        "priority": HIGH if loud else LOW,
        "sequence_id": short_id(record.prompt_id),
    }


def _asked(record: PromptRecord) -> str:
    return visible(record.prompt.asked).strip()


def _fits(record: PromptRecord) -> bool:
    """Whether a notification can show all that is asked."""
    asked = _asked(record)
    return record.prompt.asked_whole and len(asked.encode()) <= MESSAGE_BYTES and bool(asked)


def choose_buttons(record: PromptRecord, shows_text: bool) -> list[Button]:
    """Three at most.  One that refuses is always among them; a lasting permission never is."""
    whole = shows_text and _fits(record)
    found = [button for button in render_buttons(record.prompt) if button.role in (Role.ANSWER, Role.REFUSE)]
    refusing = [button for button in found if button.role is Role.REFUSE][:1]
    agreeing = [button for button in found if button.role is Role.ANSWER] if whole else []
    complete = len(agreeing) + len(refusing) <= MOST_BUTTONS
    return [*agreeing[: MOST_BUTTONS - len(refusing)], *refusing] if complete or refusing else []


def render_end(outcome: Outcome, record: PromptRecord, session: SessionRecord, shows_text: bool) -> dict[str, Any]:
    title = cut_bytes(outcome.title, TITLE_BYTES) if shows_text else "Settled"
    text = "\n".join(part for part in (f"{tool_name(session)} · {session_name(session)}", outcome.detail) if part)
    return {"title": title, "message": text, "priority": LEAST, "sequence_id": short_id(record.prompt_id)}


def cut_bytes(text: str, most: int) -> str:
    data = text.encode()
    return text if len(data) <= most else data[: most - 3].decode(errors="ignore") + "…"
