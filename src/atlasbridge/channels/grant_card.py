"""Allowing something for a while from a chat's card: the offer in words with its buttons, and what became of it.

How a button carries its value, and how a message is edited, is the channel's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from atlasbridge.core.escape import escape_controls
from atlasbridge.core.ids import short_id
from atlasbridge.core.policy.grant import SPANS, find_span
from atlasbridge.core.ports import HubApi
from atlasbridge.core.prompt.model import PromptRecord

LEAVE, REVOKE = "no", "r"
LEFT = "Nothing was granted."
LIMITS = "In this session unless it says folder; twelve hours at most. What a rule denies or asks stays so."


@dataclass(frozen=True, slots=True)
class GrantWords:
    """A message with its buttons (label and value), and the short word for who pressed.  `beside`: it is a new one."""

    text: str
    toast: str
    buttons: tuple[tuple[str, str], ...] = ()
    beside: bool = False


def press(hub_api: HubApi, record: PromptRecord, value: str, identity: str) -> GrantWords | str:
    """What a press on one of these buttons does: "" offers, the rest decides; a text where nothing could be done."""
    if value == LEAVE:
        return GrantWords(LEFT, LEFT)
    if value.startswith(REVOKE) and len(value) > 1:
        ended = hub_api.revoke_grant(value[1:], identity)
        said = "Revoked: from now on you are asked again." if ended else "That grant has ended already."
        return GrantWords(said, said)
    span = find_span(value)
    if value and span is None:
        return "This button is not one of mine."
    limits: dict[str, Any] = {"for_s": None, "times": None, "folder": False}
    if span is not None:
        limits = {"for_s": span.for_s, "times": span.times, "folder": span.folder}
    made = hub_api.grant(record.prompt_id, identity, **limits, preview=span is None)
    if not made["ok"]:
        return escape_controls(str(made["message"]), keep_lines=False)
    return _offer(made) if span is None else _given(made)


def _offer(made: dict[str, Any]) -> GrantWords:
    lines = [f"⏱ Without asking, this would be allowed: {made['shape']}.", *examples(made), LIMITS]
    buttons = (*((span.label, span.key) for span in SPANS), ("✖ No, ask me", LEAVE))
    return GrantWords(escape_controls("\n".join(lines)), "Read what it would allow, then choose.", buttons, beside=True)


def _given(made: dict[str, Any]) -> GrantWords:
    lines = [f"⏱ Granted: {made['words']}.", *examples(made)]
    revoke = ("✖ Revoke", REVOKE + short_id(made["grant_id"]))
    return GrantWords(escape_controls("\n".join(lines)), f"Granted: {made['words']}.", (revoke,))


def examples(made: dict[str, Any]) -> list[str]:
    """What it would allow, and what not with the reason."""
    allowed = [f"✅ {text}" for text in made["would"]]
    return allowed + ["\n   ".join(filter(None, (f"❌ {text}", why))) for text, why in with_reasons(made)]


def with_reasons(made: dict[str, Any]) -> list[tuple[str, str]]:
    """What it would not allow; an older hub sends no reasons."""
    return list(zip(made["would_not"], made.get("why_not") or [""] * len(made["would_not"]), strict=False))
